"""Logistic functions, sums of exponentials, and products with logarithms that are 0 at 0."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from mlirml.frontend.arrays.array import Traced
from mlirml.frontend.tracing.pointwise import pointwise
from mlirml.ops.functions import library
from mlirml.random.quantiles import polynomial
from mlirml.special.floats import as_array, differentiable, float_dtype, is_double
from mlirml.transforms import stop_gradient

__all__ = [
    "entr", "expit", "kl_div", "log_expit", "log_softmax", "logit", "logsumexp", "rel_entr", "softmax", "xlog1py",
    "xlogy",
]  # fmt: skip

_ARTANH = tuple(1 / k for k in range(27, 2, -2))


@differentiable(lambda t, y, x: y * expit(-x) * t)
@pointwise
def expit(x: Any) -> Any:
    """The logistic function, 1 / (1 + exp(-x))."""
    power = np.exp(-np.abs(x))
    return np.where(x >= 0, 1, power) / (1 + power)


@differentiable(lambda t, y, x: t / (x * (1 - x)))
@pointwise
def logit(x: Any) -> Any:
    """The inverse of `expit`, log(x / (1 - x)); NaN outside of [0, 1]."""
    near = 2 * (x - 0.5)
    middle = np.abs(near) < 0.5
    near = np.where(middle, near, 0)
    return np.where(middle, np.log1p(near) - np.log1p(-near), np.log(x / (1 - x)))


@differentiable(lambda t, y, x: expit(-x) * t)
@pointwise
def log_expit(x: Any) -> Any:
    """The logarithm of `expit`."""
    return -(np.log1p(np.exp(-np.abs(x))) + np.maximum(-x, 0))


@pointwise
def log1p_less_x(x: Any) -> Any:
    """log(1 + x) - x for x of [-0.4, 0.4], without cancellation.

    By the series of 2 artanh(x / (2 + x)), of which the first term less x is -x**2 / (2 + x).
    """
    s = x / (2 + x)
    square = s * s
    return 2 * s * square * polynomial(square, _ARTANH if is_double(x) else _ARTANH[-6:]) - x * s


def _where_zero(x: Any, y: Any, product: Any) -> Any:
    return np.where((x == 0) & ~np.isnan(y), 0, product)


@differentiable(lambda t, r, x, y: np.log(y) * t, lambda t, r, x, y: _where_zero(x, y, x / y) * t)
@pointwise
def xlogy(x: Any, y: Any) -> Any:
    """x log(y), which is 0 where x is 0 and y is no NaN; its derivative in y is 0 there too."""
    return _where_zero(x, y, x * np.log(y))


@differentiable(lambda t, r, x, y: np.log1p(y) * t, lambda t, r, x, y: _where_zero(x, y, x / (1 + y)) * t)
@pointwise
def xlog1py(x: Any, y: Any) -> Any:
    """x log(1 + y), which is 0 where x is 0 and y is no NaN; its derivative in y is 0 there too."""
    return _where_zero(x, y, x * np.log1p(y))


@differentiable(lambda t, r, x: -(np.log(x) + 1) * t)
@pointwise
def entr(x: Any) -> Any:
    """-x log(x), 0 at 0, and minus infinity for negative numbers."""
    return np.where(x < 0, -math.inf, _where_zero(x, x, -x * np.log(x)))


def _log_of_ratio(x: Any, y: Any) -> Any:
    """log(x / y), also where the ratio is near 1, overflows or underflows."""
    ratio = x / y
    near = np.abs(ratio - 1) < 0.5
    ordinary = np.isfinite(ratio) & (ratio > 1e-30)
    apart = np.log(x) - np.log(y)
    return np.where(near, np.log1p(np.where(near, (x - y) / y, 0)), np.where(ordinary, np.log(ratio), apart))


def _of_positive(x: Any, y: Any, value: Any, at_zero: Any) -> Any:
    """A relative entropy: its value for positive x and y, that for x = 0 <= y, else infinity; NaN of NaN."""
    result = np.where((x > 0) & (y > 0), value, np.where((x == 0) & (y >= 0), at_zero, math.inf))
    return np.where(np.isnan(x) | np.isnan(y), math.nan, result)


@differentiable(lambda t, r, x, y: (_log_of_ratio(x, y) + 1) * t, lambda t, r, x, y: np.where(x == 0, 0, -x / y) * t)
@pointwise
def rel_entr(x: Any, y: Any) -> Any:
    """x log(x / y) for positive numbers, 0 for x = 0 <= y, otherwise infinity."""
    return _of_positive(x, y, x * _log_of_ratio(x, y), np.zeros_like(y))


@differentiable(lambda t, r, x, y: _log_of_ratio(x, y) * t, lambda t, r, x, y: (1 - x / y) * t)
@pointwise
def kl_div(x: Any, y: Any) -> Any:
    """x log(x / y) - x + y for positive numbers, y for x = 0 <= y, otherwise infinity."""
    part = (x - y) / y
    near = np.abs(part) < 0.4
    part = np.where(near, part, 0)
    close = y * ((1 + part) * log1p_less_x(part) + part * part)
    return _of_positive(x, y, np.where(near, close, x * _log_of_ratio(x, y) - x + y), y)


def _floats(name: str, x: Any) -> tuple[Any, np.dtype]:
    """The array in the dtype to compute in, f32 or f64, and the dtype of the result."""
    dtype = float_dtype(name, x)
    return as_array(x).astype(np.float32 if dtype.itemsize < 4 else dtype), dtype


def _largest(x: Any, axis: Any) -> Any:
    """The largest element along the axes, 0 where that is infinite or there is none: a constant for derivatives."""
    largest = stop_gradient(np.max(x, axis=axis, keepdims=True, initial=-math.inf))
    return np.where(np.isfinite(largest), largest, 0)


@library("mlirml.special", "a", "b")
def logsumexp(a: Any, axis: Any = None, b: Any = None, keepdims: bool = False, return_sign: bool = False) -> Any:
    """The logarithm of the sum of `b * exp(a)` along axes, all by default; `b` is 1.

    With `return_sign` a pair: the logarithm of the absolute value of the sum, and its sign. Without it a negative sum
    gives NaN.
    """
    x, dtype = _floats("logsumexp", a)
    with np.errstate(all="ignore"):
        if b is not None:
            factors = as_array(b).astype(x.dtype)
            x = np.where(factors == 0, -math.inf, x + np.zeros_like(factors))
        largest = _largest(x, axis)
        powers = np.exp(x - largest)
        total = np.sum(powers if b is None else powers * factors, axis=axis, keepdims=True)
        sign = np.sign(total)
        result = np.log(np.abs(total) if return_sign else total) + largest
    if not keepdims:
        result, sign = (np.squeeze(part, axis=_axes(axis, x.ndim)) for part in (result, sign))
    return (_number(result, dtype), _number(sign, dtype)) if return_sign else _number(result, dtype)


def _axes(axis: Any, ndim: int) -> tuple[int, ...]:
    return tuple(range(ndim)) if axis is None else axis if isinstance(axis, tuple) else (axis,)


def _number(x: Any, dtype: np.dtype) -> Any:
    x = as_array(x).astype(dtype)
    return x if isinstance(x, Traced) else x[()]


@library("mlirml.special", "x")
def softmax(x: Any, axis: Any = None) -> Any:
    """exp(x) over its sum along axes, all by default."""
    x, dtype = _floats("softmax", x)
    with np.errstate(all="ignore"):
        powers = np.exp(x - stop_gradient(np.max(x, axis=axis, keepdims=True)))
        return _number(powers / np.sum(powers, axis=axis, keepdims=True), dtype)


@library("mlirml.special", "x")
def log_softmax(x: Any, axis: Any = None) -> Any:
    """The logarithm of `softmax`."""
    x, dtype = _floats("log_softmax", x)
    with np.errstate(all="ignore"):
        moved = x - _largest(x, axis)
        return _number(moved - np.log(np.sum(np.exp(moved), axis=axis, keepdims=True)), dtype)
