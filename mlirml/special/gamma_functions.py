"""The gamma function, its logarithm and derivatives, the zeta function, and the beta function."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np

from mlirml.errors import DTypeError
from mlirml.frontend import control
from mlirml.frontend.frames import at_user_line
from mlirml.frontend.tracing.pointwise import pointwise
from mlirml.ops.functions import library
from mlirml.random.quantiles import polynomial
from mlirml.special.floats import as_array, differentiable, float_dtype, is_double

__all__ = [
    "beta", "betaln", "digamma", "gamma", "gammaln", "gammasgn", "multigammaln", "polygamma", "psi", "rgamma", "zeta"
]  # fmt: skip

_EULER = 0.5772156649015329
_HALF_LOG_TWO_PI = 0.9189385332046728
_STIRLING_FROM = 8
_ASYMPTOTIC_FROM = 10
_FEWEST = 9  # terms of a zeta function that are added one by one
_MOST_NEGATIVE = 1 << 16


def _bernoulli(count: int) -> list[Fraction]:
    """B(2), B(4), ..., by the recurrence of the Bernoulli numbers (DLMF 24.5.3)."""
    numbers = [Fraction(1)]
    for m in range(1, 2 * count + 1):
        numbers.append(-sum((math.comb(m + 1, k) * b for k, b in enumerate(numbers)), Fraction(0)) / (m + 1))
    return numbers[2::2]


_BERNOULLI = _bernoulli(13)


def _zeta_less_one(s: int) -> float:
    """zeta(s) - 1 of an integer, by the Euler-Maclaurin formula (DLMF 25.2.9)."""
    last, s_ = 20, Fraction(s)
    total = sum((Fraction(1, n**s) for n in range(2, last)), Fraction(1, 2 * last**s))
    total += Fraction(last, last**s) / (s_ - 1) if s > 1 else 0
    factor = s_ / Fraction(last) ** (s + 1)
    for k, b in enumerate(_BERNOULLI[:8], 1):
        total += b / math.factorial(2 * k) * factor
        factor *= (s_ + 2 * k - 1) * (s_ + 2 * k) / last**2
    return float(total)


# log(gamma(2 + z)) = (1 - Euler) z + sum over k >= 2 of (-1)**k (zeta(k) - 1) z**k / k (DLMF 5.7.3).
_NEAR_TWO = (*(-((-1) ** k) * _zeta_less_one(k) / -k for k in range(26, 1, -1)), 1 - _EULER)
# Stirling's series of log(gamma(x)) in 1/x**2, without the factor 1/x (DLMF 5.11.1).
_STIRLING = tuple(float(b / (2 * k * (2 * k - 1))) for k, b in reversed([*enumerate(_BERNOULLI[:8], 1)]))
_DIGAMMA_SERIES = tuple(float(b / (2 * k)) for k, b in reversed([*enumerate(_BERNOULLI[:8], 1)]))
_ROOT, _LOW_OF_ROOT = 1.4616317749023438, 3.7006601859126265e-07  # of digamma, in two parts
# digamma(1.5 + t) / (1.5 + t - root) for t of [-1/2, 1/2], by docs/minimax.py, the highest power first.
_DIGAMMA = (
    0.0002672972761516256, -0.0003775229766847714, 0.0002177312148370062, -0.00035586730014026973,
    0.0007283685723707375, -0.0010770890435370687, 0.001555149662833551, -0.002337731826438791,
    0.0035192700322190158, -0.005280870558021411, 0.0079269155354595, -0.011908150165337101, 0.0179072544099005,
    -0.02697579977989265, 0.04076083373450277, -0.061922133200453505, 0.09498872445658213, -0.14840492305466924,
    0.24054248424075844, -0.4236274212814586, 0.951055876031833,
)  # fmt: skip
_EULER_MACLAURIN = tuple(float(b / math.factorial(2 * k)) for k, b in enumerate(_BERNOULLI[:12], 1))


def _last(coefficients: tuple[float, ...], x: Any, single: int) -> tuple[float, ...]:
    """The coefficients of the lowest powers that f32 needs; all of them for f64."""
    return coefficients if is_double(x) else coefficients[-single:]


def gammaln_near_two(z: Any) -> Any:
    """log(gamma(2 + z)) for z of [-1/2, 1/2]."""
    return z * polynomial(z, _last(_NEAR_TWO, z, 12))


def stirling_correction(x: Any) -> Any:
    """log(gamma(x)) - (x - 1/2) log(x) + x - log(2 pi)/2, for x of at least 8."""
    inverse = 1 / x
    return inverse * polynomial(inverse * inverse, _last(_STIRLING, x, 3))


def positive_gamma(x: Any) -> tuple[Any, Any]:
    """gamma(x) for x > 0, and gamma(x) / (sqrt(2 pi / x) (x / e)**x), which goes to 1 for large x (DLMF 5.11.3)."""
    large, low, is_large = np.maximum(x, _STIRLING_FROM), np.minimum(x, _STIRLING_FROM), x >= _STIRLING_FROM
    half = large ** (large / 2 - 0.25)
    correction = np.exp(stirling_correction(large))
    far = half * np.exp(-large) * half * (math.sqrt(2 * math.pi) * correction)
    far = np.where(large > (172 if is_double(x) else 36), math.inf, far)
    z, product, divisor = _factors(low)
    near = np.exp(gammaln_near_two(z)) * product / divisor
    scaled = near * np.exp(low) * low ** (0.5 - low) / math.sqrt(2 * math.pi)
    return np.where(is_large, far, near), np.where(is_large, correction, scaled)


def _factors(x: Any) -> tuple[Any, Any, Any]:
    """z, p and d for x of (0, 8): gamma(x) = gamma(2 + z) p / d with |z| <= 1/2; p or d is 1."""
    nearest = np.rint(x)
    product = np.where(nearest >= 3, x - 1, 1)
    for k in range(2, _STIRLING_FROM - 1):
        product = product * np.where(nearest >= k + 2, x - k, 1)
    divisor = np.where(nearest <= 1, x, 1) * np.where(nearest <= 0, x + 1, 1)
    return x - nearest, product, divisor


def _sine_of_pi(x: Any) -> Any:
    """sin(pi x), which is exactly 0 for integers."""
    nearest = np.rint(x)
    odd = nearest - 2 * np.floor(nearest / 2)
    return np.sin(math.pi * (x - nearest)) * (1 - 2 * odd)


def positive_gammaln(x: Any) -> Any:
    """The logarithm of gamma(x) for x > 0."""
    large = np.maximum(x, _STIRLING_FROM)
    far = (large - 0.5) * (np.log(large) - 1) + (_HALF_LOG_TWO_PI - 0.5) + stirling_correction(large)
    z, product, divisor = _factors(np.minimum(x, _STIRLING_FROM))
    logarithm = np.log(np.where(divisor == 1, product, divisor))
    near = gammaln_near_two(z) + np.where(divisor == 1, logarithm, -logarithm)
    return np.where(x >= _STIRLING_FROM, far, near)


@differentiable(lambda t, y, x: digamma(x) * t)
@pointwise
def gammaln(x: Any) -> Any:
    """The logarithm of the absolute value of the gamma function; infinite at 0 and at negative integers.

    By Stirling's series from 8 on, by the power series at 2 below it, by reflection for negative numbers (DLMF 5.11.1,
    5.7.3, 5.5.3). Near the zeros at negative numbers the error is small in absolute terms only.
    """
    negative = x < 0
    positive = positive_gammaln(np.where(negative, 1 - x, x))
    finite = np.where(negative & np.isfinite(x), x, 0.5)
    reflected = math.log(math.pi) - np.log(np.abs(_sine_of_pi(finite))) - positive
    pole = (x <= 0) & (x == np.floor(x))
    return np.where(pole, np.where(np.isinf(x), x, math.inf), np.where(negative, reflected, positive))


@differentiable(lambda t, y, x: y * digamma(x) * t)
@pointwise
def gamma(x: Any) -> Any:
    """The gamma function; NaN at negative integers, infinite of the sign of x at 0.

    By Stirling's series from 8 on, by the power series at 2 below it, by reflection for negative numbers (DLMF 5.11.3,
    5.7.3, 5.5.3).
    """
    size = np.abs(x)
    positive = positive_gamma(size)[0]
    tiny = size < (1e-18 if is_double(x) else 1e-9)
    finite = np.where(tiny | ~np.isfinite(x), 0.5, size)
    reflected = -math.pi / (finite * _sine_of_pi(finite) * positive)
    result = np.where(tiny, 1 / x, np.where(x < 0, reflected, positive))
    return np.where((x < 0) & (x == np.floor(x)), math.nan, result)


@differentiable(lambda t, y, x: _slope_of_rgamma(x, y) * t)
@pointwise
def rgamma(x: Any) -> Any:
    """The reciprocal of the gamma function, which is 0 at 0, negative integers and minus infinity."""
    return np.where((x <= 0) & (x == np.floor(x)), 0, 1 / gamma(x))


def _slope_of_rgamma(x: Any, y: Any) -> Any:
    """By reflection below 1/2, where it has no poles: the derivative of gamma(1 - x) sin(pi x) / pi (DLMF 5.5.3)."""
    low = x < 0.5
    other, nearest = np.where(low, 1 - x, 1), np.rint(x)
    offset, odd = math.pi * (x - nearest), nearest - 2 * np.floor(nearest / 2)
    below = gamma(other) * (1 - 2 * odd) * (np.cos(offset) - digamma(other) * np.sin(offset) / math.pi)
    return np.where(low, below, -y * digamma(np.where(low, 1, x)))


@differentiable(lambda t, y, x: 0 * t)
@pointwise
def gammasgn(x: Any) -> Any:
    """The sign of the gamma function: 1, -1, or NaN at negative integers; that of x at 0."""
    floor = np.floor(x)
    sign = np.where(floor == 2 * np.floor(floor / 2), 1, -1).astype(x.dtype)
    sign = np.where(x > 0, 1, np.where(x == 0, np.copysign(1, x), np.where(x == floor, math.nan, sign)))
    return np.where(np.isnan(x), x, sign)


@library("mlirml.special", "a")
def multigammaln(a: Any, d: int) -> Any:
    """The logarithm of the multivariate gamma function of `d` dimensions; NaN where `a` is not above (d - 1) / 2."""
    a = as_array(a)
    if not isinstance(d, (int, np.integer)) or d < 1:
        with at_user_line():
            raise DTypeError(f"special.multigammaln: {d} dimensions", help="d is a positive integer")
    a = a.astype(float_dtype("multigammaln", a))
    inside = a > 0.5 * (d - 1)
    a = np.where(inside, a, d)
    terms = [gammaln(a - 0.5 * k) for k in range(int(d))]
    return np.where(inside, sum(terms[1:], terms[0]) + d * (d - 1) / 4 * math.log(math.pi), math.nan)[()]


@differentiable(lambda t, y, x: polygamma(1, x) * t)
@pointwise
def digamma(x: Any) -> Any:
    """The derivative of `gammaln`; NaN at negative integers, infinite at 0.

    By the asymptotic series from 10 on (DLMF 5.11.2), by a polynomial times the distance from the root in [1, 2], by
    the recurrence between, by reflection for negative numbers (DLMF 5.5.2, 5.5.4). Near the zeros at negative numbers
    the error is small in absolute terms only.
    """
    negative = x < 0
    y = np.where(negative, 1 - x, x)
    large = np.maximum(y, _ASYMPTOTIC_FROM)
    inverse = 1 / large
    square = inverse * inverse
    far = np.log(large) - 0.5 * inverse - square * polynomial(square, _last(_DIGAMMA_SERIES, x, 3))
    steps = np.ceil(np.clip(y, 2, _ASYMPTOTIC_FROM)) - 2
    total = np.zeros_like(y)
    for k in range(1, _ASYMPTOTIC_FROM - 1):
        total = total + np.where(steps >= k, 1 / np.where(steps >= k, y - k, 1), 0)
    low = y < 1
    reduced = np.where(low, y + 1, np.minimum(y, _ASYMPTOTIC_FROM) - steps)
    near = ((reduced - _ROOT) - _LOW_OF_ROOT) * polynomial(reduced - 1.5, _last(_DIGAMMA, x, 18))
    near = near + np.where(low, -1 / np.where(low, y, 1), total)
    positive = np.where(y >= _ASYMPTOTIC_FROM, far, near)
    finite = np.where(negative & np.isfinite(x), x, 0.5)
    result = np.where(negative, positive - math.pi / np.tan(math.pi * (finite - np.rint(finite))), positive)
    result = np.where(negative & (x == np.floor(x)), math.nan, result)
    return np.where(x == 0, -np.copysign(math.inf, x), result)


@library("mlirml.special", "x")
def psi(x: Any) -> Any:
    """`digamma` under SciPy's other name."""
    return digamma(x)


def _euler_maclaurin(s: Any, q: Any) -> Any:
    """The Hurwitz zeta function of positive q, by the Euler-Maclaurin formula (DLMF 25.11.28)."""
    total = q**-s
    for k in range(1, _FEWEST):
        total = total + (q + k) ** -s
    start = q + _FEWEST
    power = start**-s
    total = total + np.where(power == 0, 0, power * start / (s - 1)) + power / 2
    factor = power * s / start
    for k, coefficient in enumerate(_EULER_MACLAURIN if is_double(q) else _EULER_MACLAURIN[:5], 1):
        total = total + coefficient * factor
        factor = factor * ((s + (2 * k - 1)) / start) * ((s + 2 * k) / start)
    return total


@differentiable(fixed=1, public="zeta")
def _riemann(s: Any) -> Any:
    """By the Euler-Maclaurin formula, for negative s by reflection (DLMF 25.4.1)."""
    positive = np.where(s < 0, 1 - s, np.where(np.isinf(s), 100, s))
    value = _euler_maclaurin(positive, np.ones_like(s))
    sine = _sine_of_pi(np.where(np.isinf(s), 0, s) / 2)
    reflected = np.where(sine == 0, 0, 2 * (2 * math.pi) ** (s - 1) * sine * gamma(positive) * value)
    return np.where(s == 1, math.inf, np.where(s == -math.inf, math.nan, np.where(s < 0, reflected, value)))


@differentiable(lambda t, y, s, q: -s * _zeta(s + 1, q) * t, fixed=1, public="zeta")
def _zeta(s: Any, q: Any) -> Any:
    """By the Euler-Maclaurin formula; terms of negative numbers are added one by one before."""
    s, q = s + np.zeros_like(q), q + np.zeros_like(s)

    def add(carry: tuple[Any, Any]) -> tuple[Any, Any]:
        q, total = carry
        return np.where(q < 0, q + 1, q), total + np.where(q < 0, q**-s, 0)

    defined = (q >= 0) | ((s == np.floor(s)) & (q > -_MOST_NEGATIVE) & (q != np.floor(q)))
    positive, total = np.where(defined, q, 1), np.zeros_like(q)
    positive, total = control.while_loop(lambda carry: np.any(carry[0] < 0), add, (positive, total))
    total = total + _euler_maclaurin(s, positive)
    total = np.where(np.isinf(s), np.where(q == 1, q, np.where(np.abs(q) < 1, math.inf, 0 / q)), total)
    total = np.where(np.isinf(q), s - s, total)
    pole = (s == 1) | ((q <= 0) & (q == np.floor(q)))
    return np.where(s < 1, math.nan, np.where(pole, math.inf, np.where(defined, total, math.nan)))


@library("mlirml.special", "q")
def zeta(x: Any, q: Any = None) -> Any:
    """The Hurwitz zeta function: the sum over k >= 0 of (k + q)**-x, for x above 1.

    NaN for x below 1, for negative q where x is no integer, and for q below -65536. Without `q` Riemann's zeta function
    of any real number. Derivatives are those in `q`.
    """
    return _riemann(x) if q is None else _zeta(x, q)


def _cotangent_derivative(n: int) -> list[int]:
    """The polynomial p, lowest power first, with pi**(n + 1) p(cot(pi x)) for the n-th derivative of pi cot(pi x)."""
    p = [0, 1]
    for _ in range(n):
        slope = [k * c for k, c in enumerate(p)][1:]
        p = [-(a + b) for a, b in zip([*slope, 0, 0], [0, 0, *slope])]
    return p


@differentiable(lambda t, y, n, x: polygamma(n + 1, x) * t, fixed=1, public="polygamma")
def _polygamma_of_array(n: Any, x: Any) -> Any:
    odd = n - 2 * np.floor(n / 2)
    return np.where(n == 0, digamma(x), (2 * odd - 1) * gamma(n + 1) * _zeta(n + 1, x))


@library("mlirml.special", "x")
def polygamma(n: Any, x: Any) -> Any:
    """The n-th derivative of `digamma`, for integers n: (-1)**(n + 1) n! zeta(n + 1, x) (DLMF 25.11.12).

    An n that is a Python integer takes negative x by reflection (DLMF 5.15.6); an array takes the sum.
    """
    if not isinstance(n, (int, np.integer)):
        return _polygamma_of_array(n, x)
    if n < 0:
        with at_user_line():
            raise DTypeError(f"special.polygamma: derivative {n}", help="n is 0 or a positive integer")
    if n == 0:
        return digamma(x)
    order = int(n)
    dtype = float_dtype("polygamma", x)
    return _polygamma(order, as_array(x).astype(dtype))


def _polygamma(n: int, x: Any) -> Any:
    @differentiable(lambda t, y, x: _polygamma(n + 1, x) * t)
    def polygamma(x: Any) -> Any:
        reflects = (x < 0) & (x != np.floor(x))
        value = -((-1) ** n) * math.factorial(n) * _zeta(float(n + 1), np.where(reflects, 1 - x, x))
        finite = np.where(reflects, x - np.rint(x), 0.25)
        cotangent = 1 / np.tan(math.pi * finite)
        change = math.pi ** (n + 1) * polynomial(cotangent, [float(c) for c in reversed(_cotangent_derivative(n))])
        return np.where(reflects, (-1) ** n * value - change, value)

    return polygamma(x)


def _parts_of_beta(a: Any, b: Any) -> tuple[Any, Any, Any, Any, Any]:
    """The argument below 8, the sum, and two logarithms: of beta less two factors where one argument is large; of beta.

    By Stirling's corrections (Didonato and Morris, TOMS 18, 1992), for which no large numbers are subtracted. The last
    item is 1 or 2 where the first or the second logarithm is defined.
    """
    least, most = np.minimum(a, b), np.maximum(a, b)
    one, two = (most >= _STIRLING_FROM) & (least + most >= _STIRLING_FROM), least >= _STIRLING_FROM
    large = np.where(one, np.minimum(most, 1e300 if is_double(most) else 1e36), 2 * _STIRLING_FROM)
    small = np.where(one & ~two, least, 1)
    correction, total = stirling_correction(large), small + large
    mixed = correction - stirling_correction(total) + small + (large - 0.5) * np.log1p(-small / total)
    both = np.where(two, np.minimum(least, large), _STIRLING_FROM)
    total = both + large
    far = correction + stirling_correction(both) - stirling_correction(total) - 0.5 * np.log(large)
    far = far + (both - 0.5) * np.log(both / total) + large * np.log1p(-both / total) + _HALF_LOG_TWO_PI
    return small, np.where(one & ~two, least + most, 1), mixed, far, np.where(two, 2, one)


def _without_poles(a: Any, b: Any) -> tuple[Any, Any, Any, Any]:
    """Arguments with the same beta function but for a sign, the sign, and where it is infinite.

    For a = 0, -1, ... it is finite where b is a positive integer below 1 - a: (-1)**b beta(1 - a - b, b).
    """
    first, second = ((x <= 0) & (x == np.floor(x)) for x in (a, b))
    pole, other = np.where(first, a, b), np.where(first, b, a)
    finite = (first | second) & (other > 0) & (other == np.floor(other)) & (1 - pole - other > 0)
    finite = finite & np.isfinite(pole)
    odd = finite & (other != 2 * np.floor(other / 2))
    a, b = np.where(finite, 1 - pole - other, a), np.where(finite, other, b)
    return a, b, 1 - 2 * odd.astype(a.dtype), (first | second) & ~finite


_BETA_RULES = (lambda a, b: digamma(a) - digamma(a + b)), (lambda a, b: digamma(b) - digamma(a + b))


@differentiable(*(lambda t, y, a, b, rule=rule: rule(a, b) * t for rule in _BETA_RULES))
@pointwise
def betaln(a: Any, b: Any) -> Any:
    """The logarithm of the absolute value of the beta function."""
    a, b, _, infinite = _without_poles(a, b)
    small, total, mixed, far, which = _parts_of_beta(a, b)
    near = gammaln(a) + gammaln(b) - gammaln(a + b)
    mixed = gammaln(small) - small * np.log(total) + mixed
    result = np.where(which == 2, far, np.where(which == 1, mixed, near))
    at_infinity = (np.maximum(a, b) == math.inf) & ~np.isnan(a + b)
    result = np.where(at_infinity, -math.inf * np.sign(np.minimum(a, b)), result)
    return np.where(infinite, math.inf, result)


@differentiable(*(lambda t, y, a, b, rule=rule: y * rule(a, b) * t for rule in _BETA_RULES))
@pointwise
def beta(a: Any, b: Any) -> Any:
    """The beta function, gamma(a) gamma(b) / gamma(a + b)."""
    a, b, sign, infinite = _without_poles(a, b)
    small, total, mixed, far, which = _parts_of_beta(a, b)
    near = np.where((a + b <= 0) & (a + b == np.floor(a + b)), 0, gamma(a) * (gamma(b) / gamma(a + b)))
    mixed = gamma(small) * total**-small * np.exp(mixed)
    result = np.where(which == 2, np.exp(far), np.where(which == 1, mixed, near))
    return np.where(infinite, math.inf, sign * result)
