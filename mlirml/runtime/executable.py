"""Load an artifact as a program that runs in this process."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from mlirml.errors import LaunchError
from mlirml.runtime._native import Program, load_object
from mlirml.runtime.artifact import Artifact, Buffer

Spec = tuple[npt.DTypeLike, Sequence[int]]


def load_artifact(
    artifact: Artifact,
    inputs: Sequence[Spec],
    outputs: Sequence[Spec],
    *,
    constants: Sequence[npt.NDArray[Any]] = (),
    writebacks: Iterable[tuple[int, int]] = (),
    int_ranges: Iterable[tuple[int, int, int, str]] = (),
    weak: Iterable[bool] = (),
    host: Callable[[int, list[int]], object] | None = None,
) -> Program:
    """Load the object of `artifact` and bind it to NumPy dtypes and shapes.

    `inputs` and `outputs` are pairs of dtype and shape; `constants` are captured arrays, passed after the inputs.
    `weak[i]` says that input i is a Python scalar (dtype float64, int64, bool or complex128); `int_ranges` are (input,
    smallest, largest, dtype name) of the integers it may be; `writebacks` are pairs (output, input) to copy after each
    run, where the program does not work in the input's own memory. `host` is called for the program's host calls.

    Raises LaunchError if the object cannot be loaded here, or if the specs are not those the artifact was made for.
    """
    if artifact.format != "elf":
        raise LaunchError(f"this process runs ELF objects, not {artifact.format!r}")
    check_sizes("input", artifact.inputs, [*inputs, *((c.dtype, c.shape) for c in constants)])
    check_sizes("output", artifact.outputs, outputs)
    try:
        code = load_object(artifact.object)
        return Program(
            code,
            artifact.entry,
            inputs,
            outputs,
            constants=constants,
            workspace_bytes=artifact.workspace_bytes,
            writebacks=tuple(writebacks),
            int_ranges=tuple(int_ranges),
            weak=tuple(weak),
            in_place=artifact.in_place,
            host=host,
        )
    except (ValueError, LookupError) as error:
        raise LaunchError(f"the compiled program cannot be loaded: {error}") from error


def check_sizes(what: str, buffers: Sequence[Buffer], specs: Sequence[Spec]) -> None:
    # A wrong size would be read or written past its end.
    if len(buffers) != len(specs):
        raise LaunchError(f"the artifact has {len(buffers)} {what}s, {len(specs)} were described")
    for i, (buffer, (dtype, shape)) in enumerate(zip(buffers, specs)):
        if buffer.nbytes != np.dtype(dtype).itemsize * math.prod(shape):
            raise LaunchError(f"{what} {i} is {np.dtype(dtype)}{list(shape)}, the artifact has {buffer}")
