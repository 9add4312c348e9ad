"""Inverses of the incomplete gamma and beta functions."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from mlirml.frontend.tracing.pointwise import pointwise
from mlirml.special.floats import differentiable
from mlirml.special.gamma_functions import gammaln_near_two, positive_gammaln
from mlirml.special.incomplete_beta import (
    beta_density,
    beta_mass,
    beta_slope_of_first,
    beta_slope_of_second,
    incomplete_beta,
)
from mlirml.special.incomplete_gamma import gamma_density, gamma_slope, incomplete_gamma
from mlirml.special.iterations import until_settled

__all__ = ["betainccinv", "betaincinv", "gammainccinv", "gammaincinv"]

_MOST = 60
"""Iterations, of which three to five are usual."""


def _solved(equation: Callable[[Any], tuple[Any, Any, Any]], upper: Any, start: Any) -> Any:
    """The root w of an equation h(w) = 0, by Halley's method in log(w), kept between bounds.

    The equation gives h, its derivative by log(w), and the second derivative as a share of that; h grows, and falls
    where `upper` is true. The logarithms of both incomplete functions are concave in log(w), so that steps from
    anywhere end near the root. The last step is one after which the error is below rounding.
    """
    dtype = start.dtype
    tiny, last = float(np.finfo(dtype).tiny), 0.1 * float(np.finfo(dtype).eps) ** (1 / 3)

    def improve(i: Any, state: Any) -> Any:
        w, low, high, change = state
        h, slope, curvature = equation(w)
        grows = (h > 0) == upper
        low, high = np.where(grows, w, low), np.where(grows, high, w)
        newton = -h / slope
        step = newton / (1 + np.clip(0.5 * newton * curvature, -0.5, 2))
        moved = np.maximum(w * np.exp(np.clip(step, -600, 600)), tiny)
        small = np.abs(step) <= last
        middle = np.where(high == math.inf, 16 * low, np.where(low == 0, high / 16, np.sqrt(low) * np.sqrt(high)))
        inside = ((moved > low) & (moved < high)) | small
        moved = np.where(change == 0, w, np.where(inside, moved, np.maximum(middle, tiny)))
        return moved, low, high, np.where(small | (moved == w), 0, np.ones_like(w))

    zero, one = np.zeros_like(start), np.ones_like(start)
    start = np.minimum(np.maximum(start, 16 * tiny), 1 / (16 * tiny))
    found = until_settled(improve, (start, zero, one / zero, one), _MOST)[0]
    return np.where(found <= tiny, 0, found)


@pointwise
def _normal_tail(tail: Any) -> Any:
    """About the point above which this probability of a normal variable lies (Abramowitz and Stegun 26.2.23)."""
    t = np.sqrt(-2 * np.log(tail))
    return t - (2.30753 + 0.27061 * t) / (1 + t * (0.99229 + 0.04481 * t))


@pointwise
def _gamma_start(a: Any, tail: Any, upper: Any) -> Any:
    """About the point of a tail of at most 1/2, by the first terms of series or by Wilson and Hilferty's cube."""
    low = np.minimum(a, 0.5)
    log_gamma = np.where(a < 0.5, gammaln_near_two(low) - np.log1p(low), positive_gammaln(a + 1))  # of a + 1
    power = np.exp((np.log(np.where(upper, 1 - tail, tail)) + log_gamma) / a)
    near_zero = power * np.exp(np.minimum(power / (a + 1), 1))
    exponent = np.log(a) - log_gamma - np.log(tail)
    far = exponent + (a - 1) * np.log(np.maximum(exponent, 1))
    z = _normal_tail(tail)
    cube = 1 - 1 / (9 * a) + np.where(upper, z, -z) / (3 * np.sqrt(a))
    found = np.where((power < 0.2 * (a + 1)) | (cube < 0.2), near_zero, a * cube * cube * cube)
    return np.where(a < 1, np.where(upper & (exponent > 1), far, near_zero), found)


def _inverse_gamma(a: Any, tail: Any, upper: Any) -> Any:
    """The point of a tail of at most 1/2 of the gamma distribution."""
    logarithm = np.log(tail)

    def equation(x: Any) -> tuple[Any, Any, Any]:
        p, q, mass = incomplete_gamma(a, x)
        found = np.where(upper, q, p)
        slope = np.where(upper, -a, a) * mass / found
        return np.log(found) - logarithm, slope, a - x - slope

    return _solved(equation, upper, _gamma_start(a, tail, upper))


def _of_gamma(a: Any, y: Any, upper: bool) -> Any:
    """The inverse in x of P, or of Q if `upper`."""
    a, y = np.broadcast_arrays(a, y)
    ordinary = (a > 0) & (y > 0) & (y < 1) & np.isfinite(a)
    a_, y_ = np.where(ordinary, a, 1), np.where(ordinary, y, 0.25)
    other = y_ > 0.5
    found = _inverse_gamma(a_, np.where(other, 1 - y_, y_), other != upper)
    ends = np.where((y == 0) == upper, math.inf, np.zeros_like(y))
    undefined = ~((a >= 0) & ((y == 0) | (y == 1)))
    return np.where(ordinary, found, np.where(undefined, math.nan, ends))


_BY_A = lambda t, x, a, y: gamma_slope(a, x) / gamma_density(a, x) * t  # noqa: E731


@differentiable(_BY_A, lambda t, x, a, y: t / gamma_density(a, x))
def gammaincinv(a: Any, y: Any) -> Any:
    """The x with gammainc(a, x) = y."""
    return _of_gamma(a, y, False)


@differentiable(_BY_A, lambda t, x, a, y: -t / gamma_density(a, x))
def gammainccinv(a: Any, y: Any) -> Any:
    """The x with gammaincc(a, x) = y."""
    return _of_gamma(a, y, True)


@pointwise
def _beta_start(a: Any, b: Any, lower: Any, upper: Any) -> Any:
    """About the odds x / (1 - x) of the point with these probabilities on both sides.

    For a and b of at least 1 by Abramowitz and Stegun 26.5.22, else by the powers at both ends.
    """
    total = a + b
    of_a, of_b = np.exp(a * np.log(a / total)) / a, np.exp(b * np.log(b / total)) / b
    weight = of_a + of_b
    x = np.minimum(np.exp(np.log(a * weight * lower) / a), 0.9)
    y = np.minimum(np.exp(np.log(b * weight * upper) / b), 0.9)
    by_powers = np.where(lower < of_a / weight, x / (1 - x), (1 - y) / y)
    z = _normal_tail(np.minimum(lower, upper))
    z = np.where(lower < upper, z, -z)
    one, other = 1 / np.maximum(2 * a - 1, 1), 1 / np.maximum(2 * b - 1, 1)
    height, square = 2 / (one + other), (z * z - 3) / 6
    exponent = z * np.sqrt(np.maximum(square + height, 0)) / height
    exponent = exponent - (other - one) * (square + 5 / 6 - 2 / (3 * height))
    return np.where((a >= 1) & (b >= 1), a / b * np.exp(-2 * np.clip(exponent, -300, 300)), by_powers)


def inverse_odds(a: Any, b: Any, lower: Any, upper: Any) -> Any:
    """The odds x / (1 - x) of the point of the beta distribution with these positive probabilities on both sides."""
    other = lower > upper
    logarithm = np.log(np.where(other, upper, lower))

    def equation(odds: Any) -> tuple[Any, Any, Any]:
        x, y = _shares(odds)
        p, q, mass = incomplete_beta(a, b, x, y)
        found = np.where(other, q, p)
        slope = np.where(other, -mass, mass) / found
        return np.log(found) - logarithm, slope, a * y - b * x - slope

    return _solved(equation, other, _beta_start(a, b, lower, upper))


def _shares(odds: Any) -> tuple[Any, Any]:
    """x and 1 - x, both with the accuracy of the odds."""
    y = 1 / (1 + odds)
    return np.where(odds > 1, 1 / (1 + 1 / odds), odds * y), y


@differentiable(
    lambda t, w, a, b, lower, upper: -beta_slope_of_first(a, b, *_shares(w)) / beta_mass(a, b, *_shares(w)) * w * t,
    lambda t, w, a, b, lower, upper: -beta_slope_of_second(a, b, *_shares(w)) / beta_mass(a, b, *_shares(w)) * w * t,
    lambda t, w, a, b, lower, upper: w / beta_mass(a, b, *_shares(w)) * t,
    lambda t, w, a, b, lower, upper: 0 * t,
)
def beta_odds(a: Any, b: Any, lower: Any, upper: Any) -> Any:
    """`inverse_odds` with derivatives, where `upper` is 1 - `lower`."""
    return inverse_odds(*np.broadcast_arrays(a, b, lower, upper))


def _of_beta(a: Any, b: Any, y: Any, upper: bool) -> Any:
    """The inverse in x of I, or of 1 - I if `upper`."""
    a, b, y = np.broadcast_arrays(a, b, y)
    ordinary = (a > 0) & (b > 0) & (y > 0) & (y < 1) & np.isfinite(a) & np.isfinite(b)
    a_, b_, y_ = np.where(ordinary, a, 1), np.where(ordinary, b, 1), np.where(ordinary, y, 0.25)
    odds = inverse_odds(a_, b_, 1 - y_, y_) if upper else inverse_odds(a_, b_, y_, 1 - y_)
    ends = ((y == 0) == upper).astype(y.dtype)
    undefined = ~((a > 0) & (b > 0) & ((y == 0) | (y == 1)))
    return np.where(ordinary, _shares(odds)[0], np.where(undefined, math.nan, ends))


_OF_PARAMETERS = (
    lambda t, x, a, b, y: -beta_slope_of_first(a, b, x, 1 - x) / beta_density(a, b, x) * t,
    lambda t, x, a, b, y: -beta_slope_of_second(a, b, x, 1 - x) / beta_density(a, b, x) * t,
)


@differentiable(*_OF_PARAMETERS, lambda t, x, a, b, y: t / beta_density(a, b, x))
def betaincinv(a: Any, b: Any, y: Any) -> Any:
    """The x with betainc(a, b, x) = y."""
    return _of_beta(a, b, y, False)


@differentiable(*_OF_PARAMETERS, lambda t, x, a, b, y: -t / beta_density(a, b, x))
def betainccinv(a: Any, b: Any, y: Any) -> Any:
    """The x with betaincc(a, b, x) = y."""
    return _of_beta(a, b, y, True)
