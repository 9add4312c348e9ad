"""Continuous distributions, in their standard forms."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from mlirml import special
from mlirml.ops.functions import library
from mlirml.special.floats import differentiable
from mlirml.special.incomplete_beta import beta_density, beta_prefix, incomplete_beta, incomplete_beta_slope
from mlirml.special.incomplete_gamma import gamma_density
from mlirml.special.inverses import beta_odds, inverse_odds
from mlirml.stats.distribution import INFINITE, Continuous, FromZero

__all__ = [
    "beta", "cauchy", "chi2", "expon", "f", "gamma", "gumbel_r", "halfnorm", "laplace", "logistic", "lognorm", "norm",
    "pareto", "t", "truncnorm", "uniform", "weibull_min",
]  # fmt: skip

_HALF_LOG_TWO_PI = 0.5 * math.log(2 * math.pi)
_ROOT_TWO_PI = math.sqrt(2 * math.pi)


def _positive(*shapes: Any) -> Any:
    valid: Any = True
    for shape in shapes:
        valid = valid & (shape > 0) & (shape < INFINITE)
    return valid


@library("mlirml.stats", "x", "loc", "scale")
class _Normal(Continuous):
    name = "norm"

    def _logarithm(self, x: Any) -> Any:
        return -0.5 * x * x - _HALF_LOG_TWO_PI

    def _density(self, x: Any) -> Any:
        return np.exp(-0.5 * x * x) / _ROOT_TWO_PI

    def _cdf(self, x: Any) -> Any:
        return special.ndtr(x)

    def _sf(self, x: Any) -> Any:
        return special.ndtr(-x)

    def _logcdf(self, x: Any) -> Any:
        return special.log_ndtr(x)

    def _logsf(self, x: Any) -> Any:
        return special.log_ndtr(-x)

    def _ppf(self, q: Any) -> Any:
        return special.ndtri(q)

    def _isf(self, q: Any) -> Any:
        return -special.ndtri(q)


class _OfPositive(FromZero, Continuous):
    """A distribution of positive numbers."""


@library("mlirml.stats", "x", "loc", "scale")
class _Exponential(_OfPositive):
    name = "expon"

    def _logarithm(self, x: Any) -> Any:
        return -x

    def _cdf(self, x: Any) -> Any:
        return -np.expm1(-x)

    def _sf(self, x: Any) -> Any:
        return np.exp(-x)

    def _logcdf(self, x: Any) -> Any:
        return log1mexp(x)

    def _logsf(self, x: Any) -> Any:
        return -x

    def _ppf(self, q: Any) -> Any:
        return -np.log1p(-q)

    def _isf(self, q: Any) -> Any:
        return -np.log(q)


def log1mexp(x: Any) -> Any:
    """log(1 - exp(-x)) for positive x."""
    small = x < 0.6931471805599453
    return np.where(small, np.log(-np.expm1(-np.where(small, x, 1))), np.log1p(-np.exp(-np.where(small, 1, x))))


@library("mlirml.stats", "x", "a", "loc", "scale")
class _Gamma(_OfPositive):
    name, shapes = "gamma", ("a",)
    _allowed = staticmethod(_positive)

    def _logarithm(self, x: Any, a: Any) -> Any:
        return special.xlogy(a - 1, x) - x - special.gammaln(a)

    def _density(self, x: Any, a: Any) -> Any:
        return gamma_density(a, x)

    def _cdf(self, x: Any, a: Any) -> Any:
        return special.gammainc(a, x)

    def _sf(self, x: Any, a: Any) -> Any:
        return special.gammaincc(a, x)

    def _ppf(self, q: Any, a: Any) -> Any:
        return special.gammaincinv(a, q)

    def _isf(self, q: Any, a: Any) -> Any:
        return special.gammainccinv(a, q)


@library("mlirml.stats", "x", "df", "loc", "scale")
class _ChiSquared(_OfPositive):
    name, shapes = "chi2", ("df",)
    _allowed = staticmethod(_positive)

    def _logarithm(self, x: Any, df: Any) -> Any:
        half = 0.5 * df
        return special.xlogy(half - 1, 0.5 * x) - 0.5 * x - special.gammaln(half) - math.log(2)

    def _density(self, x: Any, df: Any) -> Any:
        return 0.5 * gamma_density(0.5 * df, 0.5 * x)

    def _cdf(self, x: Any, df: Any) -> Any:
        return special.gammainc(0.5 * df, 0.5 * x)

    def _sf(self, x: Any, df: Any) -> Any:
        return special.gammaincc(0.5 * df, 0.5 * x)

    def _ppf(self, q: Any, df: Any) -> Any:
        return 2 * special.gammaincinv(0.5 * df, q)

    def _isf(self, q: Any, df: Any) -> Any:
        return 2 * special.gammainccinv(0.5 * df, q)


@library("mlirml.stats", "x", "a", "b", "loc", "scale")
class _Beta(Continuous):
    name, shapes = "beta", ("a", "b")
    _allowed = staticmethod(_positive)

    @staticmethod
    def _support(*shapes: Any) -> tuple[Any, Any]:
        return 0, 1

    def _logarithm(self, x: Any, a: Any, b: Any) -> Any:
        return special.xlog1py(b - 1, -x) + special.xlogy(a - 1, x) - special.betaln(a, b)

    def _density(self, x: Any, a: Any, b: Any) -> Any:
        return beta_density(a, b, x)

    def _cdf(self, x: Any, a: Any, b: Any) -> Any:
        return special.betainc(a, b, x)

    def _sf(self, x: Any, a: Any, b: Any) -> Any:
        return special.betaincc(a, b, x)

    def _ppf(self, q: Any, a: Any, b: Any) -> Any:
        return special.betaincinv(a, b, q)

    def _isf(self, q: Any, a: Any, b: Any) -> Any:
        return special.betainccinv(a, b, q)


@library("mlirml.stats", "x", "dfn", "dfd", "loc", "scale")
class _F(_OfPositive):
    """The ratio of two chi-squared variables, each divided by its degrees of freedom."""

    name, shapes = "f", ("dfn", "dfd")
    _allowed = staticmethod(_positive)

    def _logarithm(self, x: Any, dfn: Any, dfd: Any) -> Any:
        half, other = 0.5 * dfn, 0.5 * dfd
        ratio = dfn / dfd
        powers = special.xlogy(half - 1, x) + half * np.log(ratio) - (half + other) * np.log1p(ratio * x)
        return powers - special.betaln(half, other)

    def _cdf(self, x: Any, dfn: Any, dfd: Any) -> Any:
        odds = x * (dfn / dfd)
        return special.betainc(0.5 * dfn, 0.5 * dfd, odds / (1 + odds))

    def _sf(self, x: Any, dfn: Any, dfd: Any) -> Any:
        return special.betainc(0.5 * dfd, 0.5 * dfn, 1 / (1 + x * (dfn / dfd)))

    def _ppf(self, q: Any, dfn: Any, dfd: Any) -> Any:
        return beta_odds(0.5 * dfn, 0.5 * dfd, q, 1 - q) * (dfd / dfn)

    def _isf(self, q: Any, dfn: Any, dfd: Any) -> Any:
        return beta_odds(0.5 * dfn, 0.5 * dfd, 1 - q, q) * (dfd / dfn)


def _t_logarithm(x: Any, df: Any) -> Any:
    half = 0.5 * df
    return -(half + 0.5) * np.log1p(x * x / df) - 0.5 * np.log(df) - special.betaln(half, half * 0 + 0.5)


def _t_shares(df: Any, x: Any) -> tuple[Any, Any, Any]:
    """A mask of where x is not 0, and df / (df + x**2) and its complement there."""
    square = np.minimum(x, float(np.finfo(x.dtype).max) ** 0.4) ** 2
    total = df + square
    inner = square > 0
    return inner, np.where(inner, df / total, 0.5), np.where(inner, square, df) / np.where(inner, total, 2 * df)


def _t_log_slope(df: Any, x: Any) -> Any:
    """The derivative of the logarithm of the density by df."""
    half, square = 0.5 * df, x * x
    of_beta = special.digamma(half) - special.digamma(half + 0.5)
    return 0.5 * ((df + 1) * (square / (df + square) / df) - np.log1p(square / df) - 1 / df - of_beta)


@differentiable(lambda t, y, df, x: -np.exp(_t_logarithm(x, df)) * _t_log_slope(df, x) * t, fixed=1)
def _t_tail_slope(df: Any, x: Any) -> Any:
    """The derivative of the probability above x >= 0 by df; it has none by df itself."""
    inner, share, rest = _t_shares(df, x)
    half, other = 0.5 * df, np.full_like(df, 0.5)
    of_shape = 0.5 * incomplete_beta_slope(half, other, share, rest, True)
    found = 0.5 * (of_shape + beta_prefix(half, other, share, rest) / df)
    return np.where(inner, found, 0)


@differentiable(lambda t, y, df, x: _t_tail_slope(df, x) * t, lambda t, y, df, x: -np.exp(_t_logarithm(x, df)) * t)
def _t_tail(df: Any, x: Any) -> Any:
    """The probability above x >= 0 (DLMF 8.17)."""
    inner, share, rest = _t_shares(df, x)
    return np.where(inner, 0.5 * incomplete_beta(0.5 * df, np.full_like(df, 0.5), share, rest)[0], 0.5)


@differentiable(
    lambda t, x, df, tail: _t_tail_slope(df, x) * np.exp(-_t_logarithm(x, df)) * t,
    lambda t, x, df, tail: -np.exp(-_t_logarithm(x, df)) * t,
)
def _t_point(df: Any, tail: Any) -> Any:
    """The x >= 0 above which a probability of at most 1/2 lies."""
    middle = tail == 0.5
    lower = np.where(middle, 0.5, 2 * tail)
    odds = inverse_odds(0.5 * df, np.full_like(df, 0.5), lower, np.where(middle, 0.5, 1 - lower))
    return np.where(middle, 0, np.sqrt(df / odds))


@library("mlirml.stats", "x", "df", "loc", "scale")
class _StudentT(Continuous):
    name, shapes = "t", ("df",)

    @staticmethod
    def _allowed(*shapes: Any) -> Any:
        return shapes[0] > 0

    def _logarithm(self, x: Any, df: Any) -> Any:
        normal = np.isinf(df)
        df = np.where(normal, 1, df)
        return np.where(normal, -0.5 * x * x - _HALF_LOG_TWO_PI, _t_logarithm(x, df))

    def _cdf(self, x: Any, df: Any) -> Any:
        normal = np.isinf(df)
        tail = _t_tail(np.where(normal, 1, df), np.abs(x))
        return np.where(normal, special.ndtr(x), np.where(x < 0, tail, 1 - tail))

    def _sf(self, x: Any, df: Any) -> Any:
        return self._cdf(-x, df)

    def _ppf(self, q: Any, df: Any) -> Any:
        normal = np.isinf(df)
        point = _t_point(*np.broadcast_arrays(np.where(normal, 1, df), np.minimum(q, 1 - q)))
        return np.where(normal, special.ndtri(q), np.where(q < 0.5, -point, point))

    def _isf(self, q: Any, df: Any) -> Any:
        return -self._ppf(q, df)


@library("mlirml.stats", "x", "loc", "scale")
class _Laplace(Continuous):
    name = "laplace"

    def _logarithm(self, x: Any) -> Any:
        return -np.abs(x) - math.log(2)

    def _density(self, x: Any) -> Any:
        return 0.5 * np.exp(-np.abs(x))

    def _cdf(self, x: Any) -> Any:
        small = 0.5 * np.exp(-np.abs(x))
        return np.where(x > 0, 1 - small, small)

    def _sf(self, x: Any) -> Any:
        return self._cdf(-x)

    def _logcdf(self, x: Any) -> Any:
        return np.where(x > 0, np.log1p(-0.5 * np.exp(-np.abs(x))), -np.abs(x) - math.log(2))

    def _logsf(self, x: Any) -> Any:
        return self._logcdf(-x)

    def _ppf(self, q: Any) -> Any:
        return np.where(q > 0.5, -np.log(2 * (1 - q)), np.log(2 * q))

    def _isf(self, q: Any) -> Any:
        return -self._ppf(q)


@library("mlirml.stats", "x", "loc", "scale")
class _Logistic(Continuous):
    name = "logistic"

    def _logarithm(self, x: Any) -> Any:
        return special.log_expit(x) + special.log_expit(-x)

    def _density(self, x: Any) -> Any:
        return special.expit(x) * special.expit(-x)

    def _cdf(self, x: Any) -> Any:
        return special.expit(x)

    def _sf(self, x: Any) -> Any:
        return special.expit(-x)

    def _logcdf(self, x: Any) -> Any:
        return special.log_expit(x)

    def _logsf(self, x: Any) -> Any:
        return special.log_expit(-x)

    def _ppf(self, q: Any) -> Any:
        return special.logit(q)

    def _isf(self, q: Any) -> Any:
        return -special.logit(q)


@library("mlirml.stats", "x", "loc", "scale")
class _Cauchy(Continuous):
    name = "cauchy"

    def _logarithm(self, x: Any) -> Any:
        return -np.log1p(x * x) - math.log(math.pi)

    def _density(self, x: Any) -> Any:
        return 1 / (math.pi * (1 + x * x))

    def _cdf(self, x: Any) -> Any:
        return np.arctan2(np.ones_like(x), -x) / math.pi

    def _sf(self, x: Any) -> Any:
        return self._cdf(-x)

    def _ppf(self, q: Any) -> Any:
        small = q < 0.25
        near = np.tan(math.pi * (np.where(small, 0.5, q) - 0.5))
        return np.where(small, -1 / np.tan(math.pi * np.where(small, q, 0.25)), near)

    def _isf(self, q: Any) -> Any:
        return -self._ppf(q)


@library("mlirml.stats", "x", "s", "loc", "scale")
class _LogNormal(_OfPositive):
    name, shapes = "lognorm", ("s",)
    _allowed = staticmethod(_positive)

    def _logarithm(self, x: Any, s: Any) -> Any:
        zero = x == 0
        logarithm = np.log(np.where(zero, 1, x))
        found = -0.5 * (logarithm / s) ** 2 - np.log(s) - logarithm - _HALF_LOG_TWO_PI
        return np.where(zero, -INFINITE, found)

    def _cdf(self, x: Any, s: Any) -> Any:
        return special.ndtr(np.log(x) / s)

    def _sf(self, x: Any, s: Any) -> Any:
        return special.ndtr(-np.log(x) / s)

    def _logcdf(self, x: Any, s: Any) -> Any:
        return special.log_ndtr(np.log(x) / s)

    def _logsf(self, x: Any, s: Any) -> Any:
        return special.log_ndtr(-np.log(x) / s)

    def _ppf(self, q: Any, s: Any) -> Any:
        return np.exp(s * special.ndtri(q))

    def _isf(self, q: Any, s: Any) -> Any:
        return np.exp(-s * special.ndtri(q))


@library("mlirml.stats", "x", "loc", "scale")
class _Uniform(Continuous):
    name = "uniform"

    @staticmethod
    def _support(*shapes: Any) -> tuple[Any, Any]:
        return 0, 1

    def _logarithm(self, x: Any) -> Any:
        return np.zeros_like(x)

    def _density(self, x: Any) -> Any:
        return np.ones_like(x)

    def _cdf(self, x: Any) -> Any:
        return x

    def _sf(self, x: Any) -> Any:
        return 1 - x

    def _ppf(self, q: Any) -> Any:
        return q


@library("mlirml.stats", "x", "b", "loc", "scale")
class _Pareto(Continuous):
    name, shapes = "pareto", ("b",)
    _allowed = staticmethod(_positive)

    @staticmethod
    def _support(*shapes: Any) -> tuple[Any, Any]:
        return 1, INFINITE

    @staticmethod
    def _inner(*shapes: Any) -> Any:
        return 2.0

    def _logarithm(self, x: Any, b: Any) -> Any:
        return np.log(b) - (b + 1) * np.log(x)

    def _density(self, x: Any, b: Any) -> Any:
        return b * x ** (-b - 1)

    def _cdf(self, x: Any, b: Any) -> Any:
        return -np.expm1(-b * np.log(x))

    def _sf(self, x: Any, b: Any) -> Any:
        return x**-b

    def _logsf(self, x: Any, b: Any) -> Any:
        return -b * np.log(x)

    def _ppf(self, q: Any, b: Any) -> Any:
        return np.exp(-np.log1p(-q) / b)

    def _isf(self, q: Any, b: Any) -> Any:
        return q ** (-1 / b)


@library("mlirml.stats", "x", "c", "loc", "scale")
class _Weibull(_OfPositive):
    name, shapes = "weibull_min", ("c",)
    _allowed = staticmethod(_positive)

    def _logarithm(self, x: Any, c: Any) -> Any:
        return np.log(c) + special.xlogy(c - 1, x) - special_power(x, c)

    def _cdf(self, x: Any, c: Any) -> Any:
        return -np.expm1(-special_power(x, c))

    def _sf(self, x: Any, c: Any) -> Any:
        return np.exp(-special_power(x, c))

    def _logcdf(self, x: Any, c: Any) -> Any:
        return log1mexp(special_power(x, c))

    def _logsf(self, x: Any, c: Any) -> Any:
        return -special_power(x, c)

    def _ppf(self, q: Any, c: Any) -> Any:
        return special_power(-np.log1p(-q), 1 / c)

    def _isf(self, q: Any, c: Any) -> Any:
        return special_power(-np.log(q), 1 / c)


@differentiable(
    lambda t, r, x, c: np.where(c == 1, 1, c * x ** (c - 1)) * t,
    lambda t, r, x, c: np.where(r == 0, 0, r * np.log(np.where(r == 0, 1, x))) * t,
)
def special_power(x: Any, c: Any) -> Any:
    """x**c for x >= 0 and positive c, whose derivative by c is 0 at x = 0."""
    return x**c


@library("mlirml.stats", "x", "loc", "scale")
class _Gumbel(Continuous):
    name = "gumbel_r"

    def _logarithm(self, x: Any) -> Any:
        return -x - np.exp(-x)

    def _cdf(self, x: Any) -> Any:
        return np.exp(-np.exp(-x))

    def _sf(self, x: Any) -> Any:
        return -np.expm1(-np.exp(-x))

    def _logcdf(self, x: Any) -> Any:
        return -np.exp(-x)

    def _logsf(self, x: Any) -> Any:
        power = np.exp(-np.minimum(x, 30))
        return np.where(x < 30, log1mexp(power), -x)

    def _ppf(self, q: Any) -> Any:
        return -np.log(-np.log(q))

    def _isf(self, q: Any) -> Any:
        return -np.log(-np.log1p(-q))


@library("mlirml.stats", "x", "loc", "scale")
class _HalfNormal(_OfPositive):
    name = "halfnorm"

    def _logarithm(self, x: Any) -> Any:
        return 0.5 * math.log(2 / math.pi) - 0.5 * x * x

    def _density(self, x: Any) -> Any:
        return math.sqrt(2 / math.pi) * np.exp(-0.5 * x * x)

    def _cdf(self, x: Any) -> Any:
        return special.erf(x * math.sqrt(0.5))

    def _sf(self, x: Any) -> Any:
        return special.erfc(x * math.sqrt(0.5))

    def _logsf(self, x: Any) -> Any:
        return special.log_ndtr(-x) + math.log(2)

    def _ppf(self, q: Any) -> Any:
        return math.sqrt(2) * special.erfinv(q)

    def _isf(self, q: Any) -> Any:
        return math.sqrt(2) * special.erfcinv(q)


def _log_mass(a: Any, b: Any) -> Any:
    """The logarithm of the normal probability of [a, b], computed in the tail that is the smaller one."""
    swapped = a > 0
    low, high = np.where(swapped, -b, a), np.where(swapped, -a, b)
    one, other = special.log_ndtr(low), special.log_ndtr(high)
    across = high > 0  # and low <= 0: 1 - ndtr(low) - ndtr(-high)
    apart = np.log1p(-special.ndtr(np.where(across, low, -1)) - special.ndtr(np.where(across, -high, -1)))
    empty = one == -INFINITE
    difference = other - np.where(empty, other - 1, one)
    near = other + np.where(empty, 0, log1mexp(np.where(across | empty | (difference <= 0), 1, difference)))
    return np.where(across, apart, near)


@library("mlirml.stats", "x", "a", "b", "loc", "scale")
class _TruncatedNormal(Continuous):
    name, shapes = "truncnorm", ("a", "b")

    @staticmethod
    def _allowed(*shapes: Any) -> Any:
        return shapes[0] < shapes[1]

    @classmethod
    def _defaults(cls) -> tuple[float, ...]:
        return (-1.0, 1.0)

    @staticmethod
    def _support(*shapes: Any) -> tuple[Any, Any]:
        return shapes[0], shapes[1]

    @staticmethod
    def _inner(*shapes: Any) -> Any:
        low, high = shapes
        return np.where(np.isinf(low), np.where(np.isinf(high), 0, high - 1), np.where(np.isinf(high), low + 1, low))

    def _logarithm(self, x: Any, a: Any, b: Any) -> Any:
        return -0.5 * x * x - _HALF_LOG_TWO_PI - _log_mass(a, b)

    def _logcdf(self, x: Any, a: Any, b: Any) -> Any:
        return self._nearer(_log_mass(a, x) - _log_mass(a, b), _log_mass(x, b) - _log_mass(a, b))

    def _logsf(self, x: Any, a: Any, b: Any) -> Any:
        return self._nearer(_log_mass(x, b) - _log_mass(a, b), _log_mass(a, x) - _log_mass(a, b))

    @staticmethod
    def _nearer(found: Any, other: Any) -> Any:
        """The logarithm of a share, by that of the rest where this is the smaller one."""
        large = found > -0.5
        return np.where(large, np.log1p(-np.exp(np.where(large, other, -1))), np.where(large, -1, found))

    def _cdf(self, x: Any, a: Any, b: Any) -> Any:
        return np.exp(self._logcdf(x, a, b))

    def _sf(self, x: Any, a: Any, b: Any) -> Any:
        return np.exp(self._logsf(x, a, b))

    def _ppf(self, q: Any, a: Any, b: Any) -> Any:
        return self._between(q, 1 - q, a, b)

    def _isf(self, q: Any, a: Any, b: Any) -> Any:
        return self._between(1 - q, q, a, b)

    @staticmethod
    def _between(lower: Any, upper: Any, a: Any, b: Any) -> Any:
        """The value with these shares of the mass on both sides; NaN where the tail underflows."""
        mass = np.exp(_log_mass(a, b))
        left, right = special.ndtr(a) + lower * mass, special.ndtr(-b) + upper * mass
        nearer = np.minimum(left, right)
        found = special.ndtri(nearer)
        found = np.minimum(np.maximum(np.where(left < right, found, -found), a), b)
        return np.where(nearer < float(np.finfo(nearer.dtype).tiny), math.nan, found)


norm, expon, gamma, chi2, beta, t = _Normal(), _Exponential(), _Gamma(), _ChiSquared(), _Beta(), _StudentT()
laplace, logistic, cauchy, lognorm, uniform = _Laplace(), _Logistic(), _Cauchy(), _LogNormal(), _Uniform()
pareto, weibull_min, gumbel_r, halfnorm = _Pareto(), _Weibull(), _Gumbel(), _HalfNormal()
truncnorm, f = _TruncatedNormal(), _F()
