"""Numeric functions composed of other operations: interpolation, differences, convolution, polynomials."""

from __future__ import annotations

from typing import Any

import numpy as np

from mlirml.core.sizes import is_size
from mlirml.errors import DTypeError, ShapeError
from mlirml.ops.reductions import normalized_axes
from mlirml.ops.registry import ALL, NO_COMPLEX_ORDER, NUMBERS, composed, refuse_complex
from mlirml.ops.statistics import refuse_bfloat16

NO_BF16 = ("bf16", "NumPy computes in another dtype from step to step")
NUMBERS_BUT_BF16 = tuple(d for d in NUMBERS if d != "bf16")


_FEW_WEIGHTS = 8


def promoted(xp: Any, x: Any) -> Any:
    """The operand as NumPy's promotion sees it: Python scalars are weak, also those that are dynamic values."""
    if type(x) in (bool, int, float, complex):
        return x
    weak = getattr(x, "_is_weak", bool)()
    dtype = xp.asarray(x).dtype
    return {"b": False, "i": 0, "f": 0.0, "c": 0j}[dtype.kind] if weak else dtype


def _at(axis: int, index: Any) -> tuple[Any, ...]:
    """The index of one axis."""
    return (*[slice(None)] * axis, index)


@composed("numeric", np.trapezoid, dtypes=ALL, tolerance=8)
def trapezoid(xp: Any, y: Any, x: Any = None, dx: Any = 1.0, axis: int = -1) -> Any:
    """Integral along an axis by the trapezoidal rule, over points x or steps dx."""
    y = xp.asarray(y)
    (place,) = normalized_axes("trapezoid", y.shape, axis)
    step = dx if not np.ndim(dx) else xp.asarray(dx)  # a Python number gives way
    if x is not None:
        x = xp.asarray(x)
        step = xp.diff(x, axis=0 if x.ndim == 1 else axis)
        if x.ndim == 1:
            step = step.reshape(tuple(step.size if i == place else 1 for i in range(y.ndim)))
    after, before = y[_at(place, slice(1, None))], y[_at(place, slice(None, -1))]
    return xp.sum(step * (after + before) / 2.0, axis=place)


@composed("numeric", np.gradient, dtypes=NUMBERS, tolerance=16)
def gradient(xp: Any, f: Any, *varargs: Any, axis: Any = None, edge_order: int = 1) -> Any:
    """Central differences along each axis, over steps or points; at the edges of first or second order."""
    f = xp.asarray(f)
    if f.dtype == np.bool_:
        raise DTypeError("gradient: not defined for truth values, as in NumPy")
    axes = normalized_axes("gradient", f.shape, axis)
    if isinstance(axis, (tuple, list)):
        axes = tuple(a % f.ndim for a in axis)
    if edge_order not in (1, 2):
        raise ShapeError("gradient: edge_order is 1 or 2")
    if len(varargs) not in (0, 1, len(axes)) or (len(varargs) == 1 != len(axes) and np.ndim(varargs[0])):
        raise ShapeError(f"gradient: {len(varargs)} spacings for {len(axes)} axes")
    spacings = list(varargs or (1.0,)) * (len(axes) if len(varargs) < 2 and len(axes) != len(varargs) else 1)
    f = f if np.issubdtype(f.dtype, np.inexact) else f.astype(np.float64)
    results = [_slope(xp, f, a, _steps(xp, h, f.shape[a]), edge_order) for a, h in zip(axes, spacings)]
    return results[0] if len(results) == 1 else tuple(results)


def _steps(xp: Any, spacing: Any, size: int) -> Any:
    """A number, or the distances of neighbours where they differ, as far as is known."""
    if not np.ndim(spacing):
        return spacing
    traced = not isinstance(spacing, (np.ndarray, list, tuple))
    points = xp.asarray(spacing) if traced else np.asarray(spacing)
    if points.shape != (size,):
        raise ShapeError(f"gradient: {points.size} points for {size} elements")
    steps = (xp if traced else np).diff(points.astype(np.float64) if points.dtype.kind in "iu" else points)
    return steps if traced or not (steps == steps[0]).all() else steps[0]


def _slope(xp: Any, f: Any, axis: int, h: Any, edge_order: int) -> Any:
    n = f.shape[axis]
    if n < edge_order + 1:
        raise ShapeError(f"gradient: {n} elements along axis {axis} are too few for edge_order={edge_order}")

    def part(start: int, stop: int | None) -> Any:
        return f[_at(axis, slice(start, stop))]

    def lined(values: Any) -> Any:
        return xp.asarray(values).reshape(tuple(len(values) if i == axis else 1 for i in range(f.ndim)))

    uneven = np.ndim(h) == 1
    if not uneven:
        inner = (part(2, None) - part(0, -2)) / (2.0 * h)
        first, last = h, h
    else:
        left, right = h[:-1], h[1:]
        a, b, c = -right / (left * (left + right)), (right - left) / (left * right), left / (right * (left + right))
        inner = lined(a) * part(0, -2) + lined(b) * part(1, -1) + lined(c) * part(2, None)
        first, last = h[0], h[-1]
    if edge_order == 1:
        low, high = (part(1, 2) - part(0, 1)) / first, (part(n - 1, n) - part(n - 2, n - 1)) / last
    else:
        one, two = (h[0], h[1]) if uneven else (h, h)
        a, b, c = -(2 * one + two) / (one * (one + two)), (one + two) / (one * two), -one / (two * (one + two))
        low = a * part(0, 1) + b * part(1, 2) + c * part(2, 3)
        one, two = (h[-2], h[-1]) if uneven else (h, h)
        a, b, c = two / (one * (one + two)), -(two + one) / (one * two), (2 * two + one) / (two * (one + two))
        high = a * part(n - 3, n - 2) + b * part(n - 2, n - 1) + c * part(n - 1, n)
    return xp.concatenate([low, inner, high], axis=axis).astype(f.dtype)


@composed("numeric", np.ediff1d, dtypes=NUMBERS)
def ediff1d(xp: Any, ary: Any, to_end: Any = None, to_begin: Any = None) -> Any:
    """Differences of neighbours of the flattened array, with values prepended and appended."""
    ary = xp.asarray(ary).reshape(-1)
    middle = xp.subtract(ary[1:], ary[:-1])
    ends = [None if x is None else xp.asarray(x).reshape(-1) for x in (to_begin, to_end)]
    for name, end in zip(("to_begin", "to_end"), ends):
        if end is not None and not np.can_cast(end.dtype, ary.dtype, "same_kind"):
            raise DTypeError(f"ediff1d: {name} is {end.dtype.name}, which cannot be cast to {ary.dtype.name}")
    ends = [None if x is None else x.astype(ary.dtype) for x in ends]
    return xp.concatenate([x for x in (ends[0], middle, ends[1]) if x is not None]) if any(
        x is not None for x in ends) else middle  # fmt: skip


@composed("numeric", np.polyval, dtypes=ALL, arrays=2, tolerance=32)
def polyval(xp: Any, p: Any, x: Any) -> Any:
    """The polynomial with coefficients p, the highest first, at x, by Horner's rule."""
    p, x = xp.asarray(p), xp.asarray(x)
    result = xp.zeros_like(x)
    for i in range(p.shape[0]):
        result = result * x + p[i]
    return result


@composed("numeric", np.polyfit, dtypes=tuple(d for d in ALL if d not in ("bf16", "f16")), arrays=2, tolerance=1e4)
def polyfit(
    xp: Any, x: Any, y: Any, deg: int, rcond: Any = None, full: bool = False, w: Any = None, cov: bool = False
) -> Any:
    """The coefficients, the highest first, of the polynomial of a degree that fits points best by least squares.

    With `full` also the squared residuals, the rank, the singular values and `rcond`; else, with `cov`, the covariance
    of the coefficients, for weights that are the reciprocals of the values' errors with `cov="unscaled"`.
    """
    x, y = xp.asarray(x) + 0.0, xp.asarray(y) + 0.0
    if x.ndim != 1 or y.ndim not in (1, 2) or x.shape[0] != y.shape[0] or not x.shape[0] or deg < 0:
        raise ShapeError(f"polyfit: points {list(x.shape)} and values {list(y.shape)} do not fit, or degree {deg} < 0")
    rcond = x.shape[0] * np.finfo(x.dtype).eps if rcond is None else rcond
    left, right = xp.vander(x, int(deg) + 1), y
    if w is not None:
        weights = xp.asarray(w) + 0.0
        if weights.shape != x.shape:
            raise ShapeError(f"polyfit: {list(weights.shape)} weights for {list(x.shape)} points")
        left, right = left * weights[:, None], right * (weights if y.ndim == 1 else weights[:, None])
    scale = xp.sqrt(xp.sum((left * xp.conj(left)).real, axis=0))
    left = left / scale
    found, residuals, rank, values = xp.linalg.lstsq(left, right, rcond)
    found = (found.T / scale).T
    if full:
        return found, residuals, rank, values, rcond
    if cov is False or cov is None:
        return found
    covariance = xp.linalg.inv(left.T @ left) / (scale[:, None] * scale)
    covariance = covariance if y.ndim == 1 else covariance[:, :, None]
    if not isinstance(cov, str):
        freedom = x.shape[0] - int(deg) - 1
        if freedom < 1:
            raise ShapeError(f"polyfit: the covariance of {int(deg) + 1} coefficients needs more points than that")
        covariance = covariance * (residuals / freedom)
    return found, covariance


_NOT_HALF = tuple(d for d in ALL if d not in ("bf16", "f16"))


@composed("numeric", np.roots, dtypes=_NOT_HALF, arrays=1, tolerance=1e4)
def roots(xp: Any, p: Any) -> Any:
    """The roots of the polynomial with coefficients p, the highest first, as eigenvalues of its companion matrix.

    They are complex, also where all of them are real. The first coefficient must not be 0: NumPy leaves zeros at the
    beginning away, here the call fails with a `LinAlgError`. Roots that are 0 come in any order among the others, where
    NumPy has them last.
    """
    p = xp.asarray(p)
    p = p if p.dtype.kind in "fc" else p.astype(np.float64)
    if p.ndim != 1:
        raise ShapeError(f"roots: the coefficients must have 1 dimension, not {p.ndim}")
    size = p.shape[0] - 1
    if size < 1:
        return xp.zeros(0)
    first = (-p[1:] / p[0])[None, :]
    below = xp.broadcast_to(xp.asarray(np.eye(size, dtype=p.dtype)[:-1]), (size - 1, size))
    return xp.linalg.eigvals(xp.concatenate([first, below], axis=0))


@composed("numeric", np.poly, dtypes=_NOT_HALF, arrays=1, tolerance=1e4)
def poly(xp: Any, seq_of_zeros: Any) -> Any:
    """The coefficients, the highest first, of the polynomial with given roots, or of a square matrix's.

    Those of a real matrix are real, and those of complex roots complex, also where these are conjugates of each other.
    """
    roots = xp.asarray(seq_of_zeros)
    roots = roots if roots.dtype.kind in "fc" and roots.dtype.itemsize > 2 else roots.astype(np.float64)
    is_real = roots.dtype.kind == "f"
    if roots.ndim == 2 and roots.shape[0] == roots.shape[1] and roots.shape[0]:
        roots = xp.linalg.eigvals(roots)
    elif roots.ndim != 1:
        raise ShapeError(f"poly: needs roots of 1 dimension or a square matrix, not shape {list(roots.shape)}")
    result = xp.ones(1, dtype=roots.dtype)
    for i in range(roots.shape[0]):
        product = roots[i] * result
        result = xp.concatenate([result[:1], result[1:] - product[:-1], -product[-1:]])
    return result.real if is_real else result


@composed("numeric", np.vander, dtypes=tuple(d for d in ALL if d != "bf16"), tolerance=8)
def vander(xp: Any, x: Any, N: int | None = None, increasing: bool = False) -> Any:
    """The powers of the elements of x, one row for each element."""
    x = xp.asarray(x)
    if x.ndim != 1:
        raise ShapeError(f"vander: needs an array of 1 dimension, not {x.ndim}")
    count = x.shape[0] if N is None else int(N)
    dtype = np.promote_types(x.dtype, np.int64)
    columns = x.astype(dtype)[:, None]
    powers = xp.cumprod(xp.broadcast_to(columns, (x.shape[0], max(count - 1, 0))), axis=1)
    result = xp.concatenate([xp.ones((x.shape[0], min(count, 1)), dtype=dtype), powers.astype(dtype)], axis=1)
    return result if increasing else result[:, ::-1]


@composed("numeric", np.interp, dtypes=ALL, tolerance=16)
def interp(np_: Any, x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None, period: Any = None) -> Any:
    """Linear interpolation in f64 between increasing points xp with values fp, which may be complex; `left` and `right`
    are the values outside.
    """
    x, xp, fp = (np_.asarray(a) for a in (x, xp, fp))
    sides = [np_.asarray(side).dtype.kind for side in (left, right) if side is not None]
    if "c" in (x.dtype.kind, xp.dtype.kind) or (fp.dtype.kind != "c" and "c" in sides):
        raise refuse_complex("interp")
    if fp.dtype.kind == "c":
        return _interpolated_parts(np_, x, xp, fp, left, right, period)
    x, places, values = (a.astype(np.float64) for a in (x, xp, fp))
    if places.ndim != 1 or places.shape != values.shape:
        raise ShapeError(
            f"interp: xp {list(places.shape)} and fp {list(values.shape)} must be of 1 dimension and alike"
        )
    if places.size == 0:
        raise ShapeError("interp: no points to interpolate between")
    if period is not None:
        period = abs(period)
        x, places, left, right = x % period, places % period, None, None
        order = np_.argsort(places)
        places, values = np_.take(places, order), np_.take(values, order)
        places = np_.concatenate([places[-1:] - period, places, places[:1] + period])
        values = np_.concatenate([values[-1:], values, values[:1]])
    n = places.size
    below = values[0] if left is None else left
    above = values[-1] if right is None else right
    place = np_.searchsorted(places, x, side="right") - 1
    inside = np_.where((place == n - 1) & (x == places[-1]), values[-1], above)
    if n > 1:
        j = np_.clip(place, 0, n - 2)
        x0, x1, y0, y1 = (np_.take(a, k) for a, k in ((places, j), (places, j + 1), (values, j), (values, j + 1)))
        slope = (y1 - y0) / (x1 - x0)
        line = slope * (x - x0) + y0
        line = np_.where(np_.isnan(line), slope * (x - x1) + y1, line)
        line = np_.where(np_.isnan(line) & (y0 == y1), y0, line)
        line = np_.where(x == x0, y0, line)
        inside = np_.where(place >= n - 1, inside, line)
    result = np_.where(x < places[0], below, inside)
    return np_.where(np_.isnan(x), x, result).astype(np.float64)


def _interpolated_parts(np_: Any, x: Any, xp: Any, fp: Any, left: Any, right: Any, period: Any) -> Any:
    """Complex values between points, whose real and imaginary parts are interpolated each by itself."""
    result = np_.zeros(x.shape, np.complex128)
    for part, to in ((np_.real, result.real), (np_.imag, result.imag)):
        sides = (None if side is None else part(side) for side in (left, right))
        to[...] = np_.interp(x, xp, part(fp), *sides, period)
    return result


def _correlate(xp: Any, name: str, a: Any, v: Any, mode: Any) -> Any:
    """`sum_n a[n + k] * conj(v[n])`; the shorter array slides along the longer."""
    mode = {0: "valid", 1: "same", 2: "full"}.get(mode, mode)
    if a.ndim != 1 or v.ndim != 1:
        raise ShapeError(f"{name}: needs arrays of 1 dimension")
    if a.size == 0 or v.size == 0:
        raise ShapeError(f"{name}: an array is empty")
    if mode not in ("valid", "same", "full"):
        raise ShapeError(f"{name}: mode is 'valid', 'same' or 'full', not {mode!r}")
    if v.dtype.kind == "c":
        v = v.conj()
    turned = v.size > a.size
    if turned:
        a, v = v, a
    n, m = a.size, v.size
    margins = {"valid": (0, 0), "same": (m // 2, m - 1 - m // 2), "full": (m - 1, m - 1)}[mode]
    padded = xp.pad(a, margins)
    count = n + sum(margins) - m + 1
    # A few products of slices are computed together with what is around them.
    # Rows of windows, but never more of them than a few times the array: beyond that, one pass for each weight.
    dtype = np.result_type(a.dtype, v.dtype)
    if m > _FEW_WEIGHTS and dtype.kind not in "bc":
        from mlirml.ops.convolutions import conv1d

        result = xp.recorded(conv1d, padded.astype(dtype)[None], v.astype(dtype)[None, None])[0]
    elif m <= _FEW_WEIGHTS or count * m > 1 << 22:
        result = xp.zeros(count, dtype=dtype)
        for k in range(m):
            result = result + padded[k : k + count] * v[k]
    else:
        windows = xp.take(padded, xp.known(np.arange(count)[:, None] + np.arange(m)))
        result = (windows @ v).astype(dtype)
    if result.dtype.kind not in "biu":  # the padding times infinity or NaN is not 0
        for first, last in ((0, margins[0]), (count - margins[1], count)):
            if first < last:
                result[first:last] = _correlate_beyond(xp, a, v, first - margins[0], last - margins[0])
    return result[::-1] if turned else result


def _correlate_beyond(xp: Any, a: Any, v: Any, first: int, last: int) -> Any:
    """`sum_n a[start + n] * v[n]` for starts from `first` to `last`, of those n for which `a` has an element."""
    if last - first > 1 and (last - first) * v.size > 1 << 22:
        half = (first + last) // 2
        return xp.concatenate([_correlate_beyond(xp, a, v, *part) for part in ((first, half), (half, last))])
    if is_size(first) or is_size(a.size):
        places = xp.arange(last - first)[:, None] + np.arange(v.size) + first
        products = xp.take(a, xp.clip(places, 0, a.size - 1)) * v
        return xp.sum(xp.where((places >= 0) & (places < a.size), products, 0), axis=-1)
    places = np.arange(first, last)[:, None] + np.arange(v.size)
    products = xp.take(a, xp.known(np.clip(places, 0, a.size - 1))) * v
    return xp.sum(xp.where(xp.known((places >= 0) & (places < a.size)), products, 0), axis=-1)


@composed("numeric", np.correlate, dtypes=ALL, tolerance=8)
def correlate(xp: Any, a: Any, v: Any, mode: Any = "valid") -> Any:
    """Cross-correlation of two vectors."""
    return _correlate(xp, "correlate", xp.asarray(a), xp.asarray(v), mode)


@composed("numeric", np.convolve, dtypes=ALL, tolerance=8)
def convolve(xp: Any, a: Any, v: Any, mode: Any = "full") -> Any:
    """Convolution of two vectors."""
    a, v = xp.atleast_1d(xp.asarray(a)), xp.atleast_1d(xp.asarray(v))
    if v.size > a.size:
        a, v = v, a
    v = v[::-1].conj() if v.dtype.kind == "c" else v[::-1]
    return _correlate(xp, "convolve", a, v, mode)


@composed("numeric", np.unwrap, dtypes=NUMBERS_BUT_BF16, gaps=(*NO_COMPLEX_ORDER, NO_BF16), tolerance=16)
def unwrap(xp: Any, p: Any, discont: Any = None, axis: int = -1, *, period: Any = 2 * np.pi) -> Any:
    """Jumps of more than half a period along an axis taken out by adding whole periods."""
    p = xp.asarray(p)
    refuse_bfloat16("unwrap", p)
    (place,) = normalized_axes("unwrap", p.shape, axis)
    steps = xp.diff(p, axis=place)
    dtype = np.result_type(steps.dtype, promoted(xp, period))
    whole = np.issubdtype(dtype, np.integer)
    half = period // 2 if whole else period / 2
    wrapped = (steps + half) % period - half
    turned = (wrapped == -half) & (steps > 0)
    turned = turned & (period % 2 == 0) if whole else turned
    wrapped = xp.where(turned, half, wrapped)
    change = xp.where(xp.abs(steps) < (period / 2 if discont is None else discont), 0, wrapped - steps)
    rest = p[_at(place, slice(1, None))] + xp.cumsum(change, axis=place)
    return xp.concatenate([p[_at(place, slice(None, 1))].astype(dtype), rest.astype(dtype)], axis=place)


_FEW_TESTS = 32
"""The number of test elements that each element is compared with in turn; it is searched for among more."""


@composed("numeric", np.isin, dtypes=ALL, scalars=False)
def isin(
    xp: Any, element: Any, test_elements: Any, assume_unique: bool = False, invert: bool = False, *, kind: Any = None
) -> Any:
    """True if each element is one of the test elements."""
    element, tests = xp.asarray(element), xp.asarray(test_elements).reshape(-1)
    if tests.size > _FEW_TESTS and element.dtype == tests.dtype and element.dtype.kind in "iuf":
        ordered = xp.sort(tests)
        found = ordered[xp.minimum(xp.searchsorted(ordered, element), tests.size - 1)] == element
    else:
        found = xp.any(element[..., None] == tests, axis=-1)
    return ~found if invert else found
