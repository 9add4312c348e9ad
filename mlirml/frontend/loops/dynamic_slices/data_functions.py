"""NumPy's functions of sets, masks and counts, whose results have lengths that depend on data."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from mlirml.errors import ShapeError, UnsupportedSyntaxError
from mlirml.frontend.arrays.array import Traced
from mlirml.frontend.arrays.indexing import is_dynamic
from mlirml.frontend.arrays.tracer import Cell
from mlirml.frontend.loops.dynamic_indices import Axis
from mlirml.frontend.loops.dynamic_slices import written
from mlirml.frontend.loops.dynamic_slices.captured import captured, form_of
from mlirml.frontend.loops.dynamic_slices.compaction import (
    argwhere,
    as_slice,
    beginning,
    compaction_of,
    flatnonzero,
    nonzero,
    truth,
    whole_buffer,
)
from mlirml.frontend.loops.dynamic_slices.counted_functions import bincount, histogram_bin_edges, repeat
from mlirml.frontend.loops.dynamic_slices.functions import padded, sorted_whole
from mlirml.frontend.loops.dynamic_slices.slices import DynamicSlice, axis_of, check_front_end, combined, part, store
from mlirml.frontend.tracing.trace import Trace

_INDEX = np.dtype(np.int64)


def _flat(trace: Trace, a: Any, name: str) -> tuple[Traced, Any]:
    """An array in one dimension, and how many of its elements count, or None for all of them."""
    if not is_dynamic(a):
        return trace.array(a, copy=False).reshape(-1), None
    found = as_slice(a)
    if found.ndim != 1:
        raise ShapeError(f"{name}: an array of several dimensions, one of which depends on the data")
    return whole_buffer(found), found._length(0)


def _in_order(trace: Trace, a: Any, name: str) -> tuple[Traced, Any]:
    """The elements in order, and how many of them count."""
    if not is_dynamic(a):
        flat, count = _flat(trace, a, name)
        return trace.call_function(np.sort, (flat,), {}), count
    found = as_slice(a)
    flat, count = _flat(trace, found, name)
    return (sorted_whole(found) if flat.size else flat), count


def _empty(trace: Trace, dtype: np.dtype) -> DynamicSlice:
    return part(trace.known(np.zeros(0, dtype)), [Axis(0, 1, 0)], [0], [0])


def _nan(trace: Trace, x: Traced) -> Traced:
    return trace.call_operator(np.not_equal, (x, x))


def _first_of_equals(trace: Trace, ordered: Traced, count: Any, equal_nan: bool) -> Traced:
    """A mask of the elements of an array in order that differ from the one before."""
    call = trace.call_operator
    before, after = ordered[:-1], ordered[1:]
    differ = call(np.not_equal, (after, before))
    if equal_nan and ordered.dtype.kind in "fc":
        nans = call(np.bitwise_and, (_nan(trace, after), _nan(trace, before)))
        differ = call(np.bitwise_and, (differ, call(np.invert, (nans,))))
    first = trace.call_function(np.concatenate, ((np.ones(1, np.bool_), differ),), {})
    if count is not None:
        number = trace.known(np.arange(ordered.size))
        first = call(np.bitwise_and, (first, call(np.less, (number, count))))
    return first


def unique(
    trace: Trace,
    ar: Any,
    return_index: Any = False,
    return_inverse: Any = False,
    return_counts: Any = False,
    axis: Any = None,
    *,
    equal_nan: Any = True,
    sorted: Any = True,
) -> Any:
    """`np.unique` of all elements; they are sorted in any case."""
    if axis is not None and not (axis in (0, -1) and np.ndim(ar) == 1):
        raise UnsupportedSyntaxError("unique: `axis` is not compiled", help="compare the rows outside")
    shape = None if is_dynamic(ar) else trace.array(ar, copy=False).shape
    by_position = bool(return_index or return_inverse)
    flat, count = _flat(trace, ar, "unique")
    if not flat.size:
        others = [_empty(trace, _INDEX)] * sum(map(bool, (return_index, return_inverse, return_counts)))
        return (_empty(trace, flat.dtype), *others) if others else _empty(trace, flat.dtype)
    if by_position:
        order = trace.call_function(np.argsort, (padded(as_slice(ar)) if is_dynamic(ar) else flat,), {"kind": "stable"})
        ordered = flat[order]
    else:
        ordered, count = _in_order(trace, ar, "unique")
    first = _first_of_equals(trace, ordered, count, bool(equal_nan))
    found = compaction_of(trace, first)
    results: list[Any] = [found.compressed(ordered, 1)]
    if return_index:
        results.append(found.compressed(order, 1))
    if return_inverse:
        results.append(_inverse(trace, first, order, shape, count))
    if return_counts:
        results.append(_differences(trace, found.positions(), ordered.size if count is None else count))
    return results[0] if len(results) == 1 else tuple(results)


def _inverse(trace: Trace, first: Traced, order: Traced, shape: Any, count: Any) -> Any:
    """The index among the unique elements of each element."""
    numbers = trace.call_function(np.cumsum, (first,), {}) - 1
    result = trace.known(np.zeros(first.size, _INDEX))._copy()
    result[order] = numbers
    return result.reshape(shape) if count is None else beginning(result, count)


def _differences(trace: Trace, starts: DynamicSlice, end: Any) -> DynamicSlice:
    """The distances between positions, and that of the last one to the end."""
    most = starts._most[0]
    bounds = Traced(trace, Cell(trace.builder.empty((most + 1,), _INDEX), owned=True))
    store(part(bounds, [Axis(0, 1, 0)], starts._shape, starts._most), starts)
    bounds[starts._length(0)] = end
    after = part(bounds, [Axis(1, 1, 0)], starts._shape, starts._most)
    before = part(bounds, [Axis(0, 1, 0)], starts._shape, starts._most)
    subtract = lambda x, y: trace.call_operator(np.subtract, (x, y))  # noqa: E731
    return combined(trace, subtract, np.subtract, [after, before])


def _same_kind(trace: Trace, one: Any, other: Any) -> tuple[Any, Any]:
    """Two arrays with the dtype that they have when they are joined."""
    arrays = [as_slice(x) if is_dynamic(x) else trace.array(x, copy=False) for x in (one, other)]
    dtype = np.result_type(*(x.dtype for x in arrays))
    first, second = (x if x.dtype == dtype else x.astype(dtype) for x in arrays)
    return first, second


def _is_member(trace: Trace, x: Traced, of: Any, name: str) -> Traced:
    """A mask of the elements that are among those of another array."""
    ordered, count = _in_order(trace, of, name)
    call = trace.call_function
    if not ordered.size:
        return trace.known(np.zeros(x.shape, np.bool_))._copy()
    at = call(np.searchsorted, (ordered, x), {})
    found = ordered[call(np.minimum, (at, ordered.size - 1), {})]
    same = trace.call_operator(np.equal, (found, x))
    if count is not None:
        same = trace.call_operator(np.bitwise_and, (same, trace.call_operator(np.less, (at, count))))
    return same


def setdiff1d(trace: Trace, ar1: Any, ar2: Any, assume_unique: Any = False) -> DynamicSlice:
    """`np.setdiff1d`."""
    dtype = as_slice(ar1).dtype if is_dynamic(ar1) else trace.array(ar1, copy=False).dtype
    one, other = _same_kind(trace, ar1, ar2)
    if assume_unique:
        ordered, count = _flat(trace, one, "setdiff1d")
    else:
        ordered, count = _in_order(trace, one, "setdiff1d")
    if not ordered.size:
        return _empty(trace, dtype)
    keep = trace.call_operator(np.invert, (_is_member(trace, ordered, other, "setdiff1d"),))
    first = _counted(trace, ordered, count) if assume_unique else _first_of_equals(trace, ordered, count, True)
    keep = trace.call_operator(np.bitwise_and, (keep, first))
    return compaction_of(trace, keep).compressed(ordered.astype(dtype, copy=False), 1)


def _counted(trace: Trace, x: Traced, count: Any) -> Traced:
    """A mask of the elements that count."""
    if count is None:
        return trace.known(np.ones(x.shape, np.bool_))
    return trace.call_operator(np.less, (trace.known(np.arange(x.size)), count))


def intersect1d(
    trace: Trace, ar1: Any, ar2: Any, assume_unique: Any = False, return_indices: Any = False
) -> DynamicSlice:
    """`np.intersect1d`."""
    if return_indices:
        raise UnsupportedSyntaxError("intersect1d: `return_indices` is not compiled", help="search for the elements")
    one, other = _same_kind(trace, ar1, ar2)
    if assume_unique and not (is_dynamic(one) or is_dynamic(other)):  # what one of them has twice is a result, too
        both: Any = np.sort(np.concatenate((one, other)))
        equal = trace.call_operator(np.equal, (both[1:], both[:-1]))
        return compaction_of(trace, equal).compressed(both[:-1], 1)
    ordered, count = _in_order(trace, one, "intersect1d")
    if not ordered.size:
        return _empty(trace, ordered.dtype)
    first = _first_of_equals(trace, ordered, count, True)
    keep = trace.call_operator(np.bitwise_and, (first, _is_member(trace, ordered, other, "intersect1d")))
    return compaction_of(trace, keep).compressed(ordered, 1)


def union1d(trace: Trace, ar1: Any, ar2: Any) -> Any:
    """`np.union1d`."""
    one, other = (x if is_dynamic(x) else trace.array(x, copy=False).reshape(-1) for x in (ar1, ar2))
    return unique(trace, np.concatenate((one, other)))


def setxor1d(trace: Trace, ar1: Any, ar2: Any, assume_unique: Any = False) -> DynamicSlice:
    """`np.setxor1d`: the elements of each array that are not among those of the other one, in order."""
    arrays = _same_kind(trace, ar1, ar2)
    if assume_unique and not any(map(is_dynamic, arrays)):  # what one of them has twice is no result
        both: Any = np.sort(np.concatenate([x.reshape(-1) for x in arrays]))
        edge = np.ones(min(1, both.size), np.bool_)
        differ = trace.call_operator(np.not_equal, (both[1:], both[:-1]))
        first, last = (trace.call_function(np.concatenate, (x,), {}) for x in ((edge, differ), (differ, edge)))
        return compaction_of(trace, trace.call_operator(np.bitwise_and, (first, last))).compressed(both, 1)
    elements, keep = [], []
    for x, other in (arrays, arrays[::-1]):
        ordered, count = _flat(trace, x, "setxor1d") if assume_unique else _in_order(trace, x, "setxor1d")
        if not ordered.size:
            continue
        first = _counted(trace, ordered, count) if assume_unique else _first_of_equals(trace, ordered, count, True)
        apart = trace.call_operator(np.invert, (_is_member(trace, ordered, other, "setxor1d"),))
        elements.append(ordered)
        keep.append(trace.call_operator(np.bitwise_and, (first, apart)))
    if not elements:
        return _empty(trace, arrays[0].dtype)
    found, mask = (trace.call_function(np.concatenate, (parts,), {}) for parts in (elements, keep))
    order = trace.call_function(np.argsort, (found,), {})
    return compaction_of(trace, mask[order]).compressed(found[order], 1)


def compress(trace: Trace, condition: Any, a: Any, axis: Any = None, out: Any = None) -> Any:
    """`np.compress`."""
    if out is not None:
        raise UnsupportedSyntaxError("compress: `out` is not compiled, as the length of the result depends on the data")
    if is_dynamic(condition) or is_dynamic(a):
        return captured(trace, written.compress)(condition, a, axis)
    mask: Any = trace.array(condition, copy=False)
    if mask.ndim != 1:
        raise ShapeError(f"compress: the condition has {mask.ndim} dimensions, not 1")
    array: Any = trace.array(a, copy=False)
    if axis is None:
        array, axis = array.reshape(-1), 0
    axis = axis_of(axis, array.ndim, "compress")
    if mask.size > array.shape[axis]:
        message = f"compress: the condition has {mask.size} elements, the array {array.shape[axis]} along axis {axis}"
        raise ShapeError(message, help="shorten the condition")
    whole = (slice(None),) * axis
    shorter, index = (*whole, slice(0, mask.size)), (*whole, truth(trace, mask))
    return array[shorter][index]


def extract(trace: Trace, condition: Any, arr: Any) -> Any:
    """`np.extract`."""
    if is_dynamic(condition) or is_dynamic(arr):
        return compress(trace, condition, arr)
    mask = truth(trace, trace.array(condition, copy=False)).reshape(-1)
    return compress(trace, mask, trace.array(arr, copy=False).reshape(-1))


def trim_zeros(trace: Trace, filt: Any, trim: str = "fb", axis: Any = None) -> Any:
    """`np.trim_zeros` of a vector."""
    array = as_slice(filt) if is_dynamic(filt) else trace.array(filt, copy=False)
    if array.ndim != 1 or axis not in (None, 0, -1):
        raise UnsupportedSyntaxError("trim_zeros: is compiled for arrays of 1 dimension")
    if set(trim.lower()) - {"f", "b"}:
        raise ShapeError(f"trim_zeros: `trim` has letters other than f and b: {trim!r}")
    found = flatnonzero(trace, array)
    count, size = found._length(0), array.shape[0]
    buffer = whole_buffer(found)
    if not buffer.size:
        return array
    none = trace.call_operator(np.equal, (count, 0))
    last_index = trace.call_function(np.maximum, (count - 1, 0), {})
    where: Callable[..., Any] = lambda x, y: trace.call_function(np.where, (none, x, y), {})  # noqa: E731
    first: Any = where(size, buffer[0]) if "f" in trim.lower() else 0
    last: Any = where(0, buffer[last_index] + 1) if "b" in trim.lower() else size
    first, last = (x[()].astype(np.int64) if isinstance(x, Traced) else x for x in (first, last))
    return array[first:last]


def _of_counts(name: str) -> Callable[..., Any]:
    """A function of an array and a count or positions."""

    def call(trace: Trace, *args: Any, **kwargs: Any) -> Any:
        check_front_end(trace)
        return form_of(trace, getattr(np, name))(*args, **kwargs)  # type: ignore[misc]

    return call


NAMED: dict[str, Callable[..., Any]] = {
    "nonzero": nonzero,
    "flatnonzero": flatnonzero,
    "argwhere": argwhere,
    "unique": unique,
    "setdiff1d": setdiff1d,
    "intersect1d": intersect1d,
    "union1d": union1d,
    "setxor1d": setxor1d,
    "repeat": repeat,
    "bincount": bincount,
    "histogram_bin_edges": histogram_bin_edges,
    "compress": compress,
    "extract": extract,
    "trim_zeros": trim_zeros,
    **{name: _of_counts(name) for name in ("delete", "tile", "pad", "resize", "ix_")},
}
"""The functions by their names in NumPy; each takes the trace first."""
