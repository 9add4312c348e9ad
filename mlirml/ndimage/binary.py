"""Morphology of arrays of booleans: erosion, dilation, and what is made of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from mlirml.errors import ShapeError
from mlirml.frontend import control
from mlirml.frontend.arrays.array import Traced
from mlirml.ndimage.arguments import (
    Output,
    checked_axes,
    extended,
    for_each,
    integer,
    part,
    prepared,
    public,
    window,
)
from mlirml.ops.functions import library
from mlirml.ops.registry import BOOL
from mlirml.special.floats import as_array

__all__ = [
    "binary_closing", "binary_dilation", "binary_erosion", "binary_fill_holes", "binary_opening", "binary_propagation",
    "generate_binary_structure",
]  # fmt: skip

_FEW = 3
"""The greatest number of iterations that are written out."""


@library("mlirml.ndimage", dtypes=BOOL)
def generate_binary_structure(rank: int, connectivity: int) -> np.ndarray:
    """The structure of neighbours that differ in at most `connectivity` indices, of 3 elements along each axis."""
    if rank < 1:
        return np.array(True, dtype=np.bool_)
    near: np.ndarray = np.abs(np.indices((3,) * rank) - 1).sum(axis=0) <= max(int(connectivity), 1)
    return near


def _structure(name: str, structure: Any, axes: tuple[int, ...]) -> np.ndarray:
    if structure is None:
        structure = generate_binary_structure(len(axes), 1)
    if isinstance(structure, Traced) and structure._known() is None:
        raise ShapeError(f"{name}: the structure must be known when the function is traced")
    found = np.asarray(structure, dtype=np.bool_)
    if found.ndim != len(axes):
        raise ShapeError(f"{name}: a structure of {found.ndim} dimensions for {len(axes)} axes")
    if not found.size:
        raise ShapeError(f"{name}: the structure is empty")
    return found


def _array(output: Any) -> Any:
    """The array for a result, which is one of booleans where a dtype is passed."""
    return output if hasattr(output, "shape") and not isinstance(output, type) else None


def _changed(
    name: str, input: Any, structure: Any, iterations: Any, mask: Any, output: Any, border_value: Any, origin: Any,
    axes: Any, dilates: bool,
) -> Any:  # fmt: skip
    x = as_array(input)
    if x.dtype.kind == "c":
        raise ShapeError(f"{name}: complex numbers are neither in nor out of a set")
    x = x.astype(np.bool_) if x.dtype == np.bool_ else x != 0
    _, out = prepared(name, x, _array(output))
    chosen = checked_axes(name, x, axes)
    shape = _structure(name, structure, chosen)
    origins = [integer(name, "origin", o) for o in for_each(name, "origin", origin, len(chosen))]
    if dilates:
        shape = shape[(slice(None, None, -1),) * shape.ndim]
        origins = [-o - (n + 1) % 2 for o, n in zip(origins, shape.shape)]
    margins = {a: window(name, n, o) for a, n, o in zip(chosen, shape.shape, origins)}
    if mask is not None:
        mask = as_array(mask) != 0
        if mask.shape != x.shape:
            raise ShapeError(f"{name}: a mask of shape {list(mask.shape)} for an input of {list(x.shape)}")
    if not x.size:
        return out.store(x)

    def step(x: Any) -> Any:
        new = _step(x, shape, margins, bool(border_value), dilates)
        return new if mask is None else np.where(mask, new, x)

    count = integer(name, "iterations", iterations)
    if 1 <= count <= _FEW:
        for _ in range(count):
            x = step(x)
    elif count > _FEW:
        x = control.fori_loop(0, count, lambda _, x: step(x), x)
    else:
        x, _ = control.while_loop(
            lambda state: np.any(state[0] != state[1]), lambda state: (step(state[0]), state[0]), (step(x), x)
        )
    return out.store(x)


def _step(x: Any, structure: np.ndarray, margins: dict[int, tuple[int, int]], border_value: bool, dilates: bool) -> Any:
    """One erosion, or dilation with the mirrored structure."""
    padded = extended(x, margins, dict.fromkeys(margins, "constant"), border_value)
    result: Any = None
    for position in np.argwhere(structure):
        tap = padded
        for axis, k in zip(margins, position):
            tap = part(tap, axis, int(k), x.shape[axis])
        result = tap if result is None else result | tap if dilates else result & tap
    if result is None:
        return np.full_like(x, not dilates)
    return result if len(margins) and padded is not x else result.copy()


@public(dtypes=BOOL)
def binary_erosion(
    input: Any, structure: Any = None, iterations: int = 1, mask: Any = None, output: Any = None,
    border_value: int = 0, origin: Any = 0, brute_force: bool = False, *, axes: Any = None,
) -> Any:  # fmt: skip
    """True where the structure, around an element, is covered by elements other than zero.

    Repeated `iterations` times, or, below 1, until nothing changes. Elements outside of `mask` keep their values.
    """
    return _changed("binary_erosion", input, structure, iterations, mask, output, border_value, origin, axes, False)


@public(dtypes=BOOL)
def binary_dilation(
    input: Any, structure: Any = None, iterations: int = 1, mask: Any = None, output: Any = None,
    border_value: int = 0, origin: Any = 0, brute_force: bool = False, *, axes: Any = None,
) -> Any:  # fmt: skip
    """True where the structure around an element other than zero reaches; options are those of `binary_erosion`."""
    return _changed("binary_dilation", input, structure, iterations, mask, output, border_value, origin, axes, True)


@library("mlirml.ndimage", dtypes=BOOL)
def binary_opening(
    input: Any, structure: Any = None, iterations: int = 1, output: Any = None, origin: Any = 0, mask: Any = None,
    border_value: int = 0, brute_force: bool = False, *, axes: Any = None,
) -> Any:  # fmt: skip
    """The dilation of the erosion."""
    eroded = binary_erosion(input, structure, iterations, mask, None, border_value, origin, axes=axes)
    return binary_dilation(eroded, structure, iterations, mask, output, border_value, origin, axes=axes)


@library("mlirml.ndimage", dtypes=BOOL)
def binary_closing(
    input: Any, structure: Any = None, iterations: int = 1, output: Any = None, origin: Any = 0, mask: Any = None,
    border_value: int = 0, brute_force: bool = False, *, axes: Any = None,
) -> Any:  # fmt: skip
    """The erosion of the dilation."""
    dilated = binary_dilation(input, structure, iterations, mask, None, border_value, origin, axes=axes)
    return binary_erosion(dilated, structure, iterations, mask, output, border_value, origin, axes=axes)


@library("mlirml.ndimage", dtypes=BOOL)
def binary_propagation(
    input: Any, structure: Any = None, mask: Any = None, output: Any = None, border_value: int = 0, origin: Any = 0, *,
    axes: Any = None,
) -> Any:  # fmt: skip
    """The dilation inside of a mask, repeated until nothing changes."""
    return binary_dilation(input, structure, -1, mask, output, border_value, origin, axes=axes)


@public(dtypes=BOOL)
def binary_fill_holes(
    input: Any, structure: Any = None, output: Any = None, origin: Any = 0, *, axes: Any = None
) -> Any:
    """The array with the zeros that no path of zeros joins to its border filled."""
    x = as_array(input) != 0
    out: Output = prepared("binary_fill_holes", x, _array(output))[1]
    outside = binary_dilation(np.zeros_like(x), structure, -1, ~x, None, 1, origin, axes=axes)
    return out.store(~outside)
