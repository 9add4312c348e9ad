"""NumPy's functions that join arrays of dynamic lengths: each is stored into one buffer, with room for the longest."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from mlirml.frontend.arrays.array import Traced
from mlirml.frontend.arrays.number_lists import pays
from mlirml.frontend.arrays.tracer import Cell
from mlirml.frontend.loops.dynamic_indices import Axis, Number
from mlirml.frontend.loops.dynamic_slices.slices import (
    DynamicSlice,
    as_part,
    axis_of,
    part,
    refused,
    same_length,
    store,
)
from mlirml.frontend.tracing.trace import Trace
from mlirml.ir.text.dtypes import as_dtype


def _parts(trace: Trace, arrays: Any, dtype: Any) -> tuple[list[DynamicSlice], np.dtype]:
    parts = [as_part(trace, x) for x in arrays]
    lengths = [n for p in parts for n in p._shape if isinstance(n, Traced)]
    if lengths and not any(pays(trace, n) for n in lengths):
        raise refused(trace, dynamic_part(parts), "this join")
    kind = as_dtype(dtype) if dtype is not None else np.result_type(*(p.dtype for p in parts))
    return parts, kind


def dynamic_part(parts: Sequence[DynamicSlice]) -> DynamicSlice:
    """The first part of dynamic length, or the first one."""
    return next((x for x in parts if any(isinstance(n, Traced) for n in x._shape)), parts[0])


def _common(trace: Trace, parts: Sequence[DynamicSlice], dims: Sequence[int]) -> list[tuple[Number, int]]:
    """The lengths along some dimensions, which all parts have in common, and their limits."""
    found = []
    for d in dims:
        length = parts[0]._shape[d], parts[0]._most[d]
        for other in parts[1:]:
            length = same_length(trace, length, (other._shape[d], other._most[d]), (parts[0], other))
        found.append(length)
    return found


def concatenate(trace: Trace, arrays: Any, axis: Any = 0, out: Any = None, dtype: Any = None, **_: Any) -> Any:
    """`np.concatenate`: each array is stored after the one before."""
    parts, kind = _parts(trace, arrays, dtype)
    rank = parts[0].ndim
    if axis is None or out is not None or any(p.ndim != rank for p in parts) or not rank:
        raise refused(trace, dynamic_part(parts), "this join")
    axis = axis_of(axis, rank, "concatenate")
    common = _common(trace, parts, [d for d in range(rank) if d != axis])
    longest = sum(p._most[axis] for p in parts)
    most = [most for _, most in common]
    most.insert(axis, longest)
    buffer = Traced(trace, Cell(trace.builder.empty(tuple(most), kind), owned=True))
    end: Any = 0
    for p in parts:
        if p._most[axis]:
            axes = [Axis(end if d == axis else 0, 1, d) for d in range(rank)]
            store(part(buffer, axes, p._shape, p._most), p)
        end = end + p._length(axis)
    shape = [length for length, _ in common]
    shape.insert(axis, end)
    return part(buffer, [Axis(0, 1, d) for d in range(rank)], shape, most)


def stack(trace: Trace, arrays: Any, axis: Any = 0, out: Any = None, *, dtype: Any = None, **_: Any) -> Any:
    """`np.stack`."""
    parts, kind = _parts(trace, arrays, dtype)
    rank = parts[0].ndim
    if out is not None or any(p.ndim != rank for p in parts):
        raise refused(trace, dynamic_part(parts), "this join")
    axis = axis_of(axis, rank + 1, "stack")
    common = _common(trace, parts, range(rank))
    common.insert(axis, (len(parts), len(parts)))
    shape, most = ([pair[i] for pair in common] for i in (0, 1))
    buffer = Traced(trace, Cell(trace.builder.empty(tuple(most), kind), owned=True))
    for number, p in enumerate(parts):
        axes = [Axis(0, 1, d) for d in range(rank)]
        axes.insert(axis, Axis(number))
        store(part(buffer, axes, p._shape, p._most), p)
    return part(buffer, [Axis(0, 1, d) for d in range(rank + 1)], shape, most)


def hstack(trace: Trace, tup: Any, **options: Any) -> Any:
    """`np.hstack`."""
    return concatenate(trace, tup, 0 if all(np.ndim(x) == 1 for x in tup) else 1, **options)


def vstack(trace: Trace, tup: Any, **options: Any) -> Any:
    """`np.vstack`, a vector being a row."""
    return concatenate(trace, [x[None] if x.ndim == 1 else x for x in _arrays(trace, tup)], **options)


def column_stack(trace: Trace, tup: Any) -> Any:
    """`np.column_stack`, a vector being a column."""
    return concatenate(trace, [x[:, None] if x.ndim == 1 else x for x in _arrays(trace, tup)], 1)


def _arrays(trace: Trace, arrays: Any) -> list[DynamicSlice]:
    return [as_part(trace, x) for x in arrays]


FUNCTIONS: dict[Callable[..., Any], Callable[..., Any]] = {
    np.concatenate: concatenate,
    np.stack: stack,
    np.hstack: hstack,
    np.vstack: vstack,
    np.column_stack: column_stack,
}
