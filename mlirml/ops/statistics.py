"""Statistics composed of other operations: averages, medians, quantiles, covariances, histograms, and NaN left out."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from mlirml.core.sizes import is_dynamic_shape
from mlirml.errors import DTypeError, ShapeError, UnsupportedSyntaxError
from mlirml.ir.text.builder import Check
from mlirml.ir.text.dtypes import is_float
from mlirml.ops.reductions import normalized_axes
from mlirml.ops.registry import ALL, NO_COMPLEX_ORDER, NUMBERS, composed, family
from mlirml.ops.shapes.rearrange import known


@composed("statistics", np.average, dtypes=ALL, tolerance=8)
def average(
    xp: Any, a: Any, axis: Any = None, weights: Any = None, returned: bool = False, *, keepdims: Any = False
) -> Any:
    """Mean over axes, weighted if weights are given; weights that add up to 0 give NaN or infinities."""
    a = xp.asarray(a)
    axes = normalized_axes("average", a.shape, axis)
    if weights is None:
        result = xp.mean(a, axis=axis, keepdims=keepdims)
        total = xp.full(result.shape, a.size / max(result.size, 1), dtype=result.dtype)
        return (result, total) if returned else result
    weights = xp.asarray(weights)
    exact = a.dtype.kind in "biu"
    dtype = np.result_type(a.dtype, weights.dtype, np.float64) if exact else np.result_type(a.dtype, weights.dtype)
    if weights.shape != a.shape:
        if axis is None or weights.shape != tuple(a.shape[i] for i in axes):
            raise ShapeError(f"average: weights of shape {list(weights.shape)} do not fit {list(a.shape)}, axis={axis}")
        weights = weights.reshape(tuple(n if i in axes else 1 for i, n in enumerate(a.shape)))
        weights = xp.broadcast_to(weights, a.shape)
    total = xp.sum(weights, axis=axis, dtype=dtype, keepdims=keepdims)
    result = xp.sum(xp.multiply(a.astype(dtype), weights.astype(dtype)), axis=axis, keepdims=keepdims) / total
    return (result, total) if returned else result


NO_BF16 = ("bf16", "NumPy computes in another dtype")
NO_ORDER = (*NO_COMPLEX_ORDER, NO_BF16)
_BUT_BF16 = tuple(d for d in ALL if d != "bf16")
_OF_QUANTILES = tuple(d for d in NUMBERS if d != "bf16")


def refuse_bfloat16(name: str, x: Any) -> None:
    if x.dtype.name == "bfloat16":
        raise DTypeError(f"{name}: not compiled for bf16", help="convert the array with `.astype(np.float32)`")


def _lined_up(xp: Any, name: str, a: Any, axis: Any) -> tuple[Any, tuple[int, ...]]:
    """The array with the axes joined into a last one, and the shape that keeps them with size 1."""
    axes = normalized_axes(name, a.shape, axis)
    rest = [i for i in range(a.ndim) if i not in axes]
    count = math.prod([a.shape[i] for i in axes])
    lined = xp.transpose(a, (*rest, *axes)).reshape((*(a.shape[i] for i in rest), count))
    return lined, tuple(1 if i in axes else n for i, n in enumerate(a.shape))


@composed("statistics", np.median, dtypes=ALL)
def median(
    xp: Any, a: Any, axis: Any = None, out: None = None, overwrite_input: bool = False, keepdims: bool = False
) -> Any:
    """The middle element in order, or the mean of the middle two; NaN if there is one."""
    a = xp.asarray(a)
    lined, kept = _lined_up(xp, "median", a, axis)
    n = lined.shape[-1]
    if n == 0:
        return xp.mean(a, axis=axis, keepdims=keepdims)
    middle, count = (n // 2, 1) if n % 2 else (n // 2 - 1, 2)
    ordered = xp.partition(lined, [middle, middle + count - 1], axis=-1)
    result = xp.mean(ordered[..., middle : middle + count], axis=-1)
    if np.issubdtype(a.dtype, np.complexfloating):  # sorted entirely
        result = xp.where(xp.isnan(ordered[..., -1]), ordered[..., -1], result)
    elif np.issubdtype(a.dtype, np.inexact):
        result = xp.where(xp.any(xp.isnan(lined), axis=-1), np.nan, result)
    return result.reshape(kept) if keepdims else result


_CONTINUOUS = ("linear", "weibull", "hazen", "median_unbiased", "normal_unbiased", "interpolated_inverted_cdf")
_METHODS = (*_CONTINUOUS, "lower", "higher", "midpoint", "nearest")


def _to_choose_from(xp: Any, name: str, a: Any, axis: Any) -> tuple[Any, Any, tuple[int, ...]]:
    """The array, with the axes of a quantile as its last one, and the shape that is kept; raises where it is empty."""
    a = xp.asarray(a)
    refuse_bfloat16(name, a)
    lined, kept = _lined_up(xp, name, a, axis)
    if lined.shape[-1] == 0:
        raise ShapeError(f"{name}: no elements to choose from, the array of shape {list(a.shape)} is empty")
    return a, lined, kept


def _quantile(xp: Any, name: str, a: Any, q: Any, axis: Any, method: str, keepdims: bool, weights: Any) -> Any:
    if weights is not None:
        raise UnsupportedSyntaxError(f"{name}: weights are not compiled")
    if method not in _METHODS:
        raise UnsupportedSyntaxError(f"{name}: method {method!r} is not compiled", help=f"compiled are {_METHODS}")
    a, lined, kept = _to_choose_from(xp, name, a, axis)
    n = lined.shape[-1]
    of = np.quantile if name == "quantile" else np.percentile
    places = of(np.arange(n, dtype=np.float64), q, method=method)  # type: ignore[call-overload]
    low = np.floor(places).astype(np.int64)
    high = np.minimum(low + 1, n - 1)
    one = np.zeros(1, np.float64 if a.dtype == np.bool_ else a.dtype)
    result_dtype = of(one, q, method=method).dtype  # type: ignore[call-overload]
    part = (places - low).astype(result_dtype)
    ordered = xp.partition(lined, [*low.reshape(-1).tolist(), *high.reshape(-1).tolist()], axis=-1)
    below, above = (
        xp.take(ordered, low.reshape(-1).tolist(), axis=-1),
        xp.take(ordered, high.reshape(-1).tolist(), axis=-1),
    )
    if method in ("lower", "higher", "nearest"):
        result = below
    else:
        step = xp.subtract(above, below)
        share = xp.asarray(part.reshape(-1))
        up, down = below + step * share, above - step * (1 - share)
        result = xp.where(xp.asarray(part.reshape(-1) >= 0.5), down, up)
    if np.issubdtype(a.dtype, np.inexact):
        result = xp.where(xp.any(xp.isnan(lined), axis=-1, keepdims=True), np.nan, result)
    result = xp.moveaxis(result, -1, 0)
    shape = kept if keepdims else tuple(lined.shape[:-1])
    return result.reshape((*np.shape(q), *shape))


def _traced_quantile(
    xp: Any, name: str, a: Any, q: Any, weak: bool, axis: Any, method: str, keepdims: bool, weights: Any
) -> Any:
    """`_quantile` for dynamic shares; a `weak` one yields to the dtype of the elements."""
    if weights is not None or method != "linear":
        raise UnsupportedSyntaxError(
            f"{name}: only method='linear' is compiled for a q known at run time",
            help="leave out `method` and `weights`, or make q static (`static_argnums`)",
        )
    a, lined, kept = _to_choose_from(xp, name, a, axis)
    n = lined.shape[-1]
    places = q * (n - 1)
    within = xp.clip(places, 0, n - 1).reshape(-1)
    low = xp.floor(within).astype(np.int64)
    ordered = xp.sort(lined, axis=-1)
    below, above = xp.take(ordered, low, axis=-1), xp.take(ordered, xp.minimum(low + 1, n - 1), axis=-1)
    share = within - low.astype(within.dtype)
    step = xp.subtract(above, below)
    if weak:
        share = share.astype(np.result_type(step.dtype, 1.0))
    result = xp.where(share >= 0.5, above - step * (1 - share), below + step * share)
    result = xp.where(within == places.reshape(-1), result, np.nan)
    if np.issubdtype(a.dtype, np.inexact):
        result = xp.where(xp.isnan(ordered[..., -1:]), ordered[..., -1:], result)
    shape = kept if keepdims else tuple(lined.shape[:-1])
    return xp.moveaxis(result, -1, 0).reshape((*places.shape, *shape))


def _shares(xp: Any, q: Any) -> tuple[Any, bool]:
    """Shares as an array of floats, and whether they are one number of Python's, which gives way in promotion."""
    weak = not isinstance(q, (list, tuple)) and q._is_weak() and q.dtype.kind in "if"
    shares = xp.asarray(q)
    return shares if shares.dtype.kind == "f" else shares.astype(np.float64), weak


def _is_weak(q: Any) -> bool:
    """True for one share that is a number of Python's."""
    return type(q) in (int, float)


def _is_known(q: Any) -> bool:
    """True if shares are known when the function is traced."""
    try:
        known("", "", q)
    except ShapeError:
        return False
    return True


def _known_shares(name: str, q: Any) -> np.ndarray:
    """Known shares from 0 to 1, which a function of percentiles takes from 0 to 100."""
    shares = known(name, "q", q)
    what, most = ("percentiles", 100) if name.endswith("percentile") else ("quantiles", 1)
    if not ((shares >= 0) & (shares <= most)).all():
        raise ShapeError(f"{name}: {what} lie between 0 and {most}")
    return np.true_divide(shares, 100) if most == 100 else np.asarray(shares, np.float64)


def _quantiles(
    name: str,
    xp: Any,
    a: Any,
    q: Any,
    axis: Any = None,
    out: None = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
    *,
    weights: None = None,
) -> Any:
    if not _is_known(q):
        q, weak = _shares(xp, q)
        q = q / 100 if name == "percentile" else q
        return _traced_quantile(xp, name, a, q, weak, axis, method, keepdims, weights)
    shares = _known_shares(name, q)
    if is_dynamic_shape(a.shape) and method == "linear" and weights is None:
        return _traced_quantile(xp, name, a, xp.asarray(shares), _is_weak(q), axis, method, keepdims, weights)
    return _quantile(xp, name, a, q, axis, method, keepdims, weights)


quantile, percentile = family(
    "statistics",
    _quantiles,
    {
        "quantile": """The elements below which the shares q of all elements lie; NaN if one is NaN, or for a dynamic q
    outside of 0 to 1.
    """,
        "percentile": "`quantile` with shares from 0 to 100.",
    },
    composed=True,
    dtypes=_OF_QUANTILES,
    gaps=NO_ORDER,
    tolerance=8,
)


def _filled(xp: Any, a: Any, value: float) -> tuple[Any, Any]:
    """The array with NaN replaced, and where NaN was; integers have none."""
    a = xp.asarray(a)
    if not np.issubdtype(a.dtype, np.inexact):
        return a, None
    mask = xp.isnan(a)
    return xp.where(mask, xp.full((), value, dtype=a.dtype), a), mask


def _given(**options: Any) -> dict[str, Any]:
    """The options that were given."""
    return {k: v for k, v in options.items() if v is not None and v is not True}


@composed("statistics", np.nansum, dtypes=ALL, tolerance=8)
def nansum(
    xp: Any,
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: None = None,
    keepdims: bool = False,
    initial: Any = None,
    where: Any = True,
) -> Any:
    """Sum over axes, NaN taken as 0."""
    filled, _ = _filled(xp, a, 0)
    return xp.sum(filled, axis=axis, dtype=dtype, keepdims=keepdims, **_given(initial=initial, where=where))


@composed("statistics", np.nanprod, dtypes=ALL, domain=(0.5, 1.5), tolerance=8)
def nanprod(
    xp: Any,
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: None = None,
    keepdims: bool = False,
    initial: Any = None,
    where: Any = True,
) -> Any:
    """Product over axes, NaN taken as 1."""
    filled, _ = _filled(xp, a, 1)
    return xp.prod(filled, axis=axis, dtype=dtype, keepdims=keepdims, **_given(initial=initial, where=where))


def _nan_extremum(
    name: str,
    xp: Any,
    a: Any,
    axis: Any = None,
    out: None = None,
    keepdims: bool = False,
    initial: Any = None,
    where: Any = True,
) -> Any:
    function, worst = (xp.max, -np.inf) if name == "nanmax" else (xp.min, np.inf)
    options = _given(initial=initial, where=where)
    a = xp.asarray(a)
    if not is_float(a.dtype):  # bfloat16 is one: NumPy reduces with `fmax`, which knows its NaN
        return function(a, axis=axis, keepdims=keepdims, **options)
    mask = xp.isnan(a)
    filled = xp.where(mask, xp.full((), worst, dtype=a.dtype), a)
    result = function(filled, axis=axis, keepdims=keepdims, **options)
    if "initial" in options:
        return result
    return xp.where(xp.all(mask, axis=axis, keepdims=keepdims), xp.full((), np.nan, dtype=a.dtype), result)


nanmax, nanmin = family(
    "statistics",
    _nan_extremum,
    {
        "nanmax": "Largest element over axes, NaN left out; NaN if there is nothing else.",
        "nanmin": "Smallest element over axes, NaN left out; NaN if there is nothing else.",
    },
    composed=True,
    dtypes=ALL,
    gaps=NO_COMPLEX_ORDER,
)


def _nan_position(xp: Any, function: Any, worst: float, a: Any, axis: Any, keepdims: Any) -> Any:
    filled, _ = _filled(xp, a, worst)
    options = {"keepdims": True} if keepdims is True else {}
    return function(filled, axis=axis, **options)


@composed("statistics", np.nanargmax, dtypes=ALL, gaps=NO_COMPLEX_ORDER)
def nanargmax(xp: Any, a: Any, axis: Any = None, out: None = None, *, keepdims: Any = np._NoValue) -> Any:
    """The position of the largest element, NaN left out; of nothing but NaN 0, where NumPy raises an error."""
    return _nan_position(xp, xp.argmax, -np.inf, a, axis, keepdims)


@composed("statistics", np.nanargmin, dtypes=ALL, gaps=NO_COMPLEX_ORDER)
def nanargmin(xp: Any, a: Any, axis: Any = None, out: None = None, *, keepdims: Any = np._NoValue) -> Any:
    """The position of the smallest element, NaN left out; of nothing but NaN 0, where NumPy raises an error."""
    return _nan_position(xp, xp.argmin, np.inf, a, axis, keepdims)


@composed("statistics", np.nanmean, dtypes=ALL, tolerance=8)
def nanmean(
    xp: Any,
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: None = None,
    keepdims: bool = False,
    *,
    where: Any = True,
) -> Any:
    """Mean over axes of what is not NaN."""
    filled, mask = _filled(xp, a, 0)
    if mask is None:
        return xp.mean(filled, axis=axis, dtype=dtype, keepdims=keepdims, **_given(where=where))
    count = xp.sum(~mask, axis=axis, dtype=np.int64, keepdims=keepdims, **_given(where=where))
    total = xp.sum(filled, axis=axis, dtype=dtype, keepdims=keepdims, **_given(where=where))
    return (total / count).astype(total.dtype)


@composed("statistics", np.nanvar, dtypes=ALL, tolerance=16)
def nanvar(
    xp: Any,
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: None = None,
    ddof: Any = 0,
    keepdims: bool = False,
    *,
    where: Any = True,
    mean: Any = None,
    correction: Any = None,
) -> Any:
    """Variance over axes of what is not NaN."""
    ddof = ddof if correction is None else correction
    filled, mask = _filled(xp, a, 0)
    if mask is None:
        options = _given(where=where, mean=mean)
        return xp.var(filled, axis=axis, dtype=dtype, ddof=ddof, keepdims=keepdims, **options)
    count = xp.sum(~mask, axis=axis, dtype=np.int64, keepdims=True, **_given(where=where))
    inexact = mean is None
    if mean is None:
        total = xp.sum(filled, axis=axis, dtype=dtype, keepdims=True, **_given(where=where))
        mean = (total / count).astype(total.dtype)
    centred = xp.where(mask, xp.zeros((), dtype=filled.dtype), xp.subtract(filled, mean).astype(filled.dtype))
    options = {"axis": axis, "dtype": dtype, "keepdims": keepdims, **_given(where=where)}
    spread = xp.sum(xp.square(centred) if centred.dtype.kind != "c" else (centred * centred.conj()).real, **options)
    if inexact and centred.dtype.kind != "c":  # the mean is off by a rounding error, as in `var`
        error = (xp.square(xp.sum(centred, **options)) / count.reshape(spread.shape)).astype(spread.dtype)
        spread = xp.where(spread > error, spread - error, spread)
    degrees = (count if keepdims else count.reshape(spread.shape)) - ddof
    result = (spread / degrees).astype(spread.dtype)
    return xp.where(degrees <= 0, xp.full((), np.nan, dtype=result.dtype), result)


@composed("statistics", np.nanstd, dtypes=ALL, tolerance=16)
def nanstd(
    xp: Any,
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: None = None,
    ddof: Any = 0,
    keepdims: bool = False,
    *,
    where: Any = True,
    mean: Any = None,
    correction: Any = None,
) -> Any:
    """Standard deviation over axes of what is not NaN."""
    spread = nanvar.build(xp, a, axis, dtype, None, ddof, keepdims, where=where, mean=mean, correction=correction)
    return xp.sqrt(spread)


@composed("statistics", np.nanmedian, dtypes=_BUT_BF16, gaps=NO_ORDER)
def nanmedian(
    xp: Any, a: Any, axis: Any = None, out: None = None, overwrite_input: bool = False, keepdims: bool = False
) -> Any:
    """Median of what is not NaN."""
    a = xp.asarray(a)
    refuse_bfloat16("nanmedian", a)
    if not np.issubdtype(a.dtype, np.inexact) or a.size == 0:
        return median.build(xp, a, axis, None, False, keepdims)
    lined, kept = _lined_up(xp, "nanmedian", a, axis)
    ordered = xp.sort(lined, axis=-1)
    count = xp.sum(~xp.isnan(lined), axis=-1, keepdims=True)
    middle = [xp.take_along_axis(ordered, xp.maximum(i, 0), axis=-1)[..., 0] for i in ((count - 1) // 2, count // 2)]
    same = xp.mean(xp.stack(middle, axis=-1), axis=-1)
    result = xp.where(count[..., 0] % 2 == 1, middle[0], same)
    return result.reshape(kept) if keepdims else result


def _nanquantile(xp: Any, name: str, a: Any, q: Any, shares: np.ndarray, axis: Any, method: str, keepdims: bool) -> Any:
    """The linear quantiles of what is not NaN, for known shares from 0 to 1, which `q` is in the user's terms."""
    if method != "linear":
        raise UnsupportedSyntaxError(f"{name}: only method='linear' is compiled")
    a, lined, kept = _to_choose_from(xp, name, a, axis)
    ordered = xp.sort(lined, axis=-1)
    last = xp.sum(~xp.isnan(lined), axis=-1, keepdims=True) - 1
    of = np.quantile if name == "nanquantile" else np.percentile
    dtype = of(np.zeros(1, a.dtype), q).dtype
    places = last * shares.reshape(-1)
    low = xp.floor(places).astype(np.int64)
    below = xp.take_along_axis(ordered, xp.maximum(low, 0), axis=-1)
    above = xp.take_along_axis(ordered, xp.maximum(xp.minimum(low + 1, last), 0), axis=-1)
    share, step = (places - low).astype(dtype), xp.subtract(above, below)
    result = xp.where(share >= 0.5, above - step * (1 - share), below + step * share)
    result = xp.moveaxis(xp.where(last < 0, ordered[..., :1], result), -1, 0)
    return result.reshape((*np.shape(q), *(kept if keepdims else tuple(lined.shape[:-1]))))


def _of_numbers(
    name: str,
    xp: Any,
    a: Any,
    q: Any,
    axis: Any = None,
    out: None = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
    *,
    weights: None = None,
) -> Any:
    a, shares = xp.asarray(a), _known_shares(name, q)
    if not np.issubdtype(a.dtype, np.inexact):  # there is no NaN
        whole = quantile if name == "nanquantile" else percentile
        return whole.build(xp, a, q, axis, None, False, method, keepdims, weights=weights)
    if weights is not None:
        raise UnsupportedSyntaxError(f"{name}: weights are not compiled")
    return _nanquantile(xp, name, a, q, shares, axis, method, keepdims)


nanquantile, nanpercentile = family(
    "statistics",
    _of_numbers,
    {
        "nanquantile": """`quantile` of what is not NaN, by the method "linear" and for shares that are known; NaN
    where all are.

    The dtype is that of `quantile`, where NumPy's depends on the elements for some shares in arrays.
    """,
        "nanpercentile": "`nanquantile` with shares from 0 to 100.",
    },
    composed=True,
    dtypes=_OF_QUANTILES,
    gaps=NO_ORDER,
    tolerance=8,
)


@composed("statistics", np.cov, dtypes=ALL, tolerance=16, scalars=False)
def cov(
    xp: Any,
    m: Any,
    y: Any = None,
    rowvar: bool = True,
    bias: bool = False,
    ddof: Any = None,
    fweights: None = None,
    aweights: None = None,
    *,
    dtype: Any = None,
) -> Any:
    """Covariances of variables, which are the rows (or columns) of one or two arrays, in f64 at least."""
    if fweights is not None or aweights is not None:
        raise UnsupportedSyntaxError("cov: weights are not compiled")
    if ddof is not None and ddof != int(ddof):
        raise ShapeError(f"cov: ddof must be an integer, not {ddof!r}")
    arrays = [xp.asarray(x) for x in (m, y) if x is not None]
    if any(x.ndim > 2 for x in arrays):
        raise ShapeError("cov: needs arrays of 1 or 2 dimensions")
    kind = dtype or np.result_type(*(x.dtype for x in arrays), np.float64)
    rows = []
    for number, x in enumerate(arrays):
        row = x.astype(kind) if x.ndim == 2 else x.astype(kind).reshape((1, x.size))
        turned = not rowvar and (x.ndim != 1 if number == 0 else row.shape[0] != 1)
        rows.append(row.T if turned else row)
    joined = xp.concatenate(rows, axis=0) if len(rows) > 1 else rows[0]
    if joined.shape[0] == 0:
        return xp.zeros((0, 0), dtype=kind)
    freedom = joined.shape[1] - (int(not bias) if ddof is None else int(ddof))
    centred = joined - xp.mean(joined, axis=1, keepdims=True)
    other = centred.T.conj() if np.dtype(kind).kind == "c" else centred.T
    return xp.squeeze((centred @ other) * np.true_divide(1, max(freedom, 0.0)).astype(np.dtype(kind)))


@composed("statistics", np.corrcoef, dtypes=ALL, gaps=NO_COMPLEX_ORDER, tolerance=32)
def corrcoef(xp: Any, x: Any, y: Any = None, rowvar: bool = True, *, dtype: Any = None) -> Any:
    """Correlation coefficients of variables, between -1 and 1."""
    c = cov.build(xp, x, y, rowvar, dtype=dtype)
    if not c.ndim:
        return c / c
    deviations = xp.sqrt(xp.diagonal(c))
    return xp.clip(c / deviations[:, None] / deviations[None, :], -1, 1)


@composed("statistics", np.digitize, dtypes=_BUT_BF16, gaps=NO_ORDER)
def digitize(xp: Any, x: Any, bins: Any, right: bool = False) -> Any:
    """The number of the bin of each element; the edges go up or down, which is checked for those that are known."""
    x, side = xp.asarray(x), "left" if right else "right"
    refuse_bfloat16("digitize", x)
    if _is_traced(bins):
        edges = xp.asarray(bins)
        if edges.ndim != 1:
            raise ShapeError(f"digitize: the edges have 1 dimension, not {edges.ndim}")
        if edges.size < 2:
            return xp.searchsorted(edges, x, side=side)
        falls = edges[0] > edges[-1]
        places = xp.searchsorted(xp.where(falls, edges[::-1], edges), x, side=side)
        return xp.where(falls, edges.size - places, places)
    edges = np.asarray(bins)
    steps = np.diff(edges)
    if (steps >= 0).all():
        return xp.searchsorted(xp.asarray(edges.tolist(), dtype=edges.dtype), x, side=side)
    if not (steps <= 0).all():
        raise ShapeError("digitize: the edges of the bins go neither up nor down")
    return edges.size - xp.searchsorted(xp.asarray(edges[::-1].tolist(), dtype=edges.dtype), x, side=side)


def _is_traced(x: Any) -> bool:
    return not isinstance(x, (np.ndarray, np.generic, list, tuple, int, float, str))


@composed("statistics", np.histogram, dtypes=_BUT_BF16, gaps=NO_ORDER)
def histogram(xp: Any, a: Any, bins: Any = 10, range: Any = None, density: Any = None, weights: Any = None) -> Any:
    """The count of elements in each bin, or their weights, and the edges; the number of bins is known at trace time.

    Edges that come with the call are not checked.
    """
    a = xp.asarray(a)
    refuse_bfloat16("histogram", a)
    shape, a = a.shape, a.reshape(-1)
    a = a.astype(np.uint8) if a.dtype == np.bool_ else a
    edges, bin_ = _binned(xp, a, bins, range)
    last = edges.size - 1
    if weights is None:
        counts = xp.zeros(last + 1, dtype=np.int64).at[bin_].add(1)[:last]
    else:
        weights = xp.asarray(weights)
        if weights.shape != shape:
            raise ShapeError(f"histogram: weights of shape {list(weights.shape)} for elements of {list(shape)}")
        counts = xp.zeros(last + 1, dtype=np.float64).at[bin_].add(weights.reshape(-1).astype(np.float64))[:last]
        counts = counts.astype(weights.dtype)
    if density:
        return counts / xp.diff(edges).astype(np.float64) / xp.sum(counts), edges
    return counts, edges


@composed("statistics", np.histogram_bin_edges, dtypes=_BUT_BF16, gaps=NO_ORDER)
def histogram_bin_edges(xp: Any, a: Any, bins: Any = 10, range: Any = None, weights: Any = None) -> Any:
    """The edges of the bins of `np.histogram`; the number of bins is known at trace time, and no rule's name."""
    a = xp.asarray(a)
    refuse_bfloat16("histogram_bin_edges", a)
    a = a.reshape(-1)
    return _edges(xp, a.astype(np.uint8) if a.dtype == np.bool_ else a, bins, range)


def _binned(xp: Any, a: Any, bins: Any, limits: Any, edges: Any = None) -> tuple[Any, Any]:
    """The edges of the bins of `a`, and the bin of each element: the index after the last bin for one in none."""
    edges = _edges(xp, a, bins, limits) if edges is None else edges
    last = edges.size - 1
    if not np.ndim(bins):
        return edges, _equal_bins(xp, a, edges)
    bin_ = xp.searchsorted(edges, a, side="right") - 1
    bin_ = xp.where(a == edges[-1], last - 1, bin_)  # the last bin has both its edges
    return edges, xp.where(bin_ < 0, last, bin_)


@composed("statistics", np.histogramdd, dtypes=_BUT_BF16, gaps=NO_ORDER)
def histogramdd(
    xp: Any, sample: Any, bins: Any = 10, range: Any = None, density: Any = None, weights: Any = None
) -> Any:
    """The counts of points [N, D], or D arrays of coordinates, in boxes, in f64, and the edges along each dimension.

    `bins` is the number of bins, or a number or edges for each dimension.
    """
    return _counts_in_boxes(xp, sample, bins, range, density, weights)


def _counts_in_boxes(xp: Any, sample: Any, bins: Any, ranges: Any, density: Any, weights: Any) -> Any:
    if isinstance(sample, (list, tuple)):
        columns = [xp.asarray(x).reshape(-1) for x in sample]
    else:
        sample = xp.asarray(sample)
        sample = sample[:, None] if sample.ndim == 1 else sample
        columns = [sample[:, i] for i in range(sample.shape[1])]
    each = list(bins) if isinstance(bins, (list, tuple)) or np.ndim(bins) else [bins] * len(columns)
    limits = [None] * len(columns) if ranges is None else list(ranges)
    if len(each) != len(columns) or len(limits) != len(columns):
        raise ShapeError(
            f"histogramdd: {len(columns)} dimensions have {len(each)} entries of `bins` and {len(limits)} of `range`"
        )
    if len({x.shape[0] for x in columns}) > 1:
        raise ShapeError(f"histogramdd: coordinates of different lengths {[x.shape[0] for x in columns]}")
    found = []
    for x, count, limit in zip(columns, each, limits):
        given = limit is not None and not np.ndim(count)
        edges = np.histogram_bin_edges(np.zeros(1), count, limit) if given else None  # of f64, whatever x has
        found.append(_binned(xp, x, count, limit, None if edges is None else xp.asarray(edges)))
    shape = tuple(int(edges.size) - 1 for edges, _ in found)
    total, flat, lost = math.prod(shape), 0, False
    for (_, bin_), size in zip(found, shape):
        flat, lost = flat * size + bin_, lost | (bin_ >= size)
    flat = xp.where(lost, total, flat)
    amounts: Any = 1.0
    if weights is not None:
        amounts = xp.asarray(weights).astype(np.float64)
        if tuple(amounts.shape) != tuple(columns[0].shape):
            raise ShapeError(f"histogramdd: weights of shape {list(amounts.shape)} for {columns[0].shape[0]} points")
    counts = xp.zeros(total + 1, dtype=np.float64).at[flat].add(amounts)[:total].reshape(shape)
    if density:
        sizes = [xp.diff(edges).astype(np.float64) for edges, _ in found]
        total_count = xp.sum(counts)
        for i, size in enumerate(sizes):
            counts = counts / size.reshape((-1,) + (1,) * (len(shape) - i - 1))
        counts = counts / total_count
    return counts, [edges for edges, _ in found]


@composed("statistics", np.histogram2d, dtypes=_BUT_BF16, gaps=NO_ORDER)
def histogram2d(
    xp: Any, x: Any, y: Any, bins: Any = 10, range: Any = None, density: Any = None, weights: Any = None
) -> Any:
    """The counts of points in rectangles, in f64, and the edges along both dimensions.

    `bins` is a number, edges for both, or one of these for each.
    """
    is_list = isinstance(bins, (list, tuple))
    if is_list or np.ndim(bins):
        count = len(bins) if is_list else np.shape(bins)[0]
        if count != 2:
            bins = [bins[0] if count == 1 else xp.asarray(bins)] * 2
    counts, (first, second) = _counts_in_boxes(xp, [x, y], bins, range, density, weights)
    return counts, first, second


def _equal_bins(xp: Any, a: Any, edges: Any) -> Any:
    """The bin of each element, for equally spaced edges; the index after the last bin for an element in none.

    A product is beside the right bin at worst, as NumPy's quotient is. Bins are computed as floats, which represent
    them exactly: AVX2 converts no vectors of 64-bit integers, and edges that are computed need no gathers.
    """
    last = edges.size - 1
    low, high = edges[0], edges[-1]
    start = low.astype(np.float64)
    distance, extent = a.astype(np.float64) - start, high.astype(np.float64) - start
    grown = xp.where(extent < _SMALL, 1 / _SMALL, 1.0)  # the number of bins by a small extent would be infinite
    scaled = distance * grown * (last / (extent * grown))
    bin_ = xp.floor(xp.fmin(xp.fmax(scaled, 0.0), last - 1.0))  # 0 for the NaN of an infinite edge
    step = (high - low) / last

    def edge(of: Any) -> Any:
        if edges.dtype != np.float64:
            return xp.take(edges, of.astype(np.int64), mode="clip")
        return of * step + low  # as np.linspace; NumPy 2 refuses edges between which the step vanishes

    bin_ = xp.where(a < edge(bin_), xp.fmax(bin_ - 1.0, 0.0), bin_)
    bin_ = xp.where((a >= edge(bin_ + 1.0)) & (bin_ < last - 1.0), bin_ + 1.0, bin_)
    return xp.where((a >= low) & (a <= high), bin_, float(last)).astype(np.int64)


_SMALL = 2.0**-500


def _check_range(xp: Any, low: Any, high: Any) -> None:
    """An error when the program runs, where the least or the largest element is not finite."""
    if _is_traced(low):
        b, finite = low._trace.builder, xp.logical_and(xp.isfinite(low), xp.isfinite(high))
        message = "histogram: the range of the elements is not finite"
        b.check(b.element(finite._read()), Check("ShapeError", message, "give the `range`, or leave NaN and inf out"))


def _edges(xp: Any, a: Any, bins: Any, limits: Any) -> Any:
    """The edges of the bins of `a`, as `np.histogram_bin_edges` has them."""
    if isinstance(bins, str):
        raise ShapeError("histogram: the number of bins would depend on the data", help="give `bins` as a number")
    if _is_traced(bins) and np.ndim(bins) == 1:
        return xp.asarray(bins)
    if np.ndim(bins) or limits is not None or not a.size:
        return xp.asarray(np.histogram_bin_edges(np.zeros(1 if a.size else 0, a.dtype), bins, limits))
    count = int(known("histogram", "the number of bins", bins))
    if count < 1:
        raise ShapeError(f"histogram: the number of bins must be positive, got {count}")
    low, high = (xp.min(a), xp.max(a)) if a.dtype.kind == "f" else (xp.min(a) * 1.0, xp.max(a) * 1.0)
    if a.dtype.kind == "f":
        _check_range(xp, low, high)
    alike = low == high
    return xp.linspace(xp.where(alike, low - 0.5, low), xp.where(alike, high + 0.5, high), count + 1)
