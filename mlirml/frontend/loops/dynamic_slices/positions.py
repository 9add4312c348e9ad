"""Indices of one array of positions beside slices with dynamic bounds: `a[[k, p], k:] = a[[p, k], k:]`."""

from __future__ import annotations

from typing import Any

import numpy as np

from mlirml.core.dataclass import dataclass
from mlirml.errors import CaptureError, IndexOutOfBoundsError, ShapeError
from mlirml.frontend.arrays.array import Traced
from mlirml.frontend.arrays.indexing import is_dynamic
from mlirml.frontend.loops.dynamic_indices import Number
from mlirml.frontend.loops.dynamic_slices.slices import (
    DynamicSlice,
    _iterable,
    as_part,
    is_one,
    materialised,
    moved,
    refused,
    require,
    store,
)
from mlirml.ir.text.builder import Check

_FEW = 4
"""Rows that are stored one after another without a loop."""


@dataclass(frozen=True)
class RowsIndex:
    """An index of an array of positions, slices and numbers: the rows at the positions are slices of the array.

    `dim` is the dimension of the positions in the result, `inner` that in the slices of all rows.
    """

    positions: Traced
    before: tuple[Any, ...]
    after: tuple[Any, ...]
    dim: int
    inner: int

    def at(self, item: Any) -> tuple[Any, ...]:
        """The index with another item for the positions."""
        return (*self.before, item, *self.after)


def has_rows(index: Any) -> bool:
    """True for an index of one array of positions with slices beside it."""
    items = index if isinstance(index, tuple) else (index,)
    arrays = sum(map(_is_array, items))
    return arrays == 1 and any(isinstance(item, slice) or item is Ellipsis for item in items)


def _is_array(item: Any) -> bool:
    return isinstance(item, list) or (isinstance(item, (Traced, np.ndarray)) and len(item.shape) > 0)


def rows_index(x: DynamicSlice, index: tuple[Any, ...]) -> RowsIndex:
    """The index, with checked positions."""
    trace, items = x._trace, list(index)
    if any(item is None or is_dynamic(item) for item in items) or sum(item is Ellipsis for item in items) > 1:
        raise refused(trace, x, "an index with new axes, masks or arrays beside slices")
    rest = x.ndim - sum(item is not Ellipsis for item in items)
    if rest < 0:
        raise IndexOutOfBoundsError(f"too many indices: {len(items)} for an array of {x.ndim} dimension(s)")
    at = next((n for n, item in enumerate(items) if item is Ellipsis), len(items))
    items[at : at + 1] = [slice(None)] * rest
    axis = next(n for n, item in enumerate(items) if _is_array(item))
    given: Any = trace.array(items[axis], copy=False)
    if given.ndim != 1 or given.dtype.kind not in "iu":
        raise refused(trace, x, f"an index by {given._describe()} beside slices")
    size, given = x._length(axis), given.astype(np.int64)
    positions = np.where(given < 0, given + size, given)
    in_bounds = np.logical_and(positions >= 0, positions < size).all()
    require(trace, in_bounds, Check("IndexOutOfBoundsError", f"a position is out of bounds for axis {axis}"))
    indexed = [n for n, item in enumerate(items) if not isinstance(item, slice)]
    together = indexed == list(range(indexed[0], indexed[-1] + 1))
    slices = [sum(isinstance(item, slice) for item in items[:n]) for n in (indexed[0], axis)]
    found: Any = trace.array(positions, copy=False)
    return RowsIndex(found, tuple(items[:axis]), tuple(items[axis + 1 :]), slices[0] if together else 0, slices[1])


def rows_at(x: DynamicSlice, index: tuple[Any, ...]) -> DynamicSlice:
    """`x[index]`, a copy in NumPy."""
    rows = rows_index(x, index)
    every = x._operations.part(x, rows.at(slice(None)))
    count = rows.positions.shape[0]

    def of_result(values: tuple[Any, ...]) -> list[Any]:
        found = [*values[: rows.inner], *values[rows.inner + 1 :]]
        found.insert(rows.dim, count)
        return found

    def element(indices: tuple[Number, ...]) -> Any:
        own = [*indices]
        position: Any = rows.positions[own.pop(rows.dim)]
        own.insert(rows.inner, position)
        return every._at(own)

    sample = np.ones((1,) * every.ndim, x.dtype)
    shape, most = of_result(every._shape), of_result(every._most)
    return DynamicSlice(x._trace, shape, most, sample, element, moved(every))


def store_rows(x: DynamicSlice, index: tuple[Any, ...], value: Any) -> None:
    """`x[index] = value`, one row after another."""
    if x._location is None:
        raise CaptureError(
            "a store into what was computed of a slice of changing length",
            help="give it a name first, and store into that",
        )
    rows, given, base = rows_index(x, index), as_part(x._trace, value), x._location.base
    count = rows.positions.shape[0]
    if any(r.base._cell is base._cell for r in given._reads):
        given = materialised(given)
    rank = x.ndim - sum(not isinstance(item, slice) for item in (*rows.before, *rows.after))
    dim = rows.dim - (rank - given.ndim)
    if given.ndim > rank or (dim >= 0 and not is_one(given._shape[dim]) and given._shape[dim] != count):
        raise ShapeError(f"assignment: {given._describe()} does not broadcast to {count} rows")

    def put(number: Any) -> None:
        row = given
        if dim >= 0:
            position = 0 if is_one(given._shape[dim]) else number
            row = given[(slice(None),) * dim + (position,)]
        store(x._operations.part(x, rows.at(rows.positions[number])), row)

    if count <= _FEW:
        for number in range(count):
            put(number)
        return

    def iteration(number: Number) -> None:
        base  # noqa: B018  (the loop stores into it)
        put(number)

    x._trace.hooks.for_(_iterable(count), iteration, (), (), (), ("base",), "", "", False)
