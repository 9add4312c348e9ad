"""Indexing by arrays of dynamic length: positions, of which the elements are gathered or stored at, and masks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from mlirml.core.dataclass import dataclass
from mlirml.errors import CaptureError, IndexOutOfBoundsError, InvalidIndexError, ShapeError
from mlirml.frontend.arrays.array import Traced
from mlirml.frontend.arrays.indexing import is_dynamic
from mlirml.frontend.arrays.tracer import Cell
from mlirml.frontend.loops.dynamic_indices import Number
from mlirml.frontend.loops.dynamic_slices.compaction import (
    as_slice,
    compaction_of,
    flatnonzero,
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
    is_mask,
    materialised,
    moved,
    refused,
    same_length,
    store,
    stretched,
    transposed,
    whole,
)
from mlirml.frontend.tracing.trace import Trace


def gathered(base: Traced, index: Any) -> DynamicSlice:
    """`base[index]` for arrays of positions of dynamic length, and numbers, along the first dimensions."""
    check_front_end(base._trace)
    beside = beside_slices(base, index)
    if beside is not None:
        return beside.elements()
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

    def put(index: tuple[Any, ...], item: Any) -> None:
        base[index] = item

    beside = beside_slices(base, given_index)
    if beside is not None:
        beside.store(value)
        return
    parts = [_stored(p) for p in _positions(base, given_index)]
    rest = base.shape[len(parts) :]
    _store_each(base, parts, (rest, rest), value, put)


def _store_each(
    base: Traced,
    parts: Sequence[DynamicSlice],
    rest: tuple[Sequence[Number], Sequence[int]],
    value: Any,
    put: Callable[[tuple[Any, ...], Any], None],
) -> None:
    """Store the items of a value into `base` at positions along the first dimensions, one after another.

    `rest` are the sizes of the other dimensions, and their limits.
    """
    trace = base._trace
    lengths, most = common_shape(trace, parts)
    rank, whole_shape = len(lengths), [*lengths, *rest[0]]
    given = as_part(trace, value)
    sample = np.ones((1,) * len(whole_shape), base.dtype)
    target = DynamicSlice(trace, whole_shape, [*most, *rest[1]], sample, None, ())  # type: ignore[arg-type]
    if given.ndim > target.ndim:
        raise ShapeError(f"assignment: {given._describe()} does not broadcast to {target._describe()}")
    common_shape(trace, [target, given])
    check_unchanged(given)
    if any(r.base._cell is base._cell for r in given._reads):
        given = materialised(given)

    def level(found: tuple[Number, ...]) -> None:
        if len(found) == len(whole_shape):
            put((*(stretched(p, found[:rank]) for p in parts), *found[rank:]), stretched(given, found))
            return

        def iteration(number: Number) -> None:
            base  # noqa: B018  (the loop stores into it)
            level((*found, number))

        trace.hooks.for_(_iterable(whole_shape[len(found)]), iteration, (), (), (), ("base",), "", "", False)

    level(())


@dataclass(frozen=True)
class BesideSlices:
    """An index of one array of dynamic length beside slices: it is one along the first dimension of a view."""

    view: Any
    positions: Any
    dim: int

    def elements(self) -> DynamicSlice:
        """The elements, whose dimension of positions is where the index has these."""
        found = as_part(self.view._trace, self.view[self.positions])
        return transposed(found, [*range(1, self.dim + 1), 0, *range(self.dim + 1, found.ndim)])

    def store(self, value: Any) -> None:
        """Store a value, which is broadcast to the elements."""
        given, rank = as_part(self.view._trace, value), self.view.ndim
        given = given[(None,) * (rank - given.ndim)] if given.ndim < rank else given
        self.view[self.positions] = transposed(given, [self.dim, *(d for d in range(rank) if d != self.dim)])


def beside_slices(x: Any, index: Any) -> BesideSlices | None:
    """The parts of an index of slices and one array of dynamic length in one dimension; None for another one."""
    items = list(index) if isinstance(index, tuple) else [index]
    if isinstance(x, DynamicSlice):
        items = [flatnonzero(x._trace, item) if is_mask(item) else item for item in items]
    arrays = [item for item in items if is_dynamic(item)]
    others = [item for item in items if not is_dynamic(item)]
    alike = all(item is Ellipsis or isinstance(item, slice) for item in others)
    if len(arrays) != 1 or not others or not alike or arrays[0].ndim != 1:
        return None
    rest = x.ndim - sum(item is not Ellipsis for item in items)
    at = next((n for n, item in enumerate(items) if item is Ellipsis), len(items))
    items[at : at + 1] = [slice(None)] * rest
    dim = next(n for n, item in enumerate(items) if is_dynamic(item))
    view = x[tuple(slice(None) if is_dynamic(item) else item for item in items)]
    order = [dim, *(d for d in range(x.ndim) if d != dim)]
    return BesideSlices(view.transpose(order), arrays[0], dim)


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
    """`x[index]` for a mask or positions along the first dimensions, where `x` or one of these has a dynamic length."""
    trace = x._trace
    parts = _parts(x, index)
    if parts[0].dtype == np.bool_:
        return _under_mask(trace, x, parts[0])
    shape, most = common_shape(trace, parts)
    rank, used = len(shape), len(parts)

    def element(at: tuple[Number, ...]) -> Any:
        row = x[tuple(stretched(p, at[:rank]) for p in parts)]
        return row._at(at[rank:]) if isinstance(row, DynamicSlice) else row

    sample = np.ones((1,) * (rank + x.ndim - used), x.dtype)
    reads = [*(read for p in parts for read in moved(p)), *moved(x)]
    return DynamicSlice(trace, [*shape, *x._shape[used:]], [*most, *x._most[used:]], sample, element, reads)


def store_at(x: DynamicSlice, index: Any, value: Any, ufunc: np.ufunc | None = None) -> None:
    """`x[index] = value` for a mask or positions along the first dimensions, or `ufunc.at(x, index, value)`.

    The elements are stored one after another: of equal positions the last one wins.
    """
    trace, parts = x._trace, _parts(x, index)
    if x._location is None:
        raise CaptureError(
            "a store into what was computed of a slice of changing length",
            help="give it a name first, and store into that",
        )
    base = x._location.base
    if parts[0].dtype == np.bool_:
        mask = parts[0]
        same_length(trace, (x._shape[0], x._most[0]), (mask._shape[0], mask._most[0]), (x, mask))
        parts = [nonzero(trace, mask)[0]]
    parts = [_stored(p) for p in parts]
    parts = [materialised(p) if p._location is not None and p._location.base._cell is base._cell else p for p in parts]
    used = len(parts)

    def put(at: tuple[Any, ...], item: Any) -> None:
        target = x._operations.part(x, at)
        new = item if ufunc is None else trace.call_ufunc(ufunc, "__call__", (target._at(()), item), {})
        store(target, new.astype(x.dtype) if isinstance(new, Traced) else new)

    _store_each(base, parts, (x._shape[used:], x._most[used:]), value, put)


def _parts(x: DynamicSlice, index: Any) -> list[DynamicSlice]:
    """The items of an index of a dynamic slice: a mask, or positions and numbers along the first dimensions."""
    trace, items = x._trace, index if isinstance(index, tuple) else (index,)
    parts = [as_slice(item) if is_dynamic(item) else as_part(trace, item) for item in items]
    if len(parts) > x.ndim:
        raise IndexOutOfBoundsError(f"too many indices: {len(parts)} for an array of {x.ndim} dimension(s)")
    for one in parts:
        if one.dtype == np.bool_ and (len(parts) > 1 or one.ndim != 1):
            raise refused(trace, x, f"an index by {one._describe()}")
        if one.dtype.kind not in "biu":
            raise InvalidIndexError(f"an index must be an integer or an array of integers, got {one._describe()}")
    return parts


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
