"""What a program is loaded for: its arguments and results, and what goes with them in each call."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from mlirml.core.dataclass import dataclass, replace
from mlirml.core.sizes import Size, value_of_size
from mlirml.errors import LaunchError
from mlirml.runtime.artifact import Artifact, Buffer
from mlirml.runtime.host import Host

Spec = tuple[npt.DTypeLike, Sequence[Any]]
"""A dtype and a shape, some of whose sizes may be dynamic."""


@dataclass(frozen=True)
class Binding:
    """The NumPy dtypes and shapes that a program is bound to, and the options of its calls.

    `constants` are captured arrays, passed after the inputs, and `sizes` the elements of the array of dynamic sizes,
    which is passed after them. `weak[i]` says that input i is a Python scalar (dtype float64, int64, bool or
    complex128); `int_ranges` are (input, smallest, largest, dtype name) of the integers it may be; `writebacks` are
    pairs (output, input) to copy after each run, where the program does not work in the input's own memory. `host` is
    called for the program's host calls. With `demotes` the program was compiled with 32-bit floats where these have
    64-bit ones.
    """

    inputs: Sequence[Spec]
    outputs: Sequence[Spec]
    constants: Sequence[npt.NDArray[Any]] = ()
    writebacks: Sequence[tuple[int, int]] = ()
    int_ranges: Sequence[tuple[int, int, int, str]] = ()
    weak: Sequence[bool] = ()
    host: Host | None = None
    demotes: bool = False
    sizes: Sequence[Size] = ()

    def demoted(self) -> Binding:
        """The binding with the dtypes that the program computes with."""
        if not self.demotes:
            return self
        return replace(self, inputs=demoted_specs(self.inputs), outputs=demoted_specs(self.outputs))

    def at(self, values: Mapping[str, int]) -> tuple[list[Spec], list[Spec], list[int]]:
        """The inputs, the outputs, and the array of sizes for these values of the dimensions."""
        return specs_at(self.inputs, values), specs_at(self.outputs, values), self.sizes_at(values)

    def sizes_at(self, values: Mapping[str, int]) -> list[int]:
        """The array of sizes for these values of the dimensions."""
        return [size.value(values) for size in self.sizes]

    def check(self, artifact: Artifact) -> None:
        """Raise `LaunchError` unless the arrays are those that the artifact was made for, but for its dynamic sizes.

        Memory past the end of another one would be read or written.
        """
        mine = self.demoted()
        constants: list[Spec] = [(constant.dtype, constant.shape) for constant in self.constants]
        table: list[Spec] = [(np.int64, (len(self.sizes),))] if self.sizes else []
        if self.demotes:
            constants = demoted_specs(constants)
        _check("input", artifact.inputs, [*mine.inputs, *constants, *table])
        _check("output", artifact.outputs, mine.outputs)


def demoted_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The dtype that programs use instead of `dtype` on devices without 64-bit floats."""
    return {"f8": np.dtype(np.float32), "c16": np.dtype(np.complex64)}.get(dtype.str[1:], dtype)


def demoted_specs(specs: Iterable[Spec]) -> list[Spec]:
    """Inputs or outputs with the dtypes that programs use on devices without 64-bit floats."""
    return [(demoted_dtype(np.dtype(dtype)), shape) for dtype, shape in specs]


def specs_at(specs: Iterable[Spec], values: Mapping[str, int]) -> list[Spec]:
    """Inputs or outputs with the shapes that they have for these values of the dimensions."""
    return [(dtype, tuple(value_of_size(n, values) for n in shape)) for dtype, shape in specs]


def _check(what: str, buffers: Sequence[Buffer], specs: Sequence[Spec]) -> None:
    if len(buffers) != len(specs):
        raise LaunchError(f"the artifact has {len(buffers)} {what}s, {len(specs)} were described")
    for i, (buffer, (dtype, shape)) in enumerate(zip(buffers, specs)):
        static = math.prod(n for n in shape if type(n) is not Size) * np.dtype(dtype).itemsize
        held = Buffer(buffer.dtype, tuple(abs(n) for n in buffer.shape)).nbytes
        if held != static or sum(n < 0 for n in buffer.shape) != sum(type(n) is Size for n in shape):
            raise LaunchError(f"{what} {i} is {np.dtype(dtype)}{list(shape)}, the artifact has {buffer}")
