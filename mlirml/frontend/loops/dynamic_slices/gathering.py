"""Indexing by arrays of dynamic length: positions, of which the elements are gathered or stored at, and masks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from mlirml.errors import CaptureError, IndexOutOfBoundsError, InvalidIndexError, ShapeError
from mlirml.frontend.arrays.array import Traced
from mlirml.frontend.arrays.indexing import is_dynamic
from mlirml.frontend.arrays.tracer import Cell
from mlirml.frontend.loops.dynamic_indices import Number
from mlirml.frontend.loops.dynamic_slices.compaction import (
    as_slice,
    compaction_of,
    nonzero,
    true_everywhere,
    whole_buffer,
)
from mlirml.frontend.loops.dynamic_slices.slices import (
    DynamicSlice,
    _iterable,
    as_part,
    check_front_end,
    check_unchanged,
    common_shape,
    materialised,
    moved,
    refused,
    same_length,
    store,
    stretched,
    whole,
)
from mlirml.frontend.tracing.trace import Trace


def gathered(base: Traced, index: Any) -> DynamicSlice:
    """`base[index]` for arrays of positions of dynamic length, and numbers, along the first dimensions."""
    check_front_end(base._trace)
    parts = _positions(base, index)
    trace, used = base._trace, len(parts)
    shape, most = common_shape(trace, parts)
    rank, rest = len(shape), base.shape[used:]

    def element(found: tuple[Number, ...]) -> Any:
        index = (*(stretched(p, found[:rank]) for p in parts), *found[rank:])
        return base[index]

    sample = np.ones((1,) * (rank + len(rest)), base.dtype)
    reads = [*(read for p in parts for read in moved(p)), *moved(whole(base))]
    return DynamicSlice(trace, [*shape, *rest], [*most, *rest], sample, element, reads)


def scattered(base: Traced, given_index: Any, value: Any) -> None:
    """`base[index] = value`; of equal positions the last one wins."""
    check_front_end(base._trace)
    parts = [_stored(p) for p in _positions(base, given_index)]
    trace, used = base._trace, len(parts)
    lengths, most = common_shape(trace, parts)
    rank, rest = len(lengths), base.shape[used:]
    whole_shape = [*lengths, *rest]
    given = as_part(trace, value)
    target = DynamicSlice(trace, whole_shape, [*most, *rest], np.ones((1,) * len(whole_shape), base.dtype), None, ())  # type: ignore[arg-type]
    if given.ndim > target.ndim:
        raise ShapeError(f"assignment: {given._describe()} does not broadcast to {target._describe()}")
    common_shape(trace, [target, given])
    check_unchanged(given)
    if any(r.base._cell is base._cell for r in given._reads):
        given = materialised(given)

    def level(found: tuple[Number, ...]) -> None:
        if len(found) == len(whole_shape):
            index = (*(stretched(p, found[:rank]) for p in parts), *found[rank:])
            base[index] = stretched(given, found)
            return

        def iteration(number: Number) -> None:
            base  # noqa: B018  (the loop stores into it)
            level((*found, number))

        trace.hooks.for_(_iterable(whole_shape[len(found)]), iteration, (), (), (), ("base",), "", "", False)

    level(())


def _stored(p: DynamicSlice) -> DynamicSlice:
    """Positions that stores do not change."""
    return p if not p.ndim or p._location is not None else materialised(p)


def _positions(base: Traced, index: Any) -> list[DynamicSlice]:
    """The positions along the first dimensions, which an index of arrays and numbers gives."""
    trace = base._trace
    parts: list[DynamicSlice] = []
    for item in index if isinstance(index, tuple) else (index,):
        if item is Ellipsis or item is None or isinstance(item, slice):
            raise refused(trace, _first_dynamic(index), "an index with a slice beside it")
        found = as_slice(item) if is_dynamic(item) else as_part(trace, item)
        if found.dtype == np.bool_:
            size = base.shape[len(parts)] if len(parts) < base.ndim else 0
            if found.ndim != 1:
                raise refused(trace, _first_dynamic(index), "a mask of several dimensions")
            same_length(trace, (found._shape[0], found._most[0]), (size, size), (found,))
            found = nonzero(trace, found)[0]
        if found.dtype.kind not in "iu":
            raise InvalidIndexError(f"an index must be an integer or an array of integers, got {found._describe()}")
        parts.append(found)
    if len(parts) > base.ndim:
        raise IndexOutOfBoundsError(f"too many indices: {len(parts)} for an array of {base.ndim} dimension(s)")
    return parts


def _first_dynamic(index: Any) -> DynamicSlice:
    items: Sequence[Any] = index if isinstance(index, tuple) else (index,)
    return as_slice(next(item for item in items if is_dynamic(item)))


def elements_at(x: DynamicSlice, index: Any) -> DynamicSlice:
    """`x[index]` for a mask or positions along the first dimension, where `x` or both are of dynamic length."""
    trace = x._trace
    found = as_slice(index) if is_dynamic(index) else as_part(trace, index)
    if found.ndim != 1:
        raise refused(trace, x, f"an index by {found._describe()}")
    if found.dtype == np.bool_:
        return _under_mask(trace, x, found)
    if found.dtype.kind not in "iu":
        raise InvalidIndexError(f"an index must be an integer or an array of integers, got {found._describe()}")

    def element(at: tuple[Number, ...]) -> Any:
        row = x[found._at(at[:1])]
        return row._at(at[1:]) if isinstance(row, DynamicSlice) else row

    sample = np.ones((1,) * x.ndim, x.dtype)
    reads = [*moved(found), *moved(x)]
    return DynamicSlice(trace, [*found._shape, *x._shape[1:]], [*found._most, *x._most[1:]], sample, element, reads)


def store_at(x: DynamicSlice, index: Any, value: Any) -> None:
    """`x[index] = value` for a mask or positions along the first dimension, both of dynamic length."""
    trace, found, given = x._trace, as_slice(index), as_part(x._trace, value)
    if found.ndim != 1 or found.dtype.kind not in "biu":
        raise refused(trace, x, f"a store at an index by {found._describe()}")
    if x._location is None:
        raise CaptureError(
            "a store into what was computed of a slice of changing length",
            help="give it a name first, and store into that",
        )
    if found.dtype == np.bool_:
        same_length(trace, (x._shape[0], x._most[0]), (found._shape[0], found._most[0]), (x, found))
        found = nonzero(trace, found)[0]
    positions = found if found._location is not None else materialised(found)
    if given.ndim > x.ndim:
        raise ShapeError(f"assignment: {given._describe()} does not broadcast to the elements at the index")
    if given.ndim == x.ndim and not (type(given._shape[0]) is int and given._shape[0] == 1):
        same_length(trace, (given._shape[0], given._most[0]), (found._shape[0], found._most[0]), (given, found))
    check_unchanged(given)
    base = x._location.base
    if any(r.base._cell is base._cell for r in given._reads):
        given = materialised(given)
    if positions._location is not None and positions._location.base._cell is base._cell:
        positions = materialised(positions)

    def iteration(number: Number) -> None:
        base  # noqa: B018  (the loop stores into it)
        row = (
            given
            if given.ndim < x.ndim
            else given[0 if type(given._shape[0]) is int and given._shape[0] == 1 else number]
        )
        store(x._operations.part(x, positions._at((number,))), row)

    trace.hooks.for_(_iterable(positions._shape[0]), iteration, (), (), (), ("base",), "", "", False)


def _under_mask(trace: Trace, x: DynamicSlice, mask: DynamicSlice) -> DynamicSlice:
    same_length(trace, (x._shape[0], x._most[0]), (mask._shape[0], mask._most[0]), (x, mask))
    if any(isinstance(n, Traced) for n in x._shape[1:]):
        raise refused(trace, x, "a mask of it")
    buffer = whole_buffer(x)
    size = buffer.shape[0]
    if not size:
        return x
    return compaction_of(trace, true_everywhere(trace, mask, size)).compressed(
        Traced(trace, Cell(buffer._contents())), 1
    )
