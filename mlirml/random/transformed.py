"""Distributions of NumPy's generator that are functions of uniform, normal and gamma numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from mlirml.random.checks import (
    check_real,
    check_vectors,
    known_trials,
    refuse,
    refuse_negative,
    refuse_no_probability,
    refuse_not_positive,
    shape_of,
)
from mlirml.random.continuous import exponential, normal, open_unit, unit
from mlirml.random.keys import as_array, split
from mlirml.random.rejection import gamma, poisson

_DOUBLE = np.dtype(np.float64)
_MOST = float(2**63 - 1024)
"""The greatest f64 that an i64 holds."""


def lognormal(key: Any, mean: Any, sigma: Any, size: Any) -> Any:
    """The exponentials of normal numbers."""
    refuse_negative("lognormal", sigma=sigma)
    return np.exp(normal(key, size, loc=mean, scale=sigma))


def weibull(key: Any, a: Any, size: Any) -> Any:
    """Powers 1 / a of exponential numbers."""
    refuse_not_positive("weibull", a=a)
    return exponential(key, shape_of("weibull", size, a)) ** (1 / as_array(a))


def rayleigh(key: Any, scale: Any, size: Any) -> Any:
    """The lengths of vectors of two normal numbers of this standard deviation."""
    refuse_negative("rayleigh", scale=scale)
    return as_array(scale) * np.sqrt(2 * exponential(key, shape_of("rayleigh", size, scale)))


def logistic(key: Any, loc: Any, scale: Any, size: Any) -> Any:
    """Numbers with the distribution 1 / (1 + exp(-(x - loc) / scale))."""
    refuse_negative("logistic", scale=scale)
    u = open_unit(key, shape_of("logistic", size, loc, scale), _DOUBLE)
    return as_array(loc) + as_array(scale) * np.log(u / (1 - u))


def pareto(key: Any, a: Any, size: Any) -> Any:
    """Numbers with density a / (1 + x)**(a + 1)."""
    refuse_not_positive("pareto", a=a)
    return np.expm1(exponential(key, shape_of("pareto", size, a)) / as_array(a))


def power(key: Any, a: Any, size: Any) -> Any:
    """Numbers of [0, 1] with density a * x**(a - 1)."""
    refuse_not_positive("power", a=a)
    return open_unit(key, shape_of("power", size, a), _DOUBLE) ** (1 / as_array(a))


def standard_cauchy(key: Any, size: Any) -> Any:
    """Numbers with density 1 / (pi * (1 + x**2))."""
    return np.tan(np.pi * (open_unit(key, shape_of("standard_cauchy", size), _DOUBLE) - 0.5))


def triangular(key: Any, left: Any, mode: Any, right: Any, size: Any) -> Any:
    """Numbers with a density that rises linearly from `left` to `mode` and falls to `right`."""
    wanted = shape_of("triangular", size, left, mode, right)
    left, mode, right = (as_array(x).astype(_DOUBLE) for x in (left, mode, right))
    refuse("triangular", "left <= mode <= right and left < right are needed", mode - left, lambda rise: rise < 0)
    refuse("triangular", "left <= mode <= right and left < right are needed", right - mode, lambda fall: fall < 0)
    refuse("triangular", "left <= mode <= right and left < right are needed", right - left, lambda base: base == 0)
    u, base = unit(key, wanted, _DOUBLE), right - left
    rising = u * base <= mode - left
    # The root that is not chosen is that of 0, so that no derivative is infinite times 0.
    root = np.sqrt(np.where(rising, u * (mode - left), (1 - u) * (right - mode)) * base)
    return np.where(rising, left + root, right - root)


def chisquare(key: Any, df: Any, size: Any) -> Any:
    """Sums of the squares of `df` normal numbers."""
    refuse_not_positive("chisquare", df=df)
    return gamma(key, as_array(df) / 2, size, scale=2.0)


def f(key: Any, dfnum: Any, dfden: Any, size: Any) -> Any:
    """Quotients of two means of squares of normal numbers."""
    refuse_not_positive("f", dfnum=dfnum, dfden=dfden)
    wanted, (first, second) = shape_of("f", size, dfnum, dfden), split(key)
    return (chisquare(first, dfnum, wanted) / as_array(dfnum)) / (chisquare(second, dfden, wanted) / as_array(dfden))


def standard_t(key: Any, df: Any, size: Any) -> Any:
    """Normal numbers divided by the root of a mean of `df` squares of normal numbers."""
    refuse_not_positive("standard_t", df=df)
    wanted, (first, second) = shape_of("standard_t", size, df), split(key)
    return normal(first, wanted) / np.sqrt(chisquare(second, df, wanted) / as_array(df))


def wald(key: Any, mean: Any, scale: Any, size: Any) -> Any:
    """Numbers with the inverse Gaussian distribution.

    J. R. Michael, W. R. Schucany, R. W. Haas: Generating random variates using transformations with multiple roots.
    The American Statistician 30, 1976.
    """
    refuse_not_positive("wald", mean=mean, scale=scale)
    wanted, (first, second) = shape_of("wald", size, mean, scale), split(key)
    mean, scale = as_array(mean), as_array(scale)
    y = mean * normal(first, wanted) ** 2 / (2 * scale)
    # The smaller root is mean * (1 + y - sqrt(y * (y + 2))), without the cancellation.
    small = mean / (1 + y + np.sqrt(y * (y + 2)))
    return np.where(unit(second, wanted, _DOUBLE) <= mean / (mean + small), small, mean * (mean / small))


def geometric(key: Any, p: Any, size: Any) -> Any:
    """The number of trials (i64) until one succeeds, which it does with probability p."""
    refuse_not_positive("geometric", p=p)
    refuse_no_probability("geometric", p=p)
    drawn = exponential(key, shape_of("geometric", size, p))
    return (np.floor(np.minimum(drawn / -np.log1p(-as_array(p)), _MOST)) + 1).astype(np.int64)


def negative_binomial(key: Any, n: Any, p: Any, size: Any) -> Any:
    """The number of failures (i64) before the n-th success: Poisson numbers, gamma numbers of which are expected."""
    refuse_not_positive("negative_binomial", n=n, p=p)
    refuse_no_probability("negative_binomial", p=p)
    wanted, (first, second) = shape_of("negative_binomial", size, n, p), split(key)
    p = as_array(p)
    return poisson(second, gamma(first, n, wanted) * ((1 - p) / p))


def multinomial(key: Any, n: Any, pvals: Any, size: Any) -> Any:
    """The number of occurrences of each of k results in n trials (i64), [*size, k], for n that is known."""
    check_real("multinomial", pvals)
    trials, pvals = known_trials("multinomial", n), as_array(pvals)
    check_vectors("multinomial", "pvals", pvals)
    refuse_no_probability("multinomial", pvals=pvals)
    refuse("multinomial", "pvals sum to more than 1", pvals, lambda value: value[..., :-1].sum(-1) > 1 + 1e-12)
    wanted = shape_of("multinomial", size, pvals[..., 0])
    u = unit(key, (*wanted, trials), _DOUBLE)
    below = np.sum(u[..., None, :] < np.cumsum(pvals, axis=-1)[..., :-1, None], axis=-1, dtype=np.int64)
    ends = np.zeros((*wanted, 1), np.int64), np.full((*wanted, 1), trials)
    return np.diff(np.concatenate([ends[0], below, ends[1]], axis=-1), axis=-1)
