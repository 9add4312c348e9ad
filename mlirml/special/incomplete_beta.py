"""The incomplete beta function, regularised, and its derivatives."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from mlirml.frontend.tracing.pointwise import pointwise
from mlirml.special.floats import differentiable, is_double, times_slope
from mlirml.special.gamma_functions import digamma, positive_gamma
from mlirml.special.iterations import next_of_fraction, next_with_slope, until_settled
from mlirml.special.logarithms import log1p_less_x

__all__ = ["betainc", "betaincc"]

_WIDTH = 0.4
_MOST = 100_000
"""Iterations, of which about the root of the larger parameter are needed."""


@pointwise
def beta_prefix(a: Any, b: Any, x: Any, y: Any) -> Any:
    """x**a y**b / beta(a, b) with y = 1 - x.

    For large parameters relative to the largest value, which is at x = a / (a + b), so that no large logarithms are
    subtracted (Didonato and Morris, TOMS 18, 1992, section 3), with gamma functions without their powers.
    """
    total = a + b
    excess = x * b - y * a  # (a + b) x - a
    logarithm = _log_of_power(a, excess, x * total) + _log_of_power(b, -excess, y * total)
    (gamma_a, of_a), (gamma_b, of_b), (gamma_total, of_total) = map(positive_gamma, (a, b, total))
    far = np.exp(logarithm) * (of_total / of_a / of_b) * np.sqrt(a / (2 * math.pi) * (b / total))
    product = x**a * y**b
    few = (total < (60 if is_double(x) else 34)) & (np.abs(excess) > 2)
    few = few & (product > 1e12 * float(np.finfo(x.dtype).tiny))
    most = np.maximum(a, b)
    rounded = np.minimum(a, b) - (total - most)  # what the sum has lost, which gamma(total) amplifies
    near = product * (gamma_total / gamma_a / gamma_b)
    return np.where(few, near + near * (rounded * np.log(total)), far)


def _log_of_power(a: Any, excess: Any, part: Any) -> Any:
    """a log(part / a) - excess for part = a + excess."""
    share = excess / a
    near = np.abs(share) < _WIDTH
    ratio = np.minimum(part / a, float(np.finfo(a.dtype).max))
    return np.where(near, a * log1p_less_x(np.where(near, share, 0)), a * np.log(ratio) - excess)


def _first_denominator(a: Any, b: Any, x: Any, y: Any) -> tuple[Any, Any]:
    """a y - b x, and the first denominator of the continued fraction."""
    excess = a * y - b * x
    return excess, (excess + 1) / (a + 1)


def _beta_fraction(a: Any, b: Any, x: Any, y: Any) -> Any:
    """I(a, b, x) a / (x**a y**b / beta(a, b)) for x below (a + 1)/(a + b + 2), as a continued fraction.

    A. Didonato and A. Morris: Algorithm 708, TOMS 18, 1992, equation 9, divided by a; by the modified method of Lentz.
    """
    excess, first = _first_denominator(a, b, x, y)

    def improve(i: Any, state: Any) -> Any:
        value, c, d, _ = state
        m = i + 1
        low, high = a + (2 * m - 1), a + (2 * m + 1)
        share = np.where(m == 1, 1, a + (m - 1)) / low
        numerator = share * ((a + b + (m - 1)) / low) * (m * (b - m)) * x * x
        denominator = m + m * (b - m) * x / low + (a + m) * (excess + 1 + m * (1 + y)) / high
        return next_of_fraction(numerator, denominator, value, c, d)

    one = np.ones_like(x)
    start = (1 / first, one / float(np.finfo(x.dtype).tiny), 1 / first, one)
    value, _, _, change = until_settled(improve, start, _MOST)
    return np.where(change == 0, value, math.nan)


def _fraction_with_slope(a: Any, b: Any, x: Any, y: Any, by_first: Any) -> tuple[Any, Any]:
    """The same continued fraction and the derivative of its logarithm, by a where `by_first` is true, else by b.

    As R. Boik and J. Robison-Cox: Derivatives of the incomplete beta function, Journal of Statistical Software 3, 1998.
    """
    excess, first = _first_denominator(a, b, x, y)

    def improve(i: Any, state: Any) -> Any:
        m = i + 1
        low, high, total = a + (2 * m - 1), a + (2 * m + 1), a + b + (m - 1)
        share = np.where(m == 1, 1, a + (m - 1)) / low
        factor = share / low * m * x * x
        numerator = factor * total * (b - m)
        # of the logarithms of share and total / low
        logarithmic = (np.where(m == 1, -1, m / (a + (m - 1))) + (m - b) / total) / low
        numerator_slope = np.where(by_first, numerator * logarithmic, factor * (total + (b - m)))
        inner = excess + 1 + m * (1 + y)
        even = m * x / low
        denominator = m + even * (b - m) + (a + m) * inner / high
        of_first = (a + m) * y / high + (m + 1) / high * (inner / high) - even * ((b - m) / low)
        denominator_slope = np.where(by_first, of_first, even - (a + m) * x / high)
        found, change = next_with_slope((numerator, numerator_slope), (denominator, denominator_slope), state[:-1])
        return *found, change

    one, zero = np.ones_like(x), np.zeros_like(x)
    value = 1 / first
    slope = np.where(by_first, 1 / (a + 1) - y / (excess + 1), x / (excess + 1))
    start = (value, slope, one / float(np.finfo(x.dtype).tiny), zero, value, value * slope, one)
    value, slope, *_, change = until_settled(improve, start, _MOST)
    return np.where(change == 0, value, math.nan), slope


def _smaller_tail(a: Any, b: Any, x: Any, y: Any) -> tuple[Any, ...]:
    """A mask of where the tail above x is the one to compute, and the parameters of the tail that is."""
    swapped = x > (a + 1) / (a + b + 2)
    return (
        swapped,
        np.where(swapped, b, a),
        np.where(swapped, a, b),
        np.where(swapped, y, x),
        np.where(swapped, x, y),
    )


def incomplete_beta(a: Any, b: Any, x: Any, y: Any) -> tuple[Any, Any, Any]:
    """I(a, b, x), 1 - I(a, b, x), and x**a y**b / beta(a, b) inside of its domain, with y = 1 - x."""
    swapped, p, q, u, v = _smaller_tail(a, b, x, y)
    prefix = beta_prefix(p, q, u, v)
    tail = prefix / p * _beta_fraction(p, q, u, v)
    return np.where(swapped, 1 - tail, tail), np.where(swapped, tail, 1 - tail), prefix


def incomplete_beta_slope(a: Any, b: Any, x: Any, y: Any, by_first: bool) -> Any:
    """The derivative of I(a, b, x) by a or by b inside of its domain, with y = 1 - x."""
    swapped, p, q, u, v = _smaller_tail(a, b, x, y)
    first = ~swapped if by_first else swapped
    value, slope = _fraction_with_slope(p, q, u, v, first)
    of_own, of_total = digamma(np.where(first, p + 1, q)), digamma(p + q)
    logarithmic = np.log(np.where(first, u, v)) - of_own + of_total + slope
    found = beta_prefix(p, q, u, v) / p * value * logarithmic
    return np.where(swapped, -found, found)


def _ordinary(a: Any, b: Any, x: Any) -> tuple[Any, Any, Any, Any]:
    """A mask of the inside of the domain, and arguments that are inside everywhere."""
    ordinary = (a > 0) & (b > 0) & (x > 0) & (x < 1) & np.isfinite(a) & np.isfinite(b)
    return ordinary, np.where(ordinary, a, 1), np.where(ordinary, b, 1), np.where(ordinary, x, 0.5)


@differentiable(
    lambda t, y, a, b, x: times_slope(y, np.log(x) - digamma(a) + digamma(a + b)) * t,
    lambda t, y, a, b, x: times_slope(y, np.log1p(-x) - digamma(b) + digamma(a + b)) * t,
    lambda t, y, a, b, x: times_slope(y, (a - 1) / x - (b - 1) / (1 - x)) * t,
)
@pointwise
def beta_density(a: Any, b: Any, x: Any) -> Any:
    """The derivative of I: x**(a - 1) (1 - x)**(b - 1) / beta(a, b)."""
    inner = (x > 0) & (x < 1)
    x_ = np.where(inner, x, 0.5)
    power = np.where(x <= 0, a, b)
    at_end = np.where(power == 1, np.where(x <= 0, b, a), np.where(power < 1, math.inf, np.zeros_like(x)))
    return np.where(inner, beta_prefix(a, b, x_, 1 - x_) / (x_ * (1 - x_)), at_end)


@differentiable(
    lambda t, m, a, b, x, y: times_slope(m, np.log(x) - digamma(a) + digamma(a + b)) * t,
    lambda t, m, a, b, x, y: times_slope(m, np.log(y) - digamma(b) + digamma(a + b)) * t,
    lambda t, m, a, b, x, y: times_slope(m, a / x) * t,
    lambda t, m, a, b, x, y: times_slope(m, b / y) * t,
)
def beta_mass(a: Any, b: Any, x: Any, y: Any) -> Any:
    """`beta_prefix` of x and y inside of (0, 1), with derivatives."""
    return beta_prefix(a, b, x, y)


def _slope(a: Any, b: Any, x: Any, y: Any, by_first: bool) -> Any:
    a, b, x, y = np.broadcast_arrays(a, b, x, y)
    ordinary, a_, b_, x_ = _ordinary(a, b, x)
    found = incomplete_beta_slope(a_, b_, x_, np.where(ordinary, y, 0.5), by_first)
    at_end = ((x == 0) | (x == 1) | np.isinf(a) | np.isinf(b)) & (a > 0) & (b > 0) & (x >= 0) & (x <= 1)
    return np.where(ordinary, found, np.where(at_end, np.zeros_like(found), math.nan))


@differentiable(
    lambda t, r, a, b, x, y: times_slope(beta_density(a, b, x), np.log(x) - digamma(a) + digamma(a + b)) * t,
    lambda t, r, a, b, x, y: 0 * t,
    fixed=2,
    slope_of="betainc, betaincc and their inverses",
)
def beta_slope_of_first(a: Any, b: Any, x: Any, y: Any) -> Any:
    """The derivative of I(a, b, x) by a with y = 1 - x; it has none by a and b themselves."""
    return _slope(a, b, x, y, True)


@differentiable(
    lambda t, r, a, b, x, y: times_slope(beta_density(a, b, x), np.log(y) - digamma(b) + digamma(a + b)) * t,
    lambda t, r, a, b, x, y: 0 * t,
    fixed=2,
    slope_of="betainc, betaincc and their inverses",
)
def beta_slope_of_second(a: Any, b: Any, x: Any, y: Any) -> Any:
    """The derivative of I(a, b, x) by b with y = 1 - x; it has none by a and b themselves."""
    return _slope(a, b, x, y, False)


def _of_domain(a: Any, b: Any, x: Any, upper: bool) -> Any:
    """I, or 1 - I if `upper`, with its limits at the ends of its domain."""
    a, b, x = np.broadcast_arrays(a, b, x)
    ordinary, a_, b_, x_ = _ordinary(a, b, x)
    result = incomplete_beta(a_, b_, x_, 1 - x_)[upper]
    whole = (x == 1) | ((x != 0) & ((a == 0) | (b == math.inf)))
    undefined = ~((a >= 0) & (b >= 0) & (x >= 0) & (x <= 1)) | ((a == 0) & (b == 0))
    undefined = undefined | ((a == math.inf) & (b == math.inf))
    return np.where(undefined, math.nan, np.where(ordinary, result, (whole != upper).astype(x.dtype)))


@differentiable(
    lambda t, r, a, b, x: beta_slope_of_first(a, b, x, 1 - x) * t,
    lambda t, r, a, b, x: beta_slope_of_second(a, b, x, 1 - x) * t,
    lambda t, r, a, b, x: beta_density(a, b, x) * t,
)
def betainc(a: Any, b: Any, x: Any) -> Any:
    """The regularised incomplete beta function I(a, b, x)."""
    return _of_domain(a, b, x, False)


@differentiable(
    lambda t, r, a, b, x: -beta_slope_of_first(a, b, x, 1 - x) * t,
    lambda t, r, a, b, x: -beta_slope_of_second(a, b, x, 1 - x) * t,
    lambda t, r, a, b, x: -beta_density(a, b, x) * t,
)
def betaincc(a: Any, b: Any, x: Any) -> Any:
    """The complement of `betainc`, 1 - I(a, b, x)."""
    return _of_domain(a, b, x, True)
