"""Distributions of integers."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from mlirml import special
from mlirml.ops.functions import library
from mlirml.special.floats import differentiable
from mlirml.special.incomplete_beta import beta_prefix
from mlirml.special.incomplete_gamma import poisson_mass
from mlirml.special.iterations import until_settled
from mlirml.stats.distribution import INFINITE, Discrete
from mlirml.transforms import stop_gradient

__all__ = ["bernoulli", "binom", "geom", "nbinom", "poisson"]


def _smallest(accepts: Callable[[Any], Any], start: Any, low: Any, high: Any) -> Any:
    """The least integer from `low` on for which a condition holds, which then holds for all above, as `high`.

    From `start` on in steps that double, then by bisection.
    """

    def improve(i: Any, state: Any) -> Any:
        below, above, tried, width, _ = state
        found, between = accepts(tried), above - below > 1
        above, below = np.where(between & found, tried, above), np.where(between & ~found, tried, below)
        away = np.where(found, np.where(below < low, tried - width, math.nan), tried + width)
        away = np.where(found | (above == high), away, math.nan)
        middle = np.floor(below + (above - below) / 2)
        tried = np.clip(np.where(np.isnan(away), middle, away), below + 1, above - 1)
        return below, above, tried, 2 * width, (above - below > 1).astype(tried.dtype)

    one = np.ones_like(start)
    low, high = one * low, one * high
    start = np.clip(np.floor(start), low, np.maximum(high - 1, low))
    found = until_settled(improve, (low - 1, high, start, one, (high >= low).astype(start.dtype)), 2000)
    return found[1]


class _Searched(Discrete):
    """A distribution whose quantiles are searched, from those of a normal one on, corrected by the skewness."""

    def _moments(self, *shapes: Any) -> tuple[Any, Any, Any]:
        """Mean, standard deviation, and the third central moment divided by the variance."""
        raise NotImplementedError

    def _search(self, accepts: Callable[..., Any], z: Any, shapes: tuple[Any, ...]) -> Any:
        mean, deviation, skewed = self._moments(*shapes)
        low, high = self._support(*shapes)
        start = mean + deviation * z + skewed * (z * z - 1) / 6
        start = np.where(np.isnan(start), mean, start)
        return _smallest(lambda k: accepts(np.maximum(k, low), *shapes), start, low, high)

    def _ppf(self, q: Any, *shapes: Any) -> Any:
        q, *fixed = (stop_gradient(x) for x in np.broadcast_arrays(q, *shapes))
        return self._search(lambda k, *given: self._cdf(k, *given) >= q, special.ndtri(q), tuple(fixed))

    def _isf(self, q: Any, *shapes: Any) -> Any:
        q, *fixed = (stop_gradient(x) for x in np.broadcast_arrays(q, *shapes))
        return self._search(lambda k, *given: self._sf(k, *given) <= q, -special.ndtri(q), tuple(fixed))


def _probability(p: Any) -> Any:
    return (p >= 0) & (p <= 1)


@differentiable(
    lambda t, y, k, mu: 0 * t, lambda t, y, k, mu: (np.where(k == 0, 0, poisson_mass(np.maximum(k - 1, 0), mu)) - y) * t
)
def _poisson_pmf(k: Any, mu: Any) -> Any:
    zero = mu == 0
    return np.where(zero, np.where(k == 0, 1, np.zeros_like(k)), poisson_mass(k, np.where(zero, 1, mu)))


@library("mlirml.stats", "mu")
class _Poisson(_Searched):
    name, shapes = "poisson", ("mu",)

    @staticmethod
    def _allowed(*shapes: Any) -> Any:
        return (shapes[0] >= 0) & (shapes[0] < INFINITE)

    def _logarithm(self, k: Any, mu: Any) -> Any:
        return special.xlogy(k, mu) - special.gammaln(k + 1) - mu

    def _density(self, k: Any, mu: Any) -> Any:
        return _poisson_pmf(k, mu)

    def _cdf(self, k: Any, mu: Any) -> Any:
        return special.gammaincc(k + 1, mu)

    def _sf(self, k: Any, mu: Any) -> Any:
        return special.gammainc(k + 1, mu)

    def _moments(self, mu: Any) -> tuple[Any, Any, Any]:
        return mu, np.sqrt(mu), 1


@differentiable(
    lambda t, y, k, n, p: 0 * t,
    lambda t, y, k, n, p: 0 * t,
    lambda t, y, k, n, p: n * (_mass(k - 1, n - 1, p) - _mass(k, n - 1, p)) * t,
)
def _binomial_pmf(k: Any, n: Any, p: Any) -> Any:
    return _mass(k, n, p)


def _mass(k: Any, n: Any, p: Any) -> Any:
    """The probability of k of n, 0 for others."""
    inside = (k >= 0) & (k <= n)
    k_, n_ = np.where(inside, k, 0), np.where(inside, n, 1)
    inner = (p > 0) & (p < 1)
    p_ = np.where(inner, p, 0.5)
    found = beta_prefix(k_ + 1, n_ - k_ + 1, p_, 1 - p_) / (p_ * (1 - p_) * (n_ + 1))
    at_end = np.where(k_ == np.where(p <= 0, 0, n_), 1, np.zeros_like(p_))
    return np.where(inside, np.where(inner, found, at_end), 0)


@library("mlirml.stats", "p")
class _Binomial(_Searched):
    name, shapes = "binom", ("n", "p")

    @staticmethod
    def _allowed(*shapes: Any) -> Any:
        n, p = shapes
        return (n >= 0) & (n == np.floor(n)) & (n < INFINITE) & _probability(p)

    @staticmethod
    def _support(*shapes: Any) -> tuple[Any, Any]:
        return 0, shapes[0]

    @staticmethod
    def _inner(*shapes: Any) -> Any:
        return 0.0

    def _logarithm(self, k: Any, n: Any, p: Any) -> Any:
        ways = special.gammaln(n + 1) - special.gammaln(k + 1) - special.gammaln(n - k + 1)
        return ways + special.xlogy(k, p) + special.xlog1py(n - k, -p)

    def _density(self, k: Any, n: Any, p: Any) -> Any:
        return _binomial_pmf(k, n, p)

    def _cdf(self, k: Any, n: Any, p: Any) -> Any:
        return special.betainc(n - k, k + 1, 1 - p)

    def _sf(self, k: Any, n: Any, p: Any) -> Any:
        return special.betainc(k + 1, n - k, p)

    def _moments(self, n: Any, p: Any) -> tuple[Any, Any, Any]:
        return n * p, np.sqrt(n * p * (1 - p)), 1 - 2 * p


@library("mlirml.stats", "p")
class _Bernoulli(Discrete):
    name, shapes = "bernoulli", ("p",)

    @staticmethod
    def _allowed(*shapes: Any) -> Any:
        return _probability(shapes[0])

    @staticmethod
    def _support(*shapes: Any) -> tuple[Any, Any]:
        return 0, 1

    def _logarithm(self, k: Any, p: Any) -> Any:
        return special.xlogy(k, p) + special.xlog1py(1 - k, -p)

    def _density(self, k: Any, p: Any) -> Any:
        return np.where(k == 1, p, 1 - p)

    def _cdf(self, k: Any, p: Any) -> Any:
        return 1 - p

    def _sf(self, k: Any, p: Any) -> Any:
        return p

    def _ppf(self, q: Any, p: Any) -> Any:
        return (q > 1 - p).astype(q.dtype)


@library("mlirml.stats", "p")
class _Geometric(Discrete):
    name, shapes = "geom", ("p",)

    @staticmethod
    def _allowed(*shapes: Any) -> Any:
        return (shapes[0] > 0) & (shapes[0] <= 1)

    @staticmethod
    def _support(*shapes: Any) -> tuple[Any, Any]:
        return 1, INFINITE

    def _logarithm(self, k: Any, p: Any) -> Any:
        return special.xlog1py(k - 1, -p) + np.log(p)

    def _cdf(self, k: Any, p: Any) -> Any:
        return -np.expm1(np.log1p(-p) * k)

    def _sf(self, k: Any, p: Any) -> Any:
        return np.exp(np.log1p(-p) * k)

    def _logsf(self, k: Any, p: Any) -> Any:
        return k * np.log1p(-p)

    def _ppf(self, q: Any, p: Any) -> Any:
        found = np.maximum(np.ceil(np.log1p(-q) / np.log1p(-p)), 1)
        before = np.maximum(found - 1, 1)
        return np.where(self._cdf(before, p) >= q, before, found)


@differentiable(
    lambda t, y, k, n, p: 0 * t,
    lambda t, y, k, n, p: y * (special.digamma(k + n) - special.digamma(n) + np.log(p)) * t,
    lambda t, y, k, n, p: y * (n / p - np.where(k == 0, 0, k / np.where(k == 0, 1, 1 - p))) * t,
)
def _negative_binomial_pmf(k: Any, n: Any, p: Any) -> Any:
    certain = p == 1
    p_ = np.where(certain, 0.5, p)
    found = beta_prefix(n, k + 1, p_, 1 - p_) / ((1 - p_) * (n + k))
    return np.where(certain, np.where(k == 0, 1, np.zeros_like(p_)), found)


@library("mlirml.stats", "n", "p")
class _NegativeBinomial(_Searched):
    name, shapes = "nbinom", ("n", "p")

    @staticmethod
    def _allowed(*shapes: Any) -> Any:
        n, p = shapes
        return (n > 0) & (n < INFINITE) & (p > 0) & (p <= 1)

    def _logarithm(self, k: Any, n: Any, p: Any) -> Any:
        ways = special.gammaln(n + k) - special.gammaln(k + 1) - special.gammaln(n)
        return ways + n * np.log(p) + special.xlog1py(k, -p)

    def _density(self, k: Any, n: Any, p: Any) -> Any:
        return _negative_binomial_pmf(k, n, p)

    def _cdf(self, k: Any, n: Any, p: Any) -> Any:
        return special.betainc(n, k + 1, p)

    def _sf(self, k: Any, n: Any, p: Any) -> Any:
        return special.betainc(k + 1, n, 1 - p)

    def _moments(self, n: Any, p: Any) -> tuple[Any, Any, Any]:
        return n * (1 - p) / p, np.sqrt(n * (1 - p)) / p, (2 - p) / p


poisson, binom, bernoulli, geom, nbinom = _Poisson(), _Binomial(), _Bernoulli(), _Geometric(), _NegativeBinomial()
