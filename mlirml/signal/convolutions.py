"""Convolutions and correlations of arrays with any number of dimensions, directly or by Fourier transforms."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np

from mlirml.errors import ArgumentError, DTypeError, ShapeError
from mlirml.frontend.frames import at_user_line
from mlirml.nn import functional
from mlirml.ops.functions import library
from mlirml.special.floats import as_array

__all__ = [
    "choose_conv_method", "convolve", "convolve2d", "correlate", "correlate2d", "correlation_lags", "fftconvolve",
    "oaconvolve",
]  # fmt: skip

_MODES = ("full", "same", "valid")
_DIRECT_COST = 12
"""Products per point and bit of the length of a transform below which a direct convolution is the faster one."""


@library("mlirml.signal", "in1", "in2")
def convolve(in1: Any, in2: Any, mode: str = "full", method: str = "auto") -> Any:
    """The convolution of two arrays with the same number of dimensions.

    `mode` is "full", "same" (the middle of it, of the shape of `in1`) or "valid" (without the margins that need zeros
    from outside, for which one array has to be as large as the other along every axis). `method` is "direct", "fft" or
    "auto": floats by the one of fewer operations, integers directly. The result has the promoted dtype; without
    elements in one of the arrays it has none.
    """
    in1, in2 = _pair("convolve", in1, in2, mode)
    if method not in ("auto", "direct", "fft"):
        with at_user_line():
            raise ArgumentError(f"convolve: the method is 'auto', 'direct' or 'fft', not {method!r}")
    if in1.ndim == 0:
        return in1 * in2
    if not in1.size or not in2.size:
        return np.zeros(0, np.result_type(in1.dtype, in2.dtype))
    if mode == "valid":
        _one_contains("convolve", in1.shape, in2.shape, range(in1.ndim))
    if method == "fft" or (method == "auto" and choose_conv_method(in1, in2, mode) == "fft"):
        dtype = np.result_type(in1.dtype, in2.dtype)
        result = fftconvolve(in1, in2, mode)
        return np.round(result).astype(dtype) if dtype.kind in "biu" else result.astype(dtype)
    return direct(in1, in2, mode)


@library("mlirml.signal")
def choose_conv_method(in1: Any, in2: Any, mode: str = "full") -> str:
    """The method, "direct" or "fft", that `convolve` takes: the one of fewer operations, for integers the first."""
    dtype = np.result_type(in1.dtype, in2.dtype)
    if dtype.kind not in "fc" or not in1.size or not in2.size:
        return "direct"
    sizes = [m + n - 1 for m, n in zip(in1.shape, in2.shape)]
    points = math.prod(map(_fast_length, sizes))
    valid = math.prod(abs(m - n) + 1 for m, n in zip(in1.shape, in2.shape))
    results = {"full": math.prod(sizes), "same": in1.size}.get(mode, valid)
    products = results * min(in1.size, in2.size)
    return "fft" if products > _DIRECT_COST * points * max(math.log2(points), 1) or len(sizes) > 3 else "direct"


@library("mlirml.signal", "in1", "in2")
def correlate(in1: Any, in2: Any, mode: str = "full", method: str = "auto") -> Any:
    """The cross-correlation, the sum of in1[n + k] conj(in2[n]) over n, with the modes and methods of `convolve`."""
    in1, in2 = _pair("correlate", in1, in2, mode)
    return convolve(in1, _reversed(in2), mode, method)


@library("mlirml.signal")
def correlation_lags(in1_len: int, in2_len: int, mode: str = "full") -> np.ndarray:
    """The lag of each element of the correlation of two vectors of these lengths."""
    lags = np.arange(-in2_len + 1, in1_len)
    if mode == "same":
        middle, bound = lags.size // 2, in1_len // 2
        return lags[middle - bound : middle + bound + in1_len % 2]
    if mode == "valid":
        difference = in1_len - in2_len
        return np.arange(difference + 1) if difference >= 0 else np.arange(difference, 1)
    return lags


@library("mlirml.signal", "in1", "in2")
def fftconvolve(in1: Any, in2: Any, mode: str = "full", axes: Any = None) -> Any:
    """The convolution of two arrays along axes, all by default, by Fourier transforms; other axes broadcast.

    Integers are computed as f64, which the result then is.
    """
    in1, in2, axes = _of_transforms("fftconvolve", in1, in2, mode, axes)
    if in1.ndim == 0:
        return in1 * in2
    if not in1.size or not in2.size:
        return np.zeros(0, np.result_type(in1.dtype, in2.dtype))
    one, other = in1.shape, in2.shape
    shape = [one[i] + other[i] - 1 if i in axes else max(one[i], other[i]) for i in range(in1.ndim)]
    axes = [i for i in axes if one[i] != 1 and other[i] != 1]  # along the others it is a product
    result = _by_transforms(in1, in2, axes, [shape[i] for i in axes]) if axes else in1 * in2
    return _part(result, mode, one, other, shape)


@library("mlirml.signal", "in1", "in2")
def oaconvolve(in1: Any, in2: Any, mode: str = "full", axes: Any = None) -> Any:
    """`fftconvolve`, along one axis in blocks of the longer array, the results of which overlap and are added."""
    in1, in2, chosen = _of_transforms("oaconvolve", in1, in2, mode, axes)
    if len(chosen) != 1 or not in1.size or not in2.size:
        return fftconvolve(in1, in2, mode, axes)
    (axis,) = chosen
    long, short = (in1, in2) if in1.shape[axis] >= in2.shape[axis] else (in2, in1)
    n, m = long.shape[axis], short.shape[axis]
    points = _fast_length(8 * m)
    if m == 1 or n < 2 * points:
        return fftconvolve(in1, in2, mode, axes)
    step = points - m + 1
    count = -(-n // step)
    long, short = np.moveaxis(long, axis, -1), np.moveaxis(short, axis, -1)
    long = np.pad(long, [(0, 0)] * (long.ndim - 1) + [(0, count * step - n)])
    blocks = _by_transforms(long.reshape((*long.shape[:-1], count, step)), short[..., None, :], [long.ndim], [points])
    whole = overlap_added(blocks, step)[..., : n + m - 1]
    shape = [max(sizes) for sizes in zip(in1.shape, in2.shape)]
    shape[axis] = n + m - 1
    return _part(np.moveaxis(whole, -1, axis), mode, in1.shape, in2.shape, shape)


@library("mlirml.signal", "in1", "in2")
def convolve2d(in1: Any, in2: Any, mode: str = "full", boundary: str = "fill", fillvalue: Any = 0) -> Any:
    """The convolution of two matrices.

    Around `in1` is, by `boundary`: "fill", the number `fillvalue`; "wrap", the matrix itself; "symm", its mirror image.
    """
    in1, in2 = _pair("convolve2d", in1, in2, mode)
    return _convolved_2d("convolve2d", in1, in2, mode, boundary, fillvalue)


@library("mlirml.signal", "in1", "in2")
def correlate2d(in1: Any, in2: Any, mode: str = "full", boundary: str = "fill", fillvalue: Any = 0) -> Any:
    """The cross-correlation of two matrices, with the modes and boundaries of `convolve2d`."""
    in1, in2 = _pair("correlate2d", in1, in2, mode)
    return _convolved_2d("correlate2d", in1, _reversed(in2), mode, boundary, fillvalue, correlated=True)


def _convolved_2d(
    name: str, in1: Any, in2: Any, mode: str, boundary: str, fillvalue: Any, correlated: bool = False
) -> Any:
    with at_user_line():
        if in1.ndim != 2:
            raise ShapeError(f"{name}: takes matrices, not arrays of {in1.ndim} dimensions")
        if boundary not in ("fill", "wrap", "symm"):
            raise ArgumentError(f"{name}: the boundary is 'fill', 'wrap' or 'symm', not {boundary!r}")
        if not in1.size or not in2.size:
            raise ShapeError(f"{name}: an array is empty")
    if mode == "valid":
        _one_contains(name, in1.shape, in2.shape, (0, 1))
        return direct(in1, in2, "valid")
    dtype = np.result_type(in1.dtype, in2.dtype)
    in1 = in1.astype(dtype)
    for axis in (0, 1):
        size = in2.shape[axis]
        before = size - 1 if mode == "full" else (size - 1) // 2 if correlated else size // 2
        after = size - 1 if mode == "full" else size - 1 - before
        in1 = _extended(in1, axis, before, after, boundary, fillvalue)
    return direct(in1, in2, "valid", kernel_is_second=True)


def _extended(x: Any, axis: int, before: int, after: int, boundary: str, fillvalue: Any) -> Any:
    if boundary == "fill":
        widths = [(before, after) if i == axis else (0, 0) for i in range(x.ndim)]
        return np.pad(x, widths, constant_values=fillvalue)
    count = x.shape[axis]
    positions = np.arange(-before, count + after)
    if boundary == "wrap":
        positions = positions % count
    else:
        positions = positions % (2 * count)
        positions = np.minimum(positions, 2 * count - 1 - positions)
    return np.take(x, positions, axis=axis)


def overlap_added(blocks: Any, step: int) -> Any:
    """The sum of blocks [..., count, length] that begin `step` elements after each other."""
    *batch, count, length = blocks.shape
    parts = -(-length // step)
    margin = [(0, 0)] * len(batch)
    blocks = np.pad(blocks, [*margin, (0, 0), (0, parts * step - length)]).reshape((*batch, count, parts, step))
    total: Any = 0
    for k in range(parts):
        total = total + np.pad(blocks[..., k, :], [*margin, (k, parts - 1 - k), (0, 0)])
    return total.reshape((*batch, (count + parts - 1) * step))[..., : (count - 1) * step + length]


def direct(in1: Any, in2: Any, mode: str, kernel_is_second: bool = False) -> Any:
    """The convolution of arrays of one to three dimensions, by sums of products.

    The smaller array slides along the other, but in `kernel_is_second`, where the second one does.
    """
    ndim = in1.ndim
    full = [m + n - 1 for m, n in zip(in1.shape, in2.shape)]
    if ndim == 1 and not kernel_is_second:
        if mode == "same" and in2.size > in1.size:
            return _part(np.convolve(in1, in2), mode, in1.shape, in2.shape, full)
        return np.convolve(in1, in2, mode)  # type: ignore[call-overload]
    if ndim > 3:
        with at_user_line():
            raise ShapeError("convolve: at most three dimensions are convolved directly", help="take method='fft'")
    dtype = np.result_type(in1.dtype, in2.dtype)
    if dtype.kind == "b":
        with at_user_line():
            raise DTypeError("convolve: arrays of bool have no convolution here", help="convert to integers")
    if dtype.kind == "c":
        real = np.zeros((), dtype).real.dtype
        parts = [[np.real(x).astype(real), np.imag(x).astype(real)] for x in (in1, in2)]
        (a, b), (c, d) = parts
        products = [[direct(x, y, mode, kernel_is_second) for y in (c, d)] for x in (a, b)]
        return (products[0][0] - products[1][1] + 1j * (products[0][1] + products[1][0])).astype(dtype)
    large, small = (in1, in2) if kernel_is_second or in1.size >= in2.size else (in2, in1)
    large, small = large.astype(dtype), small.astype(dtype)
    valid = mode == "valid" and all(m >= n for m, n in zip(large.shape, small.shape))
    if not valid:
        large = np.pad(large, [(n - 1, n - 1) for n in small.shape])
    turned = small[(slice(None, None, -1),) * ndim]
    convolution = (functional.conv1d, functional.conv2d, functional.conv3d)[ndim - 1]
    result = convolution(large[None, None], turned[None, None])[0, 0]
    return result if valid else _part(result, mode, in1.shape, in2.shape, full)


def _by_transforms(in1: Any, in2: Any, axes: list[int], counts: list[int]) -> Any:
    """The full convolution along axes on which it has `counts` elements."""
    dtype = np.result_type(in1.dtype, in2.dtype)
    transformed: Any
    single = dtype in (np.float32, np.complex64, np.float16)
    points = [_fast_length(count) for count in counts]
    result: Any
    if dtype.kind == "c":
        transformed = np.fft.fftn(in1, points, axes) * np.fft.fftn(in2, points, axes)
        result = np.fft.ifftn(transformed, points, axes)
    else:
        wide = np.float32 if single else np.float64
        transformed = np.fft.rfftn(in1.astype(wide), points, axes) * np.fft.rfftn(in2.astype(wide), points, axes)
        result = np.fft.irfftn(transformed, points, axes)
    parts: list[slice] = [slice(None)] * result.ndim
    for axis, count in zip(axes, counts):
        parts[axis] = slice(count)
    return result[tuple(parts)]


def _fast_length(count: int) -> int:
    """The least number of at least `count` points without prime factors above 11."""
    best = 1 << max(count - 1, 0).bit_length()
    for product in _PRODUCTS:
        if product < best:
            quotient = -(-count // product)
            best = min(best, product << max(quotient - 1, 0).bit_length())
    return best


_PRODUCTS = sorted(
    product
    for powers in itertools.product(range(9), range(6), range(3), range(2))
    if (product := math.prod(base**power for base, power in zip((3, 5, 7, 11), powers))) < 100_000
)


def _part(result: Any, mode: str, one: Any, other: Any, full: Any) -> Any:
    """The part of a full convolution of arrays with two shapes that a mode asks for."""
    if mode == "full":
        return result
    parts = []
    for m, n, size in zip(one, other, full):
        count = m if mode == "same" else size if size == max(m, n) else max(m, n) - min(m, n) + 1
        start = (size - count) // 2
        parts.append(slice(start, start + count))
    return result[tuple(parts)]


def _reversed(x: Any) -> Any:
    x = x[(slice(None, None, -1),) * x.ndim]
    return np.conj(x) if x.dtype.kind == "c" else x


def _pair(name: str, in1: Any, in2: Any, mode: str) -> tuple[Any, Any]:
    in1, in2 = as_array(in1), as_array(in2)
    with at_user_line():
        if mode not in _MODES:
            raise ShapeError(f"{name}: the mode is 'full', 'same' or 'valid', not {mode!r}")
        if in1.ndim != in2.ndim:
            raise ShapeError(
                f"{name}: arrays of {in1.ndim} and {in2.ndim} dimensions", help="both have the same number of them"
            )
        for x in (in1, in2):
            if x.dtype.kind not in "biufc":
                raise DTypeError(f"{name}: takes arrays of numbers, not of {x.dtype}")
    return in1, in2


def _of_transforms(name: str, in1: Any, in2: Any, mode: str, axes: Any) -> tuple[Any, Any, list[int]]:
    """Both arrays, and the axes of a convolution counted from the front."""
    in1, in2 = _pair(name, in1, in2, mode)
    ndim = in1.ndim
    given = range(ndim) if axes is None else axes if isinstance(axes, (tuple, list)) else (axes,)
    with at_user_line():
        if any(not -ndim <= axis < ndim for axis in given):
            raise ShapeError(f"{name}: axes {axes} are out of bounds for {ndim} dimensions")
        found = sorted({axis % ndim for axis in given})
        if len(found) != len(given):
            raise ShapeError(f"{name}: an axis is given more than once, {axes}")
        for axis, (m, n) in enumerate(zip(in1.shape, in2.shape)):
            if axis not in found and m != n and 1 not in (m, n):
                raise ShapeError(f"{name}: shapes {list(in1.shape)} and {list(in2.shape)} do not broadcast")
    if mode == "valid" and in1.size and in2.size:
        _one_contains(name, in1.shape, in2.shape, found)
    return in1, in2, found


def _one_contains(name: str, one: Any, other: Any, axes: Any) -> None:
    """Raise `ShapeError` where neither shape is at least the other along all axes."""
    if any(one[i] < other[i] for i in axes) and any(one[i] > other[i] for i in axes):
        with at_user_line():
            raise ShapeError(
                f"{name}: for mode 'valid' one of the shapes {list(one)} and {list(other)} has to contain the other"
            )
