"""NumPy's statistics of slices of dynamic length: variances, medians, ranges and counts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from mlirml.errors import ShapeError
from mlirml.frontend.arrays.array import Traced
from mlirml.frontend.arrays.indexing import is_dynamic
from mlirml.frontend.loops.dynamic_slices import written
from mlirml.frontend.loops.dynamic_slices.captured import by_rows
from mlirml.frontend.loops.dynamic_slices.functions import axes_of, mean, number_of, padded, reduction, sorted_whole
from mlirml.frontend.loops.dynamic_slices.slices import DynamicSlice, as_part, combined, operated, refused, require
from mlirml.frontend.tracing.trace import Trace
from mlirml.ir.text.builder import Check


def var(
    x: DynamicSlice,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    ddof: Any = 0,
    keepdims: Any = False,
    **others: Any,
) -> Any:
    """`np.var`, in two passes."""
    trace = x._trace
    if x.dtype.kind == "c" or out is not None or others:
        raise refused(trace, x, "this form of `np.var`")
    middle = mean(x, axis, dtype, keepdims=len(axes_of(x, axis)) < x.ndim)
    apart = operated(trace, np.subtract, (x, middle))
    total = reduction(np.add)(operated(trace, np.multiply, (apart, apart)), axis, keepdims=keepdims)
    count: Any = 1
    for a in axes_of(x, axis):
        count = count * x._length(a)
    if x.dtype.kind not in "biu":  # the mean is off by a rounding error, as in `var` of arrays
        off = reduction(np.add)(apart, axis, keepdims=keepdims)
        error = off * off / _as_float(count, total.dtype)
        total = np.where(total > error, total - error, total)
    count = count - ddof
    if not isinstance(count, Traced):
        return total / total.dtype.type(max(count, 0))
    return total / trace.call_ufunc(np.maximum, "__call__", (count, 0), {}).astype(total.dtype)


def _as_float(count: Any, dtype: np.dtype) -> Any:
    return count.astype(dtype) if isinstance(count, Traced) else dtype.type(count)


def std(x: DynamicSlice, *args: Any, **kwargs: Any) -> Any:
    """`np.std`."""
    return np.sqrt(var(x, *args, **kwargs))


def ptp(x: DynamicSlice, axis: Any = None, out: Any = None, keepdims: Any = False) -> Any:
    """`np.ptp`."""
    return reduction(np.maximum)(x, axis, None, out, keepdims) - reduction(np.minimum)(x, axis, None, out, keepdims)


def count_nonzero(x: DynamicSlice, axis: Any = None, *, keepdims: Any = False) -> Any:
    """`np.count_nonzero`."""
    trace = x._trace
    found = combined(trace, lambda y: trace.call_operator(np.not_equal, (y, 0)), lambda y: np.not_equal(y, 0), [x])
    return reduction(np.add)(found, axis, np.dtype(np.int64), keepdims=keepdims)


def median(
    x: DynamicSlice, axis: Any = None, out: Any = None, overwrite_input: Any = False, keepdims: Any = False
) -> Any:
    """`np.median` of a vector: the middle of its elements when they are sorted, NaN if one is NaN or there are none."""
    trace = x._trace
    if x.ndim != 1 or axis not in (None, 0, -1) or out is not None or keepdims or x.dtype.kind not in "biuf":
        raise refused(trace, x, "this form of `np.median`")
    kind = np.median(np.asarray(x._sample)).dtype
    ordered, count, hooks = sorted_whole(x), x._length(0), trace.hooks

    def at(indices: Any) -> Any:
        clamped = trace.call_ufunc(np.maximum, "__call__", (indices, 0), {})
        return ordered[clamped].astype(kind)

    low, high, last = at((count - 1) // 2), at(count // 2 - (count == 0)), at(count - 1)
    middle = hooks.select(count % 2 == 1, lambda: low, lambda: (low + high) / kind.type(2))
    none = number_of(trace, np.nan, kind)
    unknown = hooks.or_(count == 0, lambda: trace.call_operator(np.not_equal, (last, last)))
    return hooks.select(unknown, lambda: none, lambda: middle)


def quantile(
    x: DynamicSlice, q: Any, axis: Any = None, out: Any = None, overwrite_input: Any = False, method: str = "linear"
) -> Any:
    """`np.quantile` of a vector: NaN if one of its elements is NaN, an error if there are none."""
    trace = x._trace
    if x.ndim != 1 or axis not in (None, 0, -1) or out is not None or method != "linear" or x.dtype.kind not in "biuf":
        raise refused(trace, x, "this form of `np.quantile`")
    if not isinstance(q, Traced) and not np.all((np.asarray(q) >= 0) & (np.asarray(q) <= 1)):
        raise ShapeError("quantile: quantiles must be in the range from 0 to 1, percentiles from 0 to 100")
    kind = np.quantile(np.asarray(x._sample), 0.5).dtype
    ordered, count = sorted_whole(x), x._length(0)
    require(trace, count > 0, Check("IndexOutOfBoundsError", "quantile: the array is empty"))
    last = trace.call_ufunc(np.maximum, "__call__", (count - 1, 0), {})
    position = trace.array(q, copy=False).astype(np.float64) * last
    low = np.minimum(np.floor(position).astype(np.int64), last)
    high = np.minimum(low + 1, last)
    part = (position - low).astype(kind)
    first, second = ordered[low].astype(kind), ordered[high].astype(kind)
    gap = second - first
    found = np.where(part >= 0.5, second - gap * (1 - part), first + gap * part)  # as NumPy does
    greatest = ordered[last]
    return np.where(greatest != greatest, kind.type(np.nan), found)


def percentile(x: DynamicSlice, q: Any, *args: Any, **kwargs: Any) -> Any:
    """`np.percentile`."""
    shares: Any = q if isinstance(q, Traced) else np.asarray(q)
    return quantile(x, shares / 100, *args, **kwargs)


def searchsorted(trace: Trace, a: Any, v: Any, side: str = "left", sorter: Any = None) -> Any:
    """`np.searchsorted` in a vector or of one."""
    x = as_part(trace, a)
    if x.ndim != 1 or sorter is not None:
        raise refused(trace, x, "this form of `np.searchsorted`")
    whole, count = (padded(x), x._length(0)) if is_dynamic(a) else (a, x._shape[0])

    def found(y: Any) -> Any:
        return np.minimum(trace.call_function(np.searchsorted, (whole, y, side), {}), count)

    if is_dynamic(v):
        return combined(trace, found, lambda y: np.asarray(y).astype(np.int64), [v])
    return found(v)


FUNCTIONS: dict[Callable[..., Any], Callable[..., Any]] = {
    np.var: var,
    np.std: std,
    np.ptp: ptp,
    np.count_nonzero: count_nonzero,
    np.median: by_rows(np.median, median, written.by_rows, None),
    np.quantile: quantile,
    np.percentile: percentile,
}
METHODS: dict[str, Callable[..., Any]] = {"var": var, "std": std}
NAMED: dict[str, Callable[..., Any]] = {"searchsorted": searchsorted}
