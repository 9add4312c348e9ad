"""Linear filters: correlation, convolution, Gaussian and uniform filters, derivatives.

Filters of an axis are sums of products with shifted slices, which become one loop, up to `_FEW` weights, and
convolutions of `mlirml.nn.functional` beyond.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from mlirml.errors import ShapeError
from mlirml.frontend.arrays.array import Traced
from mlirml.ndimage.arguments import (
    Output,
    checked_axes,
    checked_axis,
    checked_mode,
    computed_dtype,
    extended,
    for_each,
    integer,
    part,
    prepared,
    public,
    window,
)
from mlirml.ndimage.windows import combined
from mlirml.special.floats import as_array

__all__ = [
    "convolve", "convolve1d", "correlate", "correlate1d", "gaussian_filter", "gaussian_filter1d",
    "gaussian_gradient_magnitude", "gaussian_laplace", "laplace", "prewitt", "sobel", "uniform_filter",
    "uniform_filter1d",
]  # fmt: skip

_FEW = 21
"""The greatest number of weights of which each is a slice of its own."""


def _weights(name: str, weights: Any) -> Any:
    """Weights as an array of floats, or complex numbers."""
    w = as_array(weights)
    if w.dtype.kind not in "fc":
        w = w.astype(np.float64)
    return w


def _number(weight: Any) -> Any:
    """A weight that gives way in promotion."""
    return weight if isinstance(weight, Traced) else weight.item()


def _line(x: Any, weights: Any, axis: int, mode: str, cval: Any, origin: int, out: Output) -> Any:
    """The correlation along an axis, in the dtype of the result.

    The order of the sum is SciPy's, so that integers are cut off equally: pairs of symmetric weights first.
    """
    if weights.ndim != 1 or weights.shape[0] < 1:
        raise ShapeError(f"{out.name}: weights of shape {list(weights.shape)}, where a vector is needed")
    size, mode = weights.shape[0], checked_mode(out.name, mode)
    before, after = window(out.name, size, origin)
    if not x.size:
        return out.cast(x)
    dtype = np.result_type(computed_dtype(x, out), np.complex64 if weights.dtype.kind == "c" else np.float32)
    padded = extended(x.astype(dtype), {axis: (before, after)}, {axis: mode}, cval)
    if size > _FEW and dtype.kind != "c":
        return out.cast(_by_convolution_of_rows(padded, weights.astype(dtype), axis, x.shape))
    if isinstance(weights, Traced):
        weights = weights.astype(dtype)

    def tap(k: int) -> Any:
        return part(padded, axis, k, x.shape[axis])

    half = size // 2
    sign = 0 if isinstance(weights, Traced) or size % 2 == 0 or dtype.kind == "c" else _symmetry(weights)
    if sign:
        total = tap(half) * _number(weights[half])
        for k in range(half):
            pair = tap(k) + tap(size - 1 - k) if sign > 0 else tap(k) - tap(size - 1 - k)
            total = total + pair * _number(weights[k])
    else:
        total = tap(size - 1) * _number(weights[size - 1])
        for k in range(size - 1):
            total = total + tap(k) * _number(weights[k])
    return out.cast(total)


def _by_convolution_of_rows(padded: Any, weights: Any, axis: int, shape: tuple[int, ...]) -> Any:
    """The same by a convolution of matrices with one channel, of which the last axis is as long as can be."""
    from mlirml.nn import functional

    before, size = math.prod(shape[:axis]), padded.shape[axis]
    if axis == padded.ndim - 1:
        found = functional.conv2d(padded.reshape((1, 1, before, size)), weights.reshape((1, 1, 1, -1)))
    else:
        found = functional.conv2d(padded.reshape((before, 1, size, -1)), weights.reshape((1, 1, -1, 1)))
    return found.reshape(shape)


def _symmetry(weights: Any) -> int:
    """1 for symmetric weights, -1 for antisymmetric ones, 0 for others."""
    eps = np.finfo(np.float64).eps
    for sign in (1, -1):
        if np.all(np.abs(weights - sign * weights[::-1]) <= eps):
            return sign
    return 0


@public("input", "weights")
def correlate1d(
    input: Any, weights: Any, axis: int = -1, output: Any = None, mode: str = "reflect", cval: Any = 0.0,
    origin: int = 0,
) -> Any:  # fmt: skip
    """The correlation of an array with a vector of weights along an axis; complex weights are conjugated."""
    w = _weights("correlate1d", weights)
    w = w.conj() if w.dtype.kind == "c" else w
    x, out = prepared("correlate1d", input, output, is_complex=w.dtype.kind == "c")
    return out.store(_line(x, w, checked_axis(out.name, x, axis), mode, cval, origin, out))


@public("input", "weights")
def convolve1d(
    input: Any, weights: Any, axis: int = -1, output: Any = None, mode: str = "reflect", cval: Any = 0.0,
    origin: int = 0,
) -> Any:  # fmt: skip
    """The convolution of an array with a vector of weights along an axis."""
    w = _weights("convolve1d", weights)
    x, out = prepared("convolve1d", input, output, is_complex=w.dtype.kind == "c")
    origin = -integer(out.name, "origin", origin) - (w.size + 1) % 2
    return out.store(_line(x, w[::-1], checked_axis(out.name, x, axis), mode, cval, origin, out))


def _correlated(
    x: Any, weights: Any, mode: Any, cval: Any, origins: tuple[int, ...], axes: tuple[int, ...], out: Output
) -> Any:
    """The correlation with weights that have a dimension for each of the axes."""
    if weights.ndim != len(axes):
        raise ShapeError(f"{out.name}: weights of {weights.ndim} dimensions for {len(axes)} axes")
    if not weights.size:
        raise ShapeError(f"{out.name}: there are no weights, in shape {list(weights.shape)}")
    modes = {a: checked_mode(out.name, m) for a, m in zip(axes, for_each(out.name, "mode", mode, len(axes)))}
    margins = {a: window(out.name, n, o) for a, n, o in zip(axes, weights.shape, origins)}
    if not x.size:
        return out.cast(x)
    dtype = np.result_type(computed_dtype(x, out), np.complex64 if weights.dtype.kind == "c" else np.float32)
    padded = extended(x.astype(dtype), margins, modes, cval)
    weights = weights.astype(dtype) if isinstance(weights, Traced) else weights
    positions = list(itertools.product(*map(range, weights.shape)))
    if not isinstance(weights, Traced):
        positions = [p for p in positions if not abs(weights[p]) <= np.finfo(np.float64).eps]
    if not positions:
        return out.cast(x.astype(dtype) * 0)
    if len(positions) > 2 * _FEW and len(axes) in (2, 3) and dtype.kind != "c":
        return out.cast(_by_convolution(padded, weights.astype(dtype), axes))
    total: Any = None
    for position in positions:
        tap = padded
        for axis, k in zip(axes, position):
            tap = part(tap, axis, k, x.shape[axis])
        product = tap * _number(weights[position])
        total = product if total is None else total + product
    return out.cast(total)


def _by_convolution(padded: Any, weights: Any, axes: tuple[int, ...]) -> Any:
    """The same by a convolution with one channel, with the other axes as a batch."""
    from mlirml.nn import functional

    convolve = functional.conv2d if len(axes) == 2 else functional.conv3d
    last = tuple(range(padded.ndim - len(axes), padded.ndim))
    moved = np.moveaxis(padded, axes, last)
    batch, sizes = moved.shape[: last[0]], moved.shape[last[0] :]
    found = convolve(moved.reshape((math.prod(batch), 1, *sizes)), weights.reshape((1, 1, *weights.shape)))
    return np.moveaxis(found.reshape((*batch, *found.shape[2:])), last, axes)


@public("input", "weights")
def correlate(
    input: Any, weights: Any, output: Any = None, mode: Any = "reflect", cval: Any = 0.0, origin: Any = 0, *,
    axes: Any = None,
) -> Any:  # fmt: skip
    """The correlation of an array with weights of as many dimensions; complex weights are conjugated."""
    w = _weights("correlate", weights)
    w = w.conj() if w.dtype.kind == "c" else w
    x, out = prepared("correlate", input, output, is_complex=w.dtype.kind == "c")
    chosen = checked_axes(out.name, x, axes)
    origins = for_each(out.name, "origin", origin, len(chosen))
    return out.store(_correlated(x, w, mode, cval, origins, chosen, out))


@public("input", "weights")
def convolve(
    input: Any, weights: Any, output: Any = None, mode: Any = "reflect", cval: Any = 0.0, origin: Any = 0, *,
    axes: Any = None,
) -> Any:  # fmt: skip
    """The convolution of an array with weights of as many dimensions."""
    w = _weights("convolve", weights)
    x, out = prepared("convolve", input, output, is_complex=w.dtype.kind == "c")
    chosen = checked_axes(out.name, x, axes)
    given = for_each(out.name, "origin", origin, len(chosen))
    origins = tuple(-integer(out.name, "origin", o) - (n + 1) % 2 for o, n in zip(given, w.shape))
    return out.store(_correlated(x, w[(slice(None, None, -1),) * w.ndim], mode, cval, origins, chosen, out))


def _kernel(name: str, sigma: Any, order: int, truncate: float, radius: Any) -> Any:
    """The Gaussian's derivative at the integers up to `radius`, as weights of a correlation."""
    order = integer(name, "order", order)
    if order < 0:
        raise ShapeError(f"{name}: the order of a derivative is not negative, got {order}")
    if radius is None:
        if isinstance(sigma, Traced) and sigma._known() is None:
            raise ShapeError(f"{name}: the number of weights would depend on `sigma`", help="give `radius`")
        radius = int(truncate * float(sigma) + 0.5)
    radius = integer(name, "radius", radius)
    if radius < 0:
        raise ShapeError(f"{name}: radius must not be negative, got {radius}")
    x = np.arange(-radius, radius + 1, dtype=np.float64)
    square = sigma * sigma
    weights = np.exp(-0.5 / square * x**2)
    weights = weights / np.sum(weights)
    if not order:
        return weights
    factor: list[Any] = [1.0]  # the polynomial by which the derivative differs, the lowest power first
    for _ in range(order):
        rising = [0.0, *(-c / square for c in factor)]
        falling = [*(k * c for k, c in enumerate(factor))][1:]
        factor = [c + (falling[k] if k < len(falling) else 0.0) for k, c in enumerate(rising)]
    return (sum(c * x**k for k, c in enumerate(factor)) * weights)[::-1]


@public("input", "sigma")
def gaussian_filter1d(
    input: Any, sigma: Any, axis: int = -1, order: int = 0, output: Any = None, mode: str = "reflect",
    cval: Any = 0.0, truncate: float = 4.0, *, radius: Any = None,
) -> Any:  # fmt: skip
    """The array convolved with a Gaussian, or its derivative of an order, along an axis.

    A dynamic `sigma` needs `radius`, the number of weights on each side.
    """
    x, out = prepared("gaussian_filter1d", input, output)
    weights = _kernel(out.name, sigma, order, truncate, radius)
    return out.store(_line(x, weights, checked_axis(out.name, x, axis), mode, cval, 0, out))


@public("input", "sigma")
def gaussian_filter(
    input: Any, sigma: Any, order: Any = 0, output: Any = None, mode: Any = "reflect", cval: Any = 0.0,
    truncate: float = 4.0, *, radius: Any = None, axes: Any = None,
) -> Any:  # fmt: skip
    """`gaussian_filter1d` along all or several axes."""
    x, out = prepared("gaussian_filter", input, output)
    chosen = checked_axes(out.name, x, axes)
    options = [for_each(out.name, what, given, len(chosen)) for what, given in (
        ("sigma", sigma), ("order", order), ("mode", mode), ("radius", radius))]  # fmt: skip
    for axis, width, degree, border, reach in zip(chosen, *options):
        if isinstance(width, Traced) or width > 1e-15:
            x = _line(x, _kernel(out.name, width, degree, truncate, reach), axis, border, cval, 0, out)
    return out.store(x)


def _derivative(name: str, sides: list[float], input: Any, axis: int, output: Any, mode: Any, cval: Any) -> Any:
    x, out = prepared(name, input, output)
    axis = checked_axis(name, x, axis)
    modes = for_each(name, "mode", mode, x.ndim)
    result = _line(x, np.array([-1.0, 0.0, 1.0]), axis, modes[axis], cval, 0, out)
    for other in range(x.ndim):
        if other != axis:
            result = _line(result, np.array(sides), other, modes[other], cval, 0, out)
    return out.store(result)


@public("input")
def sobel(input: Any, axis: int = -1, output: Any = None, mode: Any = "reflect", cval: Any = 0.0) -> Any:
    """Differences along an axis, smoothed with weights 1, 2, 1 along the others."""
    return _derivative("sobel", [1.0, 2.0, 1.0], input, axis, output, mode, cval)


@public("input")
def prewitt(input: Any, axis: int = -1, output: Any = None, mode: Any = "reflect", cval: Any = 0.0) -> Any:
    """Differences along an axis, smoothed with weights 1, 1, 1 along the others."""
    return _derivative("prewitt", [1.0, 1.0, 1.0], input, axis, output, mode, cval)


def _over_axes(x: Any, out: Output, axes: Any, mode: Any, term: Callable[..., Any]) -> Any:
    """The sum of a term for each axis, in the dtype of the result."""
    chosen = checked_axes(out.name, x, axes)
    modes = for_each(out.name, "mode", mode, len(chosen))
    total: Any = None
    for axis in chosen:
        added = term(axis, chosen, modes)
        total = added if total is None else total + added
    return out.cast(x) if total is None else total


@public("input")
def laplace(input: Any, output: Any = None, mode: Any = "reflect", cval: Any = 0.0, *, axes: Any = None) -> Any:
    """The sum of second differences along axes."""
    x, out = prepared("laplace", input, output)
    second = np.array([1.0, -2.0, 1.0])

    def term(axis: int, chosen: tuple[int, ...], modes: tuple[str, ...]) -> Any:
        return _line(x, second, axis, modes[chosen.index(axis)], cval, 0, out)

    return out.store(_over_axes(x, out, axes, mode, term))


def _smooth_derivative(
    x: Any, sigma: Any, degree: int, axis: int, chosen: tuple[int, ...], modes: Any, cval: Any, out: Output,
    truncate: float = 4.0, radius: Any = None,
) -> Any:  # fmt: skip
    """The derivative of the Gaussian filter along one of the axes."""
    order = [degree if other == axis else 0 for other in chosen]
    return gaussian_filter(x, sigma, order, out.dtype, modes, cval, truncate, radius=radius, axes=chosen)


@public("input", "sigma")
def gaussian_laplace(
    input: Any, sigma: Any, output: Any = None, mode: Any = "reflect", cval: Any = 0.0, *, axes: Any = None,
    **kwargs: Any,
) -> Any:  # fmt: skip
    """The sum of second derivatives of the Gaussian filter; other options are those of `gaussian_filter`."""
    x, out = prepared("gaussian_laplace", input, output)

    def term(axis: int, chosen: tuple[int, ...], modes: tuple[str, ...]) -> Any:
        return _smooth_derivative(x, sigma, 2, axis, chosen, modes, cval, out, **kwargs)

    return out.store(_over_axes(x, out, axes, mode, term))


@public("input", "sigma")
def gaussian_gradient_magnitude(
    input: Any, sigma: Any, output: Any = None, mode: Any = "reflect", cval: Any = 0.0, *, axes: Any = None,
    **kwargs: Any,
) -> Any:  # fmt: skip
    """The root of the sum of squared derivatives of the Gaussian filter; options are those of `gaussian_filter`."""
    x, out = prepared("gaussian_gradient_magnitude", input, output)

    def term(axis: int, chosen: tuple[int, ...], modes: tuple[str, ...]) -> Any:
        derivative = _smooth_derivative(x, sigma, 1, axis, chosen, modes, cval, out, **kwargs)
        return derivative * derivative

    total = _over_axes(x, out, axes, mode, term)
    return out.store(np.sqrt(total) if x.ndim and checked_axes(out.name, x, axes) else total)


def _mean(x: Any, size: Any, axis: int, mode: str, cval: Any, origin: int, out: Output) -> Any:
    size = integer(out.name, "size", size)
    if size < 1:
        raise ShapeError(f"{out.name}: the window must have elements, got size {size}")
    margin, mode = window(out.name, size, origin), checked_mode(out.name, mode)
    if not x.size:
        return out.cast(x)
    padded = extended(x.astype(computed_dtype(x, out)), {axis: margin}, {axis: mode}, cval)
    return out.cast(combined(np.add, padded, axis, size) / size)


@public("input")
def uniform_filter1d(
    input: Any, size: int, axis: int = -1, output: Any = None, mode: str = "reflect", cval: Any = 0.0,
    origin: int = 0,
) -> Any:  # fmt: skip
    """The mean of `size` neighbours along an axis."""
    x, out = prepared("uniform_filter1d", input, output)
    return out.store(_mean(x, size, checked_axis(out.name, x, axis), mode, cval, origin, out))


@public("input")
def uniform_filter(
    input: Any, size: Any = 3, output: Any = None, mode: Any = "reflect", cval: Any = 0.0, origin: Any = 0, *,
    axes: Any = None,
) -> Any:  # fmt: skip
    """The mean of a box of neighbours, of `size` elements along each axis."""
    x, out = prepared("uniform_filter", input, output)
    chosen = checked_axes(out.name, x, axes)
    options = [for_each(out.name, what, given, len(chosen)) for what, given in (
        ("size", size), ("mode", mode), ("origin", origin))]  # fmt: skip
    for axis, count, border, start in zip(chosen, *options):
        if count != 1:
            x = _mean(x, count, axis, border, cval, start, out)
    return out.store(x)
