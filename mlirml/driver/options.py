"""The options of `compile` that are the same for all functions, checked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from mlirml.core.config import config, float64_choice
from mlirml.errors import ArgumentError, PipelineError

if TYPE_CHECKING:
    from mlirml.targets.target import Target

TUNE = {True: "search", False: "off", "off": "off", "stored": "stored", "search": "search"}


def checked_float64(given: str | None) -> str:
    """The treatment of 64-bit floats on devices that lack them; raises `ArgumentError`."""
    try:
        return config.float64 if given is None else float64_choice(given)
    except ValueError as error:
        raise ArgumentError(f"compile: float64: {error}") from None


def checked_tune(given: bool | str | None, target: Target) -> str:
    """The use of tuned schedules: "off", "stored" or "search"; raises `ArgumentError`.

    `config.tune` decides where none is given, for the targets that have schedules to tune.
    """
    if given is None:
        return config.tune if target.name == "cpu" else "off"
    found = TUNE.get(given) if isinstance(given, bool | str) else None
    if found is None:
        raise ArgumentError(
            f"compile: tune={given!r} is not known", help='write tune=True, tune=False or tune="stored"'
        )
    if found != "off" and target.name != "cpu":
        raise ArgumentError(f'compile: tune is for the target "cpu", and this one is {target.name!r}')
    return found


def checked_passes(given: Sequence[str] | None) -> tuple[str, ...] | None:
    """The names of passes, or None where none are given; raises `PipelineError` for anything else."""
    try:
        return None if given is None else (given,) if isinstance(given, str) else tuple(given)
    except TypeError:
        raise PipelineError(f"a pipeline is a list of the names of passes, and this is {given!r}") from None


def with_passes(target: Target, passes: Sequence[str] | None) -> Target:
    """The target with these optional passes instead of those of its recipe, which it has with None.

    Raises `PipelineError` for a pass that does not exist or is not optional, `ArgumentError` for other targets.
    """
    if passes is None:
        return target
    if target.name != "cpu":
        raise ArgumentError(f'compile: pipeline is for the target "cpu", and this one is {target.name!r}')
    from mlirml.pipelines.selection import with_optional_steps

    return replace(target, stages=with_optional_steps(target.stages, passes))


def optional_passes() -> list[str]:
    """The optional passes of the target "cpu", in the order of its recipe, of which `compile(pipeline=...)` takes some.

    >>> import numpy as np, mlirml as ml
    >>> passes = ml.optional_passes()
    >>> "mlirml-fuse" in passes, "mlirml-bufferize" in passes
    (True, False)
    >>> double = ml.compile(lambda x: 2 * x, pipeline=[name for name in passes if name != "mlirml-fuse"])
    >>> double(np.array([1.0, 2.0]))
    array([2., 4.])
    """
    from mlirml.pipelines.selection import optional_steps
    from mlirml.targets.registry import get_target

    return optional_steps(get_target("cpu").stages)
