"""NumPy's functions whose results are as long as numbers among the data say: nothing bounds these when tracing.

Their buffers have the room that the expression in the user's file has by now (`core/rooms.py`): where it is not enough,
the call is repeated with more.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from mlirml.core.rooms import CAPACITIES, capacity_of
from mlirml.errors import DTypeError, OutgrownListError, ShapeError, UnsupportedSyntaxError
from mlirml.frontend.arrays.array import Traced
from mlirml.frontend.arrays.indexing import is_dynamic
from mlirml.frontend.frames import user_location
from mlirml.frontend.loops.dynamic_indices import python_integer
from mlirml.frontend.loops.dynamic_slices import written
from mlirml.frontend.loops.dynamic_slices.captured import captured
from mlirml.frontend.loops.dynamic_slices.compaction import as_slice, beginning, whole_buffer
from mlirml.frontend.loops.dynamic_slices.slices import (
    DynamicSlice,
    as_part,
    axis_of,
    combined,
    same_length,
    transposed,
)
from mlirml.frontend.tracing.trace import Trace
from mlirml.ir.text import control
from mlirml.ir.text.builder import Check

_INDEX = np.dtype(np.int64)


def repeat(trace: Trace, a: Any, repeats: Any, axis: Any = None) -> DynamicSlice:
    """`np.repeat` by an array of counts, or one count, of run time."""
    if is_dynamic(a):
        a, repeats = _whole(trace, as_slice(a), repeats)
    array: Any = trace.array(a, copy=False)
    if axis is None:
        array, axis = array.reshape(-1), 0
    axis = axis_of(axis, array.ndim, "repeat")
    rows = np.moveaxis(array, axis, 0)
    counts: Any = trace.array(repeats, copy=False)
    if counts.dtype.kind not in "biu" or counts.ndim > 1:
        raise DTypeError(f"repeat: repeats must be integers, one or one for each element, got {counts._describe()}")
    size = rows.shape[0]
    counts = counts.astype(_INDEX).reshape(-1)
    if counts.size != size and counts.size != 1:
        raise ShapeError(f"repeat: {counts.size} repeats for {size} elements along axis {axis} of {array._describe()}")
    if not size:
        return beginning(rows, 0)  # type: ignore[arg-type]
    _require(trace, (counts >= 0).all(), Check("ShapeError", "repeat: repeats cannot be negative"))
    ends = np.cumsum(np.broadcast_to(counts, (size,)))
    total = python_integer(trace, ends[size - 1]._read())
    capacity = room_for(trace, total, size)
    # The number of elements that end at or before a position is that of the element there.
    steps = trace.known(np.zeros(capacity + 1, _INDEX))._copy()
    np.add.at(steps, np.minimum(ends[: size - 1], capacity), 1)
    found = beginning(rows[np.cumsum(steps)[:capacity]], total)
    return transposed(found, [*range(1, axis + 1), 0, *range(axis + 1, rows.ndim)]) if axis else found


def _whole(trace: Trace, a: DynamicSlice, repeats: Any) -> tuple[Traced, Any]:
    """The whole buffer of a vector, and how often each of its elements is repeated: those after the end never."""
    counts: Any = repeats if is_dynamic(repeats) else trace.array(repeats, copy=False)
    if a.ndim != 1 or counts.ndim > 1 or counts.dtype.kind not in "biu":
        raise DTypeError("repeat: is compiled for a vector and integers, one or one for each element")
    if counts.ndim:
        counts = as_part(trace, counts)
        same_length(trace, (a._shape[0], a._most[0]), (counts._shape[0], counts._most[0]), (a, counts))
        counts = whole_buffer(counts)
        size = min(a._most[0], counts.shape[0])
        return whole_buffer(a)[:size], np.where(np.arange(size) < a._length(0), counts[:size].astype(_INDEX), 0)
    return whole_buffer(a), np.where(np.arange(a._most[0]) < a._length(0), counts.astype(_INDEX), 0)


def bincount(trace: Trace, x: Any, weights: Any = None, minlength: Any = 0) -> DynamicSlice:
    """`np.bincount` of numbers without a known bound."""
    if is_dynamic(x):
        return _bincount_of_slice(trace, as_slice(x), weights, minlength)
    return _bincount(trace, x, weights, least=minlength)


def _bincount_of_slice(trace: Trace, x: DynamicSlice, weights: Any, minlength: Any) -> DynamicSlice:
    """`np.bincount` of a dynamic number of elements: those after the end count as 0, with a weight of 0."""
    if x.ndim != 1 or x.dtype.kind not in "iub":
        raise UnsupportedSyntaxError("`np.bincount` is compiled for integers in one dimension")
    valid: Any = np.arange(x._most[0]) < x._length(0)
    if weights is None:
        numbers: Any = np.where(valid, whole_buffer(x).astype(_INDEX), 0)
        found = _bincount(trace, numbers, valid, x._length(0), minlength)
        return combined(trace, lambda n: n.astype(_INDEX), lambda n: n.astype(_INDEX), [found])
    added = as_part(trace, weights)
    if added.ndim != 1 or added.dtype.kind == "c":
        raise DTypeError("bincount: the weights must be real numbers, one for each element")
    same_length(trace, (x._shape[0], x._most[0]), (added._shape[0], added._most[0]), (x, added))
    given = whole_buffer(added)
    size = min(x._most[0], given.shape[0])
    numbers = np.where(valid[:size], whole_buffer(x)[:size].astype(_INDEX), 0)
    return _bincount(trace, numbers, np.where(valid[:size], given[:size], 0), x._length(0), minlength)


def _bincount(trace: Trace, numbers: Traced, weights: Any, count: Any = 1, least: Any = 0) -> DynamicSlice:
    x: Any = numbers.astype(_INDEX)
    if not x.size and not isinstance(least, Traced):
        return beginning(trace.known(np.zeros(least, _INDEX)), least)
    _require(trace, (x >= 0).all(), Check("ShapeError", "bincount: a number is negative"))
    longest: Any = np.where(np.equal(count, 0), 0, x.max() + 1) if isinstance(count, Traced) else x.max() + 1
    if isinstance(least, Traced) or least > 0:
        longest = np.maximum(longest, least)
    length = python_integer(trace, longest._read())
    capacity = room_for(trace, length, 0)
    safe = np.clip(x, 0, capacity - 1)
    counts: Any = np.bincount(safe, weights, minlength=capacity)
    return beginning(counts, length)


def _doane(x: Any) -> Any:
    if x.size <= 2:
        return 0.0
    spread, from_mean = np.std(x), x - np.mean(x)
    skew = np.abs(np.mean((from_mean / np.where(spread > 0, spread, 1)) ** 3))
    error = math.sqrt(6 * (x.size - 2) / ((x.size + 1) * (x.size + 3)))
    width = np.ptp(x) / (1 + math.log2(x.size) + np.log2(1 + skew / error))
    return np.where(spread > 0, width, 0)


def _freedman_diaconis(x: Any) -> Any:
    high, low = np.percentile(x, [75, 25])
    return 2 * (high - low) * x.size ** (-1 / 3)


_WIDTHS: dict[str, Callable[[Any], Any]] = {
    "sqrt": lambda x: np.ptp(x) / math.sqrt(x.size),
    "sturges": lambda x: np.ptp(x) / (math.log2(x.size) + 1),
    "rice": lambda x: np.ptp(x) / (2 * x.size ** (1 / 3)),
    "scott": lambda x: (24 * math.sqrt(math.pi) / x.size) ** (1 / 3) * np.std(x),
    "doane": _doane,
    "fd": _freedman_diaconis,
}
_WIDTHS["auto"] = lambda x: np.minimum(np.maximum(_WIDTHS["fd"](x), _WIDTHS["sqrt"](x) / 2), _WIDTHS["sturges"](x))
"""The widths of bins that NumPy's estimators give."""


def histogram_bin_edges(trace: Trace, a: Any, bins: Any = 10, range: Any = None, weights: Any = None) -> Any:
    """`np.histogram_bin_edges` where an estimator gives the number of bins."""
    if is_dynamic(a):
        return captured(trace, written.histogram_bin_edges)(a, bins, range)
    x: Any = trace.array(a, copy=False).reshape(-1)
    if bins not in _WIDTHS:
        raise UnsupportedSyntaxError(f"histogram_bin_edges: the estimator {bins!r} is not compiled")
    if range is not None or weights is not None:
        raise UnsupportedSyntaxError("histogram_bin_edges: an estimator beside `range` or `weights` is not compiled")
    if x.dtype.kind not in "iuf" or not x.size:
        raise ShapeError(f"histogram_bin_edges: an estimator needs real numbers, not {x._describe()}")
    is_float = x.dtype.kind == "f"
    x = x if is_float else x.astype(np.float64)
    low, high, width = x.min(), x.max(), _WIDTHS[bins](x)
    _require(trace, np.isfinite(high - low), Check("ShapeError", "histogram_bin_edges: the range is not finite"))
    alike = low == high
    low, high = np.where(alike, low - 0.5, low), np.where(alike, high + 0.5, high)
    width = width if is_float else np.where(width > 0, np.maximum(width, 1), 0)
    number: Any = np.where(width > 0, np.ceil((high - low) / np.where(width > 0, width, 1)), 1)
    number = np.clip(np.where(np.isfinite(number), number, 1), 1, _MOST_BINS).astype(_INDEX)
    length = python_integer(trace, (number + 1)._read())
    index = trace.known(np.arange(room_for(trace, length, 0)))
    edges = index.astype(x.dtype) * ((high - low) / number.astype(x.dtype)) + low  # as `np.linspace`
    return beginning(np.where(index == number, high, edges), length)


_MOST_BINS = 1 << 30


def room_for(trace: Trace, length: Any, least: int, name: str = "") -> int:
    """The room for a result of this length, which the program checks; it is at least `least`."""
    location = user_location()
    site = "a function" if location is None else f"{location.file}:{location.line}:{location.column}{name}"
    capacity = capacity_of(site, least)
    trace.guards["room", site] = CAPACITIES, site, CAPACITIES[site]
    error = OutgrownListError(site, capacity)
    _require(trace, length <= capacity, Check(type(error).__name__, str(error), raised=error))
    return capacity


def _require(trace: Trace, condition: Any, check: Check) -> None:
    """Let the call fail where a condition on numbers of run time does not hold."""
    b = trace.builder
    if isinstance(condition, Traced):
        b.check(control.to_scalar(b, condition._read()), check)
    elif not condition:
        b.check(b.scalar(False, np.dtype(np.bool_)), check)
