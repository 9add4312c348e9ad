"""NumPy's functions that give the elements of arrays of dynamic lengths other positions: shapes, shifts, insertions."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import reduce
from operator import mul
from typing import Any

import numpy as np

from mlirml.errors import ShapeError
from mlirml.frontend.arrays.array import Traced
from mlirml.frontend.arrays.indexing import is_dynamic
from mlirml.frontend.loops.dynamic_indices import Number
from mlirml.frontend.loops.dynamic_slices import written
from mlirml.frontend.loops.dynamic_slices.captured import captured
from mlirml.frontend.loops.dynamic_slices.compaction import whole_buffer
from mlirml.frontend.loops.dynamic_slices.joins import concatenate, dynamic_part
from mlirml.frontend.loops.dynamic_slices.slices import DynamicSlice, as_part, axis_of, moved, refused, require
from mlirml.frontend.tracing.trace import Trace
from mlirml.ir.text.builder import Check


def reshape(x: DynamicSlice, *shape: Any, order: str = "C", **_: Any) -> Any:
    """`np.reshape` to sizes of which one is -1 or a number of the program."""
    given = shape[0] if len(shape) == 1 and isinstance(shape[0], (tuple, list)) else shape
    sizes = [size if isinstance(size, Traced) else int(size.__index__()) for size in given]
    if not any(isinstance(n, Traced) for n in x._shape):
        return whole_buffer(x).reshape(given, order=order)
    if order != "C":
        raise refused(x._trace, x, "`.reshape` in Fortran's order")
    open_ = [d for d, size in enumerate(sizes) if isinstance(size, Traced) or size == -1]
    if len(open_) != 1 or any(type(size) is int and size < -1 for size in sizes):
        raise refused(x._trace, x, "`.reshape` to sizes of which not one is open")
    row: Number = math.prod(map(x._length, range(1, x.ndim)))
    others = math.prod(size for d, size in enumerate(sizes) if d != open_[0] and isinstance(size, int))
    if not others:
        raise ShapeError("reshape: -1 beside a size of 0")
    total = x._length(0) * row
    length = total if others == 1 else total // others
    size = sizes[open_[0]]
    fits: Any = True
    if others > 1 and (isinstance(row, Traced) or row % others):
        fits = length * others == total
    if isinstance(size, Traced):
        fits = x._trace.hooks.and_(fits, lambda: length == size)
    require(x._trace, fits, Check("ShapeError", "reshape: the elements do not fill the new shape"))
    lengths: list[Number] = [length if d == open_[0] else n for d, n in enumerate(sizes)]
    most = [-(-math.prod(x._most) // others) if d == open_[0] else 0 for d in range(len(sizes))]
    if x.ndim > 1 or others > 1:
        return _with_shape(x, lengths, most)
    new_axes: Any = tuple(slice(None) if d == open_[0] else None for d in range(len(sizes)))
    return x[new_axes]


def _with_shape(x: DynamicSlice, lengths: Sequence[Number], most: Sequence[int]) -> DynamicSlice:
    """The elements in row-major order in another shape."""
    strides = [reduce(mul, lengths[d + 1 :], 1) for d in range(len(lengths))]
    sizes = [*map(x._length, range(x.ndim))]
    rows = [math.prod(sizes[d + 1 :]) for d in range(x.ndim)]

    def element(indices: tuple[Number, ...]) -> Any:
        flat: Any = 0
        for number, stride in zip(indices, strides):
            flat = flat + number * stride
        if x.ndim == 1:
            return x._at([flat])
        return x._at([flat // row % n if d else flat // row for d, (row, n) in enumerate(zip(rows, sizes))])

    sample = np.ones((1,) * len(lengths), x.dtype)
    return DynamicSlice(x._trace, lengths, most, sample, element, moved(x))


def append(trace: Trace, arr: Any, values: Any, axis: Any = None) -> Any:
    """`np.append`."""
    if axis is None:
        return concatenate(trace, [_vector(trace, arr), _vector(trace, values)])
    return concatenate(trace, [arr, values], axis)


def insert(trace: Trace, arr: Any, obj: Any, values: Any, axis: Any = None) -> Any:
    """`np.insert` of values before one position of a vector."""
    x, added = as_part(trace, arr), _vector(trace, values)
    if x.ndim == 1 and axis in (None, 0, -1) and np.ndim(obj) == 1:
        return captured(trace, written.insert)(x, np.asarray(obj) if type(obj) is list else obj, values)
    if x.ndim != 1 or axis not in (None, 0, -1) or np.ndim(obj) or isinstance(obj, slice):
        raise refused(trace, dynamic_part([x, added]), "this form of `np.insert`")
    size = x._length(0)
    require(
        trace,
        trace.hooks.and_(obj >= -size, lambda: obj <= size),
        Check("IndexOutOfBoundsError", "insert: the position is out of bounds for an array of changing length"),
    )
    return concatenate(trace, [x[:obj], added, x[obj:]], 0, None, x.dtype)


def roll(x: DynamicSlice, shift: Any, axis: Any = None) -> Any:
    """`np.roll` along an axis."""
    trace = x._trace
    if (x.ndim != 1 and type(axis) is not int) or np.ndim(shift):
        raise refused(trace, x, "`np.roll` in more than one dimension")
    dim = axis_of(axis or 0, x.ndim, "roll")
    size, whole = x._length(dim), (slice(None),) * dim
    first = size - shift % trace.call_ufunc(np.maximum, "__call__", (size, 1), {})
    parts = [(*whole, bounds) for bounds in (slice(first, None), slice(None, first))]
    return concatenate(trace, [x[index] for index in parts], dim)


def ravel(x: DynamicSlice, order: str = "C") -> Any:
    """`np.ravel`."""
    return x if x.ndim == 1 else reshape(x, -1, order=order)


def _vector(trace: Trace, x: Any) -> DynamicSlice:
    """The elements of any operand in one dimension."""
    if is_dynamic(x):
        found: DynamicSlice = ravel(as_part(trace, x))
        return found
    array: Any = trace.array(x, copy=False)
    return as_part(trace, array.reshape(-1))


FUNCTIONS: dict[Callable[..., Any], Callable[..., Any]] = {np.reshape: reshape, np.ravel: ravel, np.roll: roll}
METHODS: dict[str, Callable[..., Any]] = {
    "compress": lambda x, condition, axis=None: np.compress(condition, x, axis),
    "reshape": reshape,
    "tolist": lambda x: x._trace.hooks.function(list)(x),
    "ravel": ravel,
    "flatten": lambda x, order="C": ravel(x, order).copy(),
}
NAMED: dict[str, Callable[..., Any]] = {"append": append, "insert": insert}
