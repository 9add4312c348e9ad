"""A loaded program of dynamic sizes: one piece of code, of which each combination of sizes makes a `Program`."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from mlirml.core.sizes import Size, value_of_size
from mlirml.errors import LaunchError
from mlirml.runtime._native import Program, load_object
from mlirml.runtime.artifact import Artifact, Buffer

Spec = tuple[npt.DTypeLike, Sequence[Any]]


class SizedProgram:
    """The code of a program, and its inputs and outputs with their dynamic sizes."""

    def __init__(
        self, artifact: Artifact, inputs: Sequence[Spec], outputs: Sequence[Spec], sizes: Sequence[Size], options: Any
    ) -> None:
        self._artifact, self._inputs, self._outputs = artifact, inputs, outputs
        self._sizes, self._options = sizes, options
        try:
            self._code = load_object(artifact.object)
        except (ValueError, LookupError) as error:
            raise LaunchError(f"the compiled program cannot be loaded: {error}") from error

    @classmethod
    def load(
        cls,
        artifact: Artifact,
        inputs: Sequence[Spec],
        outputs: Sequence[Spec],
        *,
        constants: Sequence[npt.NDArray[Any]] = (),
        writebacks: Iterable[tuple[int, int]] = (),
        int_ranges: Iterable[tuple[int, int, int, str]] = (),
        weak: Iterable[bool] = (),
        host: Callable[[int, list[int]], object] | None = None,
        sizes: Sequence[Size] = (),
    ) -> SizedProgram:
        """As `load_artifact`; `sizes` are the elements of the array of sizes, which is passed after the constants."""
        table: Spec = (np.int64, (len(sizes),))
        given = [*inputs, *((c.dtype, c.shape) for c in constants), *([table] if sizes else [])]
        check_shapes("input", artifact.inputs, given)
        check_shapes("output", artifact.outputs, outputs)
        options = {
            "constants": list(constants),
            "writebacks": tuple(writebacks),
            "int_ranges": tuple(int_ranges),
            "weak": tuple(weak),
            "in_place": artifact.in_place,
            "host": host,
        }
        return cls(artifact, inputs, outputs, sizes, options)

    def work(self, values: Mapping[str, int]) -> int:
        """The estimated work of a call with these values of the dimensions."""
        return self._artifact.work_at([size.value(values) for size in self._sizes])

    def at(self, values: Mapping[str, int]) -> Program:
        """The program for these values of its dimensions."""
        sizes = [size.value(values) for size in self._sizes]
        inputs, outputs = (
            [(dtype, tuple(value_of_size(n, values) for n in shape)) for dtype, shape in specs]
            for specs in (self._inputs, self._outputs)
        )
        options = dict(self._options)
        if sizes:
            options["constants"] = [*options["constants"], np.array(sizes, np.int64)]
        try:
            workspace = self._artifact.workspace_at(sizes)
            return Program(self._code, self._artifact.entry, inputs, outputs, workspace_bytes=workspace, **options)
        except (ValueError, LookupError) as error:
            raise LaunchError(f"the compiled program cannot be loaded: {error}") from error


def check_shapes(what: str, buffers: Sequence[Buffer], specs: Sequence[Spec]) -> None:
    """Raise `LaunchError` unless the arrays are those that the artifact was made for, but for its dynamic sizes."""
    if len(buffers) != len(specs):
        raise LaunchError(f"the artifact has {len(buffers)} {what}s, {len(specs)} were described")
    for i, (buffer, (dtype, shape)) in enumerate(zip(buffers, specs)):
        static = math.prod(n for n in shape if type(n) is not Size) * np.dtype(dtype).itemsize
        held = Buffer(buffer.dtype, tuple(abs(n) for n in buffer.shape)).nbytes
        if held != static or sum(n < 0 for n in buffer.shape) != sum(type(n) is Size for n in shape):
            raise LaunchError(f"{what} {i} is {np.dtype(dtype)}{list(shape)}, the artifact has {buffer}")
