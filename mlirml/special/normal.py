"""The error functions, their inverses, and the normal distribution."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from mlirml.frontend.tracing.pointwise import pointwise
from mlirml.ops import error_functions
from mlirml.ops.activations import ERFC_LARGE, ERFC_MIDDLE
from mlirml.ops.functions import library
from mlirml.random.quantiles import polynomial, quantile
from mlirml.special.floats import differentiable, of_floats

__all__ = ["erf", "erfc", "erfcinv", "erfcx", "erfinv", "log_ndtr", "ndtr", "ndtri"]

_TWO_OVER_ROOT_PI = 2 / math.sqrt(math.pi)
_ROOT_HALF = math.sqrt(0.5)
_ROOT_TWO_PI = math.sqrt(2 * math.pi)


@library("mlirml.special", "x")
@of_floats
def erf(x: Any) -> Any:
    """The error function, 2/sqrt(pi) times the integral of exp(-t**2) from 0 to x."""
    return error_functions.erf.reference(x)


@library("mlirml.special", "x")
@of_floats
def erfc(x: Any) -> Any:
    """1 - erf(x), exact where it is small."""
    return error_functions.erfc.reference(x)


def _exp_of_square(x: Any) -> Any:
    """exp(x**2), from two parts of the square, as the rounding of a large one would show."""
    coarse = np.trunc(x * 16) / 16
    return np.exp(coarse * coarse) * np.exp((x - coarse) * (x + coarse))


@differentiable(lambda t, y, x: (2 * x * y - _TWO_OVER_ROOT_PI) * t)
@pointwise
def erfcx(x: Any) -> Any:
    """exp(x**2) erfc(x).

    By the approximations of Cody (Mathematics of Computation 23, 1969) without their exponential.
    """
    size = np.abs(x)
    middle = np.clip(size, 0.46875, 4)
    large = np.maximum(size, 4)
    inverse = 1 / (large * large)
    above, below = (
        np.where(size <= 4, polynomial(middle, near), polynomial(inverse, far))
        for near, far in zip(ERFC_MIDDLE, ERFC_LARGE)
    )
    tail = np.where(size <= 4, above / below, (1 / math.sqrt(math.pi) - inverse * above / below) / large)
    power = _exp_of_square(np.minimum(size, 30))
    result = np.where(size <= 0.46875, power * erfc(np.clip(x, -1, 1)), np.where(x < 0, 2 * power - tail, tail))
    return np.where(x < -30, math.inf, result)


@differentiable(lambda t, x, y: np.exp(x * x) / _TWO_OVER_ROOT_PI * t)
@pointwise
def erfinv(y: Any) -> Any:
    """The inverse of `erf`; NaN outside of [-1, 1]."""
    return _at_ends(y, -1, 1, lambda y: _ROOT_HALF * quantile(0.5 * y, 0.5 - np.abs(0.5 * y)))


@differentiable(lambda t, x, y: -np.exp(x * x) / _TWO_OVER_ROOT_PI * t)
@pointwise
def erfcinv(y: Any) -> Any:
    """The inverse of `erfc`; NaN outside of [0, 2]."""
    return -_at_ends(y, 0, 2, lambda y: _ROOT_HALF * quantile(0.5 * (y - 1), 0.5 * np.minimum(y, 2 - y)))


@differentiable(lambda t, x, y: _ROOT_TWO_PI * np.exp(x * x / 2) * t)
@pointwise
def ndtri(y: Any) -> Any:
    """The quantile of the normal distribution, the inverse of `ndtr`; NaN outside of [0, 1]."""
    return _at_ends(y, 0, 1, lambda y: quantile(y - 0.5, np.minimum(y, 1 - y)))


def _at_ends(y: Any, low: float, high: float, inverse: Any) -> Any:
    """An increasing function of the numbers between two others, at which it is infinite."""
    inner = (y > low) & (y < high)
    ends = np.where(y == low, -math.inf, np.where(y == high, math.inf, math.nan * y))
    return np.where(inner, inverse(np.where(inner, y, (low + high) / 2)), ends)


@differentiable(lambda t, y, x: np.exp(-x * x / 2) / _ROOT_TWO_PI * t)
@pointwise
def ndtr(x: Any) -> Any:
    """The distribution function of the normal distribution."""
    scaled = x * _ROOT_HALF
    return np.where(np.abs(scaled) < _ROOT_HALF, 0.5 + 0.5 * erf(scaled), 0.5 * erfc(-scaled))


@differentiable(lambda t, y, x: 2 / _ROOT_TWO_PI / erfcx(-x * _ROOT_HALF) * t)
@pointwise
def log_ndtr(x: Any) -> Any:
    """The logarithm of `ndtr`, also where that underflows."""
    scaled = x * _ROOT_HALF
    left = np.minimum(scaled, 0)
    far = np.log(erfcx(-left) / 2) - left * left
    return np.where(x < -1, far, np.log1p(-erfc(scaled) / 2))
