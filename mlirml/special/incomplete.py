"""The incomplete gamma and beta functions, regularised."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

from mlirml.frontend import control
from mlirml.random.quantiles import polynomial
from mlirml.special.floats import differentiable, is_double
from mlirml.special.gamma_functions import beta, betaln, gamma, gammaln, gammaln_near_two, stirling_correction
from mlirml.special.logarithms import log1p_less_x
from mlirml.special.normal import erfc

_UNIFORM_FROM = 20
_UNIFORM_WIDTH = 0.4
_ORDERS, _DEGREES = 10, 19


def _uniform_coefficients() -> list[tuple[float, ...]]:
    """The coefficients of Temme's expansion: for each power of 1/a those of the powers of eta, the highest first.

    N. Temme: A set of algorithms for the incomplete gamma functions. Probability in the Engineering and Informational
    Sciences 8, 1994; DLMF 8.12.9 and 5.11.3.
    """
    count = _DEGREES + 2 * _ORDERS + 3
    alpha = [Fraction(0), Fraction(1)]  # of lambda - 1 in powers of eta, with eta**2 / 2 = lambda - 1 - log(lambda)
    for n in range(2, count):
        total = sum((j * alpha[j] * alpha[n - j + 1] for j in range(2, n)), Fraction(0))
        alpha.append((alpha[n - 1] - total) / (n + 1))
    stirling = [math.prod(range(1, 2 * k + 2, 2)) * alpha[2 * k + 1] for k in range(_ORDERS)]
    rows = [[Fraction(-1, 3), *((n + 2) * alpha[n + 2] for n in range(1, count - 2))]]
    for k in range(1, _ORDERS):
        last = rows[-1]
        sign = (-1) ** k * stirling[k]
        rows.append([sign * rows[0][n] + (n + 2) * last[n + 2] for n in range(len(last) - 2)])
    return [tuple(float(c) for c in reversed(row[: _DEGREES - 2 * k])) for k, row in enumerate(rows)]


_UNIFORM = _uniform_coefficients()


def _until_settled(improve: Callable[[Any, Any], Any], state: tuple[Any, ...], most: int) -> tuple[Any, ...]:
    """The state after at most `most` iterations, or when its last item, the change of the result, is below rounding.

    The number of the iteration has the dtype of the state, as all is computed with it.
    """
    dtype = state[-1].dtype
    small = float(np.finfo(dtype).eps) / 4

    def goes_on(carry: Any) -> Any:
        return (carry[0] < most) & np.any(np.abs(carry[1][-1]) > small)

    start = np.zeros((), dtype)
    _, found = control.while_loop(goes_on, lambda carry: (carry[0] + 1, improve(carry[0], carry[1])), (start, state))
    return tuple(found)


def poisson_mass(a: Any, x: Any) -> Any:
    """x**a exp(-x) / gamma(a + 1)."""
    small = np.minimum(a, _UNIFORM_FROM)
    moderate = np.minimum(x, 2000)  # exp(-x) is 0 above
    half = moderate ** (small / 2) * np.exp(-moderate / 2)
    large = np.maximum(a, _UNIFORM_FROM)
    share = (x - large) / large
    near = np.abs(share) < _UNIFORM_WIDTH
    exponent = np.where(near, log1p_less_x(np.where(near, share, 0)), np.log(x / large) - share)
    far = np.exp(large * exponent - stirling_correction(large)) / np.sqrt(2 * math.pi * large)
    return np.where(a < _UNIFORM_FROM, half * half / gamma(small + 1), far)


def _uniform_tails(a: Any, x: Any) -> tuple[Any, Any]:
    """P and Q for a of at least 20 and x near a, by Temme's uniform expansion (DLMF 8.12.3)."""
    share = (x - a) / a
    size = np.sqrt(-2 * log1p_less_x(share))
    eta = np.where(share < 0, -size, size)
    inverse, orders, degrees = 1 / a, *((_ORDERS, _DEGREES) if is_double(x) else (4, 10))
    series = polynomial(
        inverse, [polynomial(eta, row[-(degrees - 2 * k) :]) for k, row in enumerate(_UNIFORM[:orders])][::-1]
    )
    rest = series * np.exp(-0.5 * a * eta * eta) / np.sqrt(2 * math.pi * a)
    z = eta * np.sqrt(a / 2)
    return 0.5 * erfc(-z) - rest, 0.5 * erfc(z) + rest


def _incomplete_gamma(a: Any, x: Any) -> tuple[Any, Any]:
    """P and Q, where a and x are positive and finite.

    By the power series (DLMF 8.7.1 for P, and for Q of small a and x), the continued fraction (DLMF 8.9.2), and
    Temme's expansion where a is at least 20 and x within 40 % of a.
    """
    uniform = (a >= _UNIFORM_FROM) & (np.abs(x - a) < _UNIFORM_WIDTH * a)
    by_series, by_fraction = ~uniform & (x < np.maximum(a, 1.1)), ~uniform & (x >= np.maximum(a, 1.1))
    density = poisson_mass(a, x)
    # P = density (1 + x/(a + 1) + x**2/((a + 1)(a + 2)) + ...)
    a_, x_ = np.where(by_series, a, 1), np.where(by_series, x, 0)

    def add(i: Any, state: Any) -> Any:
        total, term, _ = state
        term = term * (x_ / (a_ + (i + 1)))
        return total + term, term, term / total

    one = np.ones_like(density)
    total = _until_settled(add, (one, one, one), 200)[0]
    p_by_series = density * total
    # Q = 1 - x**a / gamma(a + 1) (1 + a sum of (-x)**n / ((a + n) n!)) for x below 1.1
    low = np.where(by_series, np.minimum(x, 1.1), 1)
    alternating = polynomial(low, [(-1) ** n / math.factorial(n) / (a_ + n) for n in range(20, 0, -1)]) * low * a_
    below = np.minimum(a_, 0.5)
    logarithm = a_ * np.log(low) - np.where(a_ < 0.5, gammaln_near_two(below) - np.log1p(below), gammaln(a_ + 1))
    q_of_small = -(np.expm1(logarithm) + np.exp(logarithm) * alternating)
    q_by_series = np.where((x < 1.1) & (p_by_series > 0.1), q_of_small, 1 - p_by_series)
    # Q = density a / (x + 1 - a - 1 (1 - a)/(x + 3 - a - 2 (2 - a)/(x + 5 - a - ...))) by modified Lentz
    a_, x_ = np.where(by_fraction, a, 1), np.where(by_fraction, x, 2)

    def improve(i: Any, state: Any) -> Any:
        value, c, d, _ = state
        n = i + 1
        return _next_of_fraction(n * (a_ - n), x_ + (2 * n + 1) - a_, value, c, d)

    first = x_ + 1 - a_
    found = _until_settled(improve, (1 / first, one / float(np.finfo(x.dtype).tiny), 1 / first, one), 200)[0]
    q_by_fraction = density * a_ * found
    p, q = _uniform_tails(np.where(uniform, a, 100), np.where(uniform, x, 100))
    p = np.where(uniform, p, np.where(by_series, p_by_series, 1 - q_by_fraction))
    q = np.where(uniform, q, np.where(by_series, q_by_series, q_by_fraction))
    return p, q


def _next_of_fraction(numerator: Any, denominator: Any, value: Any, c: Any, d: Any) -> tuple[Any, Any, Any, Any]:
    """The next convergent of a continued fraction, by the modified method of Lentz, and its relative change.

    Thompson and Barnett, Journal of Computational Physics 64, 1986. A change by rounding only counts as none: it would
    add up while other elements change.
    """
    d = 1 / _not_zero(denominator + numerator * d)
    c = _not_zero(denominator + numerator / c)
    settled = np.abs(c * d - 1) <= 2 * float(np.finfo(value.dtype).eps)
    return np.where(settled, value, value * (c * d)), c, d, np.where(settled, 0, c * d - 1)


def _not_zero(x: Any) -> Any:
    return np.where(x == 0, float(np.finfo(x.dtype).tiny), x)


def _at_limits(a: Any, x: Any, upper: bool) -> Any:
    """P or Q, and their limits: for a = 0 or x infinite P is 1, for x = 0 or a infinite 0."""
    ordinary = (a > 0) & (x > 0) & np.isfinite(a) & np.isfinite(x)
    result = _incomplete_gamma(np.where(ordinary, a, 1), np.where(ordinary, x, 1))[upper]
    limit = ((x == 0) | (a == math.inf)) == upper
    result = np.where(ordinary, result, limit.astype(result.dtype))
    undefined = ~((a >= 0) & (x >= 0)) | ((a == 0) & (x == 0)) | ((a == math.inf) & (x == math.inf))
    return np.where(undefined, math.nan, result)


def gamma_density(a: Any, x: Any) -> Any:
    """The derivative of P: x**(a - 1) exp(-x) / gamma(a)."""
    inner = (a > 0) & (x > 0)
    a_, x_ = np.where(inner, a, 1), np.where(inner, x, 1)
    at_zero = np.where(x == 0, np.where(a == 1, 1, np.where(a < 1, math.inf, np.zeros_like(x))), 0)
    return np.where(inner, poisson_mass(a_, x_) * (a_ / x_), at_zero)


@differentiable(lambda t, y, a, x: gamma_density(a, x) * t, fixed=1)
def gammainc(a: Any, x: Any) -> Any:
    """The regularised lower incomplete gamma function P(a, x); its derivatives are those in `x`."""
    return _at_limits(a, x, False)


@differentiable(lambda t, y, a, x: -gamma_density(a, x) * t, fixed=1)
def gammaincc(a: Any, x: Any) -> Any:
    """The regularised upper incomplete gamma function, 1 - P(a, x); its derivatives are those in `x`."""
    return _at_limits(a, x, True)


def beta_prefix(a: Any, b: Any, x: Any, y: Any) -> Any:
    """x**a y**b / beta(a, b) with y = 1 - x.

    For large a and b relative to the largest value, which is at x = a / (a + b), so that no large logarithms are
    subtracted (Didonato and Morris, TOMS 18, 1992, section 3).
    """
    large = (a >= 8) & (b >= 8) & (np.maximum(a, b) >= 20)
    a_, b_ = np.where(large, a, 8), np.where(large, b, 8)
    total = a_ + b_
    excess = x * b_ - y * a_  # (a + b) x - a
    powers = a_ * _log_of_share(excess / a_, x * total / a_) + b_ * _log_of_share(-excess / b_, y * total / b_)
    corrections = stirling_correction(total) - stirling_correction(a_) - stirling_correction(b_)
    far = np.exp(powers + corrections) * np.sqrt(a_ * (b_ / total) / (2 * math.pi))
    product = x**a * y**b
    few = (a < 30) & (b < 30) & (product > 1e12 * float(np.finfo(x.dtype).tiny))
    near = np.where(few, product / beta(a, b), np.exp(a * np.log(x) + b * np.log(y) - betaln(a, b)))
    return np.where(large, far, near)


def _log_of_share(share: Any, ratio: Any) -> Any:
    """log(ratio) - share for ratio = 1 + share."""
    near = np.abs(share) < _UNIFORM_WIDTH
    return np.where(near, log1p_less_x(np.where(near, share, 0)), np.log(ratio) - share)


def _beta_fraction(a: Any, b: Any, x: Any, y: Any) -> Any:
    """beta(a, b, x) a / (x**a y**b / beta(a, b)) for x below (a + 1)/(a + b + 2), as a continued fraction.

    DLMF 8.17.22, by the modified method of Lentz.
    """

    def improve(i: Any, state: Any) -> Any:
        value, c, d, _ = state
        m = i + 1
        even = m * (b - m) * x / ((a + (2 * m - 1)) * (a + 2 * m))
        value, c, d, first = _next_of_fraction(even, 1, value, c, d)
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + (2 * m + 1)))
        value, c, d, second = _next_of_fraction(odd, 1, value, c, d)
        return value, c, d, np.abs(first) + np.abs(second)

    one = np.ones_like(x)
    first = 1 / _not_zero(1 - (a + b) * x / (a + 1))
    value, _, _, change = _until_settled(improve, (first, one, first, one), _MOST_OF_BETA)
    return np.where(change == 0, value, math.nan)


_MOST_OF_BETA = 100_000
"""Iterations, of which about the root of the larger parameter are needed."""


def incomplete_beta(a: Any, b: Any, x: Any, y: Any) -> Any:
    """I(a, b, x) inside of its domain, with y = 1 - x."""
    swapped = x > (a + 1) / (a + b + 2)
    p, q = np.where(swapped, b, a), np.where(swapped, a, b)
    u, v = np.where(swapped, y, x), np.where(swapped, x, y)
    tail = beta_prefix(p, q, u, v) / p * _beta_fraction(p, q, u, v)
    return np.where(swapped, 1 - tail, tail)


@differentiable(lambda t, r, a, b, x: beta_density(a, b, x) * t, fixed=2)
def betainc(a: Any, b: Any, x: Any) -> Any:
    """The regularised incomplete beta function I(a, b, x); its derivatives are those in `x`."""
    shape = np.zeros_like(a + b + x)
    a, b, x = a + shape, b + shape, x + shape
    ordinary = (a > 0) & (b > 0) & (x > 0) & (x < 1) & np.isfinite(a) & np.isfinite(b)
    a_, b_, x_ = np.where(ordinary, a, 1), np.where(ordinary, b, 1), np.where(ordinary, x, 0.5)
    result = incomplete_beta(a_, b_, x_, 1 - x_)
    whole = (x == 1) | ((x != 0) & ((a == 0) | (b == math.inf)))
    limits = np.where(whole, 1, np.zeros_like(x))
    undefined = ~((a >= 0) & (b >= 0) & (x >= 0) & (x <= 1)) | ((a == 0) & (b == 0))
    undefined = undefined | ((a == math.inf) & (b == math.inf))
    return np.where(undefined, math.nan, np.where(ordinary, result, limits))


def beta_density(a: Any, b: Any, x: Any) -> Any:
    """The derivative of I: x**(a - 1) (1 - x)**(b - 1) / beta(a, b)."""
    inner = (x > 0) & (x < 1)
    x_ = np.where(inner, x, 0.5)
    power = np.where(x <= 0, a, b)
    at_end = np.where(power == 1, np.where(x <= 0, b, a), np.where(power < 1, math.inf, np.zeros_like(x)))
    return np.where(inner, beta_prefix(a, b, x_, 1 - x_) / (x_ * (1 - x_)), at_end)
