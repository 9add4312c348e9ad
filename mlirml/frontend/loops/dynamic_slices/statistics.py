"""NumPy's statistics of slices of dynamic length: variances, medians, ranges and counts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from mlirml.frontend.arrays.array import Traced
from mlirml.frontend.loops.dynamic_slices.functions import axes_of, mean, number_of, reduction, sorted_whole
from mlirml.frontend.loops.dynamic_slices.slices import DynamicSlice, combined, operated, refused


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


FUNCTIONS: dict[Callable[..., Any], Callable[..., Any]] = {
    np.var: var,
    np.std: std,
    np.ptp: ptp,
    np.count_nonzero: count_nonzero,
    np.median: median,
}
METHODS: dict[str, Callable[..., Any]] = {"var": var, "std": std}
