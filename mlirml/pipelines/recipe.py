"""Recipes: the stages of a target as lists of steps, each the text of one pass with its options.

A recipe names passes and does not import them: a program that is found in the cache is run without any of them.
"""

from __future__ import annotations

from collections.abc import Sequence

from mlirml.targets.machine import Device, Processor

Recipe = tuple[tuple[str, str], ...]
"""The name of each stage, and its steps as pipeline text."""

Value = bool | int | str | Sequence[str] | Processor | Device
"""The value of an option."""


def step(name: str, **options: Value) -> str:
    """The text of a pass with options.

    >>> step("mlirml-tile-rows", processor=Processor(l2_bytes=1 << 19), least_bytes=4096)
    'mlirml-tile-rows{processor=avx2,l2=512K least-bytes=4096}'
    """
    return f"{name}{{{' '.join(map(_option, options.items()))}}}" if options else name


def recipe(**stages: Sequence[str]) -> Recipe:
    """The stages of a target, in order."""
    return tuple((name, ",".join(steps)) for name, steps in stages.items())


def _option(option: tuple[str, Value]) -> str:
    name, value = option
    if isinstance(value, bool):
        shown = str(value).lower()
    elif isinstance(value, int | str | Processor | Device):
        shown = str(value)
    else:
        shown = f"{{{','.join(value)}}}"
    return f"{name.replace('_', '-')}={shown}"
