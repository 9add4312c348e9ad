"""The incomplete gamma function, regularised, and its derivatives."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np

from mlirml.frontend.tracing.pointwise import pointwise
from mlirml.random.quantiles import polynomial
from mlirml.special.floats import differentiable, is_double, times_slope
from mlirml.special.gamma_functions import (
    digamma,
    gammaln_near_two,
    positive_gamma,
    positive_gammaln,
    stirling_correction,
)
from mlirml.special.iterations import next_of_fraction, next_with_slope, until_settled
from mlirml.special.logarithms import log1p_less_x
from mlirml.special.normal import erfc

__all__ = ["gammainc", "gammaincc"]

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
_MOST = 200


@pointwise
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
    return np.where(a < _UNIFORM_FROM, half * half / positive_gamma(small + 1)[0], far)


def _uniform_rows(x: Any) -> list[tuple[float, ...]]:
    orders, degrees = (_ORDERS, _DEGREES) if is_double(x) else (4, 10)
    return [row[-(degrees - 2 * k) :] for k, row in enumerate(_UNIFORM[:orders])]


def _uniform_variable(a: Any, x: Any) -> Any:
    """eta, with eta**2 / 2 = x / a - 1 - log(x / a) and the sign of x - a."""
    share = (x - a) / a
    size = np.sqrt(-2 * log1p_less_x(share))
    return np.where(share < 0, -size, size)


def _uniform_tails(a: Any, x: Any) -> tuple[Any, Any]:
    """P and Q for a of at least 20 and x near a, by Temme's uniform expansion (DLMF 8.12.3)."""
    smaller, below = _smaller_uniform_tail(a, x), x < a
    return np.where(below, smaller, 1 - smaller), np.where(below, 1 - smaller, smaller)


@pointwise
def _smaller_uniform_tail(a: Any, x: Any) -> Any:
    """P where x is below a, else Q."""
    eta = _uniform_variable(a, x)
    series = polynomial(1 / a, [polynomial(eta, row) for row in _uniform_rows(x)][::-1])
    rest = series * np.exp(-0.5 * a * eta * eta) / np.sqrt(2 * math.pi * a)
    return 0.5 * erfc(np.abs(eta) * np.sqrt(a / 2)) + np.where(x < a, -rest, rest)


@pointwise
def _uniform_slope(a: Any, x: Any) -> Any:
    """The derivative of Q by a in the uniform expansion, divided by exp(-a eta**2 / 2) / sqrt(2 pi a).

    With d eta / da = -(x/a - 1) / (a eta) the derivatives of the error function and of the exponential cancel but for
    (x/a - 1)/eta - eta/2 and log(x/a).
    """
    share, eta, inverse = (x - a) / a, _uniform_variable(a, x), 1 / a
    ratio = np.where(eta == 0, 1, share / np.where(eta == 0, 1, eta))
    rows = _uniform_rows(x)
    values = [polynomial(eta, row) for row in rows]
    slopes = [polynomial(eta, [c * (len(row) - 1 - n) for n, c in enumerate(row[:-1])] or [0.0]) for row in rows]
    series, by_eta = polynomial(inverse, values[::-1]), polynomial(inverse, slopes[::-1])
    by_inverse = polynomial(inverse, [k * v for k, v in enumerate(values)][:0:-1])
    inner = series * (np.log1p(share) - 0.5 * inverse) - (by_eta * ratio + by_inverse * inverse) * inverse
    return ratio - 0.5 * eta + inner


def _regions(a: Any, x: Any) -> tuple[Any, Any, Any]:
    """Masks of where the uniform expansion, the power series and the continued fraction are computed."""
    uniform = (a >= _UNIFORM_FROM) & (np.abs(x - a) < _UNIFORM_WIDTH * a)
    below = x < np.maximum(a, 1.1)
    return uniform, ~uniform & below, ~uniform & ~below


def incomplete_gamma(a: Any, x: Any) -> tuple[Any, Any, Any]:
    """P, Q, and x**a exp(-x) / gamma(a + 1), where a and x are positive and finite.

    By the power series (DLMF 8.7.1 for P, and for Q of small a and x), the continued fraction (DLMF 8.9.2), and
    Temme's expansion where a is at least 20 and x within 40 % of a.
    """
    uniform, by_series, by_fraction = _regions(a, x)
    density = poisson_mass(a, x)
    # P = density (1 + x/(a + 1) + x**2/((a + 1)(a + 2)) + ...)
    a_, x_ = np.where(by_series, a, 1), np.where(by_series, x, 0)

    def add(i: Any, state: Any) -> Any:
        total, term, _ = state
        term = term * (x_ / (a_ + (i + 1)))
        return total + term, term, term / total

    one = np.ones_like(density)
    total = until_settled(add, (one, one, one), _MOST)[0]
    p_by_series = density * total
    q_of_small = _upper_of_small(a_, np.where(by_series, np.minimum(x, 1.1), 1))
    q_by_series = np.where((x < 1.1) & (p_by_series > 0.1), q_of_small, 1 - p_by_series)
    # Q = density a / (x + 1 - a - 1 (1 - a)/(x + 3 - a - 2 (2 - a)/(x + 5 - a - ...))) by modified Lentz
    a_, x_ = np.where(by_fraction, a, 1), np.where(by_fraction, x, 2)

    def improve(i: Any, state: Any) -> Any:
        value, c, d, _ = state
        n = i + 1
        return next_of_fraction(n * (a_ - n), x_ + (2 * n + 1) - a_, value, c, d)

    first = x_ + 1 - a_
    found = until_settled(improve, (1 / first, one / float(np.finfo(x.dtype).tiny), 1 / first, one), _MOST)[0]
    q_by_fraction = density * a_ * found
    p, q = _uniform_tails(np.where(uniform, a, 100), np.where(uniform, x, 100))
    p = np.where(uniform, p, np.where(by_series, p_by_series, 1 - q_by_fraction))
    q = np.where(uniform, q, np.where(by_series, q_by_series, q_by_fraction))
    return p, q, density


@pointwise
def _upper_of_small(a: Any, x: Any) -> Any:
    """Q for x of at most 1.1: 1 - x**a / gamma(a + 1) (1 + a sum of (-x)**n / ((a + n) n!))."""
    alternating = polynomial(x, [(-1) ** n / math.factorial(n) / (a + n) for n in range(20, 0, -1)]) * x * a
    below = np.minimum(a, 0.5)
    log_gamma = np.where(a < 0.5, gammaln_near_two(below) - np.log1p(below), positive_gammaln(a + 1))
    logarithm = a * np.log(x) - log_gamma
    return -(np.expm1(logarithm) + np.exp(logarithm) * alternating)


def _slope_of_series(a: Any, x: Any, log_x: Any, density: Any, psi: Any) -> Any:
    """The derivative of Q by a, from the derivatives of the terms of the power series of P.

    The one of x**n / ((a + 1) ... (a + n)) is the term times -(1/(a + 1) + ... + 1/(a + n)).
    """

    def add(i: Any, state: Any) -> Any:
        total, slope, term, harmonic, _ = state
        next_ = 1 / (a + (i + 1))
        term, harmonic = term * x * next_, harmonic + next_
        return total + term, slope + term * harmonic, term, harmonic, term * harmonic / (slope + term * harmonic)

    one, zero = np.ones_like(x), np.zeros_like(x)
    total, slope, *_ = until_settled(add, (one, zero, one, zero, one), _MOST)
    return density * (total * (psi - log_x) + slope)


def _slope_of_fraction(a: Any, x: Any, density: Any, psi: Any) -> Any:
    """The derivative of Q by a, from that of the continued fraction f in Q = density a f.

    `density a` has the logarithmic derivative log(x) - psi(a), and a psi(a) is a psi(a + 1) - 1.
    """

    def improve(i: Any, state: Any) -> Any:
        n = i + 1
        found, change = next_with_slope((n * (a - n), n + np.zeros_like(a)), (x + (2 * n + 1) - a, -1), state[:-1])
        return *found, change

    one, zero = np.ones_like(x), np.zeros_like(x)
    first = 1 / (x + 1 - a)
    start = (first, first, one / float(np.finfo(x.dtype).tiny), zero, first, first * first, one)
    found, slope, *_ = until_settled(improve, start, _MOST)
    return density * found * (a * (np.log(x) - psi + slope) + 1)


def _gamma_slope(a: Any, x: Any) -> Any:
    """The derivative of Q by a, where a is not negative, x positive, and both are finite.

    R. Moore: Algorithm AS 187, Applied Statistics 31, 1982, but for the uniform expansion. All terms that are added are
    positive but for small ones.
    """
    uniform, by_series, by_fraction = _regions(a, x)
    density, psi = poisson_mass(a, x), digamma(a + 1)
    x_ = np.where(by_series, x, 0.5)
    series = _slope_of_series(np.where(by_series, a, 1), x_, np.log(x_), density, psi)
    fraction = _slope_of_fraction(np.where(by_fraction, a, 1), np.where(by_fraction, x, 2), density, psi)
    a_, x_ = np.where(uniform, a, 100), np.where(uniform, x, 100)
    eta = _uniform_variable(a_, x_)
    near = _uniform_slope(a_, x_) * np.exp(-0.5 * a_ * eta * eta) / np.sqrt(2 * math.pi * a_)
    return np.where(uniform, near, np.where(by_series, series, fraction))


def log_quantile_slope(a: Any, x: Any, log_x: Any) -> Any:
    """The derivative by a of the logarithm of x, where P(a, x) does not change: that of Q by a, divided by x times the
    density, which is a times the Poisson mass. The mass cancels, so that x may be as small as its logarithm allows.
    """
    ordinary = (a > 0) & (x >= 0) & np.isfinite(a) & np.isfinite(log_x)
    a = np.where(ordinary, a, 1)
    x = np.where(ordinary, np.maximum(x, np.finfo(x.dtype).tiny), 1)
    uniform, by_series, by_fraction = _regions(a, x)
    psi, inverse = digamma(a + 1), 1 / a
    series = _slope_of_series(
        np.where(by_series, a, 1), np.where(by_series, x, 0.5), np.where(by_series, log_x, 0), inverse, psi
    )
    fraction = _slope_of_fraction(np.where(by_fraction, a, 1), np.where(by_fraction, x, 2), inverse, psi)
    a_ = np.where(uniform, a, 100)
    near = _uniform_slope(a_, np.where(uniform, x, 100)) * np.exp(stirling_correction(a_)) / a_
    return np.where(ordinary, np.where(uniform, near, np.where(by_series, series, fraction)), math.nan)


def _at_limits(a: Any, x: Any, upper: bool) -> Any:
    """P or Q, and their limits: for a = 0 or x infinite P is 1, for x = 0 or a infinite 0."""
    ordinary = (a > 0) & (x > 0) & np.isfinite(a) & np.isfinite(x)
    result = incomplete_gamma(np.where(ordinary, a, 1), np.where(ordinary, x, 1))[upper]
    limit = ((x == 0) | (a == math.inf)) == upper
    result = np.where(ordinary, result, limit.astype(result.dtype))
    undefined = ~((a >= 0) & (x >= 0)) | ((a == 0) & (x == 0)) | ((a == math.inf) & (x == math.inf))
    return np.where(undefined, math.nan, result)


@differentiable(
    lambda t, y, a, x: times_slope(y, np.log(x) - digamma(a)) * t,
    lambda t, y, a, x: times_slope(y, (a - 1) / x - 1) * t,
)
@pointwise
def gamma_density(a: Any, x: Any) -> Any:
    """The derivative of P: x**(a - 1) exp(-x) / gamma(a)."""
    inner = (a > 0) & (x > 0)
    a_, x_ = np.where(inner, a, 1), np.where(inner, x, 1)
    at_zero = np.where(x == 0, np.where(a == 1, 1, np.where(a < 1, math.inf, np.zeros_like(x))), 0)
    return np.where(inner, poisson_mass(a_, x_) * (a_ / x_), at_zero)


@differentiable(
    lambda t, y, a, x: times_slope(-gamma_density(a, x), np.log(x) - digamma(a)) * t,
    fixed=1,
    slope_of="gammainc, gammaincc and their inverses",
)
def gamma_slope(a: Any, x: Any) -> Any:
    """The derivative of Q by a; it has none by a itself."""
    ordinary = (a >= 0) & (x > 0) & np.isfinite(a) & np.isfinite(x)
    found = _gamma_slope(np.where(ordinary, a, 1), np.where(ordinary, x, 1))
    return np.where(ordinary, found, np.where((a >= 0) & (x >= 0), np.zeros_like(found), math.nan))


@differentiable(lambda t, y, a, x: -gamma_slope(a, x) * t, lambda t, y, a, x: gamma_density(a, x) * t)
def gammainc(a: Any, x: Any) -> Any:
    """The regularised lower incomplete gamma function P(a, x)."""
    return _at_limits(a, x, False)


@differentiable(lambda t, y, a, x: gamma_slope(a, x) * t, lambda t, y, a, x: -gamma_density(a, x) * t)
def gammaincc(a: Any, x: Any) -> Any:
    """The regularised upper incomplete gamma function, 1 - P(a, x)."""
    return _at_limits(a, x, True)
