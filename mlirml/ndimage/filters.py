"""Linear filters: correlations with weights, one axis after another where that is possible.

Sums are made in the dtype of the input, f32 or f64, and in f64 for other dtypes; SciPy always computes in f64. Borders
are those of SciPy's modes, `axes`, `origin` and `cval` as well.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from mlirml.errors import ArgumentError, ShapeError
from mlirml.frontend.arrays.array import Traced
from mlirml.frontend.frames import at_user_line
from mlirml.ndimage.borders import as_image, axes_of, computed_in, for_axes, padded, placed, reach, stored_as

_MOST_TERMS = 64
"""Weights that are written out; more of them are one contraction with windows."""


def correlate1d(
    input: Any, weights: Any, axis: int = -1, output: Any = None, mode: str = "reflect", cval: float = 0.0,
    origin: int = 0,
) -> Any:  # fmt: skip
    """The sums of weights times the elements of a window along one axis."""
    x = as_image("correlate1d", input)
    (axis,) = axes_of("correlate1d", x, axis)
    return stored_as(x, _along("correlate1d", x.astype(computed_in(x)), weights, axis, mode, cval, origin), output)


def convolve1d(
    input: Any, weights: Any, axis: int = -1, output: Any = None, mode: str = "reflect", cval: float = 0.0,
    origin: int = 0,
) -> Any:  # fmt: skip
    """The convolution with weights along one axis: `correlate1d` with them in reverse order."""
    weights = weights if isinstance(weights, Traced) else np.asarray(weights)
    origin = -origin - (1 - weights.shape[0] % 2)
    return correlate1d(input, weights[::-1], axis, output, mode, cval, origin)


def _along(name: str, x: Any, weights: Any, axis: int, mode: str, cval: float, origin: int) -> Any:
    w = weights if isinstance(weights, Traced) else np.asarray(weights)
    if w.ndim != 1 or not w.shape[0]:
        with at_user_line():
            raise ShapeError(f"ndimage.{name}: the weights must have 1 dimension, not shape {list(w.shape)}")
    shape = [1] * x.ndim
    shape[axis] = w.shape[0]
    origins = [origin if i == axis else 0 for i in range(x.ndim)]
    return _correlated(name, x, w.reshape(tuple(shape)), [mode] * x.ndim, cval, origins)


def _correlated(name: str, x: Any, w: Any, modes: list[str], cval: float, origins: list[int]) -> Any:
    """The correlation with weights of as many dimensions as the array has."""
    widths = [reach(name, size, origin) for size, origin in zip(w.shape, origins)]
    source = padded(name, x, widths, modes, cval)
    w = w.astype(x.dtype)
    if w.size > _MOST_TERMS:
        windows = np.lib.stride_tricks.sliding_window_view(source, w.shape)
        return np.einsum(windows, list(range(2 * x.ndim)), w, list(range(x.ndim, 2 * x.ndim)), list(range(x.ndim)))
    total: Any = None
    for index in np.ndindex(*w.shape):
        if not isinstance(w, Traced) and w[index] == 0:
            continue
        part = source[tuple(slice(i, i + n) for i, n in zip(index, x.shape))]
        term = part * w[index]
        total = term if total is None else total + term
    return np.zeros_like(x) if total is None else total


def correlate(
    input: Any, weights: Any, output: Any = None, mode: Any = "reflect", cval: float = 0.0, origin: Any = 0, *,
    axes: Any = None,
) -> Any:  # fmt: skip
    """The sums of weights times the elements of a window, whose centre `origin` moves."""
    return _with_weights("correlate", input, weights, output, mode, cval, origin, axes, False)


def convolve(
    input: Any, weights: Any, output: Any = None, mode: Any = "reflect", cval: float = 0.0, origin: Any = 0, *,
    axes: Any = None,
) -> Any:  # fmt: skip
    """The convolution with weights: `correlate` with them reversed along each axis."""
    return _with_weights("convolve", input, weights, output, mode, cval, origin, axes, True)


def _with_weights(
    name: str, input: Any, weights: Any, output: Any, mode: Any, cval: float, origin: Any, axes: Any, flip: bool
) -> Any:
    x = as_image(name, input)
    w = weights if isinstance(weights, Traced) else np.asarray(weights)
    chosen = axes_of(name, x, axes)
    if w.ndim != len(chosen) or 0 in w.shape:
        with at_user_line():
            raise ShapeError(f"ndimage.{name}: weights of shape {list(w.shape)} for {len(chosen)} axes")
    shape, modes, origins = placed(name, x, w.shape, chosen, mode, origin)
    if flip:
        w = w[(slice(None, None, -1),) * w.ndim]
        origins = [-moved - (1 - size % 2) for moved, size in zip(origins, shape)]
    w = w.reshape(tuple(shape))
    return stored_as(x, _correlated(name, x.astype(computed_in(x)), w, modes, cval, origins), output)


def _separably(name: str, x: Any, axes: Any, mode: Any, each: Callable[[Any, int, int, str], Any]) -> Any:
    """A filter of one axis after another: `each(x, number, axis, mode)`."""
    chosen = axes_of(name, x, axes)
    for number, (axis, one) in enumerate(zip(chosen, for_axes(name, x, mode, chosen, "mode"))):
        x = each(x, number, axis, one)
    return x


def uniform_filter1d(
    input: Any, size: int, axis: int = -1, output: Any = None, mode: str = "reflect", cval: float = 0.0,
    origin: int = 0,
) -> Any:  # fmt: skip
    """The mean of the elements of a window along one axis."""
    return correlate1d(input, np.full(size, 1 / size), axis, output, mode, cval, origin)


def uniform_filter(
    input: Any, size: Any = 3, output: Any = None, mode: Any = "reflect", cval: float = 0.0, origin: Any = 0, *,
    axes: Any = None,
) -> Any:  # fmt: skip
    """The mean of the elements of a window. Integers are truncated once, at the end; SciPy does after each axis."""
    x = as_image("uniform_filter", input)
    chosen = axes_of("uniform_filter", x, axes)
    sizes = for_axes("uniform_filter", x, size, chosen, "size")
    origins = for_axes("uniform_filter", x, origin, chosen, "origin")

    def each(x: Any, number: int, axis: int, mode: str) -> Any:
        count = int(sizes[number])
        return _along("uniform_filter", x, np.full(count, 1 / count), axis, mode, cval, origins[number])

    return stored_as(x, _separably("uniform_filter", x.astype(computed_in(x)), axes, mode, each), output)


def gaussian_filter1d(
    input: Any, sigma: float, axis: int = -1, order: int = 0, output: Any = None, mode: str = "reflect",
    cval: float = 0.0, truncate: float = 4.0, *, radius: int | None = None,
) -> Any:  # fmt: skip
    """The correlation with a Gaussian, or one of its derivatives, along one axis; `sigma` is in elements."""
    return correlate1d(input, _gaussian(sigma, order, truncate, radius), axis, output, mode, cval)


def _gaussian(sigma: Any, order: int, truncate: float, radius: int | None) -> np.ndarray:
    """The weights: derivatives are those of the Gaussian, by its polynomial factors, in the order of a correlation."""
    if isinstance(sigma, Traced) or order < 0:
        with at_user_line():
            raise ArgumentError("ndimage.gaussian_filter: `sigma` and `order` are numbers that are known, from 0 on")
    count = int(truncate * float(sigma) + 0.5) if radius is None else int(radius)
    x = np.arange(-count, count + 1)
    variance = float(sigma) * float(sigma)
    weights = np.exp(-0.5 / variance * x**2) if variance else (x == 0).astype(float)
    weights /= weights.sum()
    factor = np.ones(1)  # of the polynomial q with d^n/dx^n g = q g: q' - q x / variance
    for _ in range(order):
        slope = np.arange(1, len(factor)) * factor[1:]
        factor = -np.concatenate([[0.0], factor]) / variance
        factor[: len(slope)] += slope
    return np.asarray((np.polynomial.polynomial.polyval(x, factor) * weights)[::-1])


def gaussian_filter(
    input: Any, sigma: Any, order: Any = 0, output: Any = None, mode: Any = "reflect", cval: float = 0.0,
    truncate: float = 4.0, *, radius: Any = None, axes: Any = None,
) -> Any:  # fmt: skip
    """The correlation with a Gaussian, or derivatives of it, along each axis.

    Integers are truncated once, at the end; SciPy does after each axis.
    """
    x = as_image("gaussian_filter", input)
    chosen = axes_of("gaussian_filter", x, axes)
    sigmas = for_axes("gaussian_filter", x, sigma, chosen, "sigma")
    orders = for_axes("gaussian_filter", x, order, chosen, "order")
    radii = [None] * len(chosen) if radius is None else for_axes("gaussian_filter", x, radius, chosen, "radius")

    def each(x: Any, number: int, axis: int, mode: str) -> Any:
        if sigmas[number] <= 1e-15:
            return x
        weights = _gaussian(sigmas[number], orders[number], truncate, radii[number])
        return _along("gaussian_filter", x, weights, axis, mode, cval, 0)

    return stored_as(x, _separably("gaussian_filter", x.astype(computed_in(x)), axes, mode, each), output)


def _edges(name: str, input: Any, axis: int, output: Any, mode: Any, cval: float, smooth: list[float]) -> Any:
    x = as_image(name, input)
    (axis,) = axes_of(name, x, axis)
    modes = for_axes(name, x, mode, range(x.ndim), "mode")
    result = _along(name, x.astype(computed_in(x)), [-1, 0, 1], axis, modes[axis], cval, 0)
    for other in range(x.ndim):
        if other != axis:
            result = _along(name, result, smooth, other, modes[other], cval, 0)
    return stored_as(x, result, output)


def sobel(input: Any, axis: int = -1, output: Any = None, mode: Any = "reflect", cval: float = 0.0) -> Any:
    """Sobel's filter: differences along one axis, smoothed by 1, 2, 1 along the others."""
    return _edges("sobel", input, axis, output, mode, cval, [1, 2, 1])


def prewitt(input: Any, axis: int = -1, output: Any = None, mode: Any = "reflect", cval: float = 0.0) -> Any:
    """Prewitt's filter: differences along one axis, summed over three elements along the others."""
    return _edges("prewitt", input, axis, output, mode, cval, [1, 1, 1])


def _sum_over_axes(name: str, input: Any, output: Any, mode: Any, axes: Any, each: Callable[..., Any]) -> Any:
    x = as_image(name, input)
    wide = x.astype(computed_in(x))
    chosen = axes_of(name, x, axes)
    modes = for_axes(name, x, mode, chosen, "mode")
    if not chosen:
        return x
    return stored_as(
        x,
        functools.reduce(lambda a, b: a + b, (each(wide, a, m, chosen, modes) for a, m in zip(chosen, modes))),
        output,
    )


def laplace(input: Any, output: Any = None, mode: Any = "reflect", cval: float = 0.0, *, axes: Any = None) -> Any:
    """The sum of second differences along each axis."""

    def second(x: Any, axis: int, mode: str, chosen: list[int], modes: list[str]) -> Any:
        return _along("laplace", x, [1, -2, 1], axis, mode, cval, 0)

    return _sum_over_axes("laplace", input, output, mode, axes, second)


def gaussian_laplace(
    input: Any, sigma: Any, output: Any = None, mode: Any = "reflect", cval: float = 0.0, *, axes: Any = None,
    **options: Any,
) -> Any:  # fmt: skip
    """The sum of second derivatives of the array smoothed by a Gaussian."""

    def second(x: Any, axis: int, mode: str, chosen: list[int], modes: list[str]) -> Any:
        order = [2 if a == axis else 0 for a in chosen]
        return gaussian_filter(x, sigma, order, None, modes, cval, axes=chosen, **options)

    return _sum_over_axes("gaussian_laplace", input, output, mode, axes, second)


def gaussian_gradient_magnitude(
    input: Any, sigma: Any, output: Any = None, mode: Any = "reflect", cval: float = 0.0, *, axes: Any = None,
    **options: Any,
) -> Any:  # fmt: skip
    """The length of the gradient of the array smoothed by a Gaussian."""

    def first(x: Any, axis: int, mode: str, chosen: list[int], modes: list[str]) -> Any:
        order = [1 if a == axis else 0 for a in chosen]
        return gaussian_filter(x, sigma, order, None, modes, cval, axes=chosen, **options) ** 2

    x = as_image("gaussian_gradient_magnitude", input)
    squares = _sum_over_axes("gaussian_gradient_magnitude", x.astype(computed_in(x)), None, mode, axes, first)
    return stored_as(x, np.sqrt(squares), output)
