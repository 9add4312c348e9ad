"""Distributions of NumPy's generator that are functions of uniform, normal and gamma numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from mlirml.errors import UnsupportedSyntaxError
from mlirml.frontend.current import current_trace
from mlirml.random.checks import (
    refuse,
    refuse_negative,
    refuse_no_probability,
    refuse_not_positive,
    shape_of,
    spread,
)
from mlirml.random.continuous import exponential, normal, open_unit, unit
from mlirml.random.keys import as_array, fold_in, known_value, split
from mlirml.random.proposals import accepted
from mlirml.random.rejection import gamma, poisson

_DOUBLE = np.dtype(np.float64)
_MOST = float(2**63 - 1024)
"""The greatest f64 that an i64 holds."""


def lognormal(key: Any, mean: Any = 0.0, sigma: Any = 1.0, size: Any = None) -> Any:
    """The exponentials of normal numbers."""
    refuse_negative("lognormal", sigma=sigma)
    return np.exp(normal(key, size, loc=mean, scale=sigma))


def weibull(key: Any, a: Any, size: Any = None) -> Any:
    """Powers 1 / a of exponential numbers."""
    refuse_negative("weibull", a=a)
    drawn, a = exponential(key, shape_of("weibull", size, a)), as_array(a)
    return np.where(a == 0, 0.0, drawn ** (1 / np.where(a == 0, 1, a)))


def rayleigh(key: Any, scale: Any = 1.0, size: Any = None) -> Any:
    """The lengths of vectors of two normal numbers of this standard deviation."""
    refuse_negative("rayleigh", scale=scale)
    return as_array(scale) * np.sqrt(2 * exponential(key, shape_of("rayleigh", size, scale)))


def logistic(key: Any, loc: Any = 0.0, scale: Any = 1.0, size: Any = None) -> Any:
    """Numbers with the distribution 1 / (1 + exp(-(x - loc) / scale))."""
    refuse_negative("logistic", scale=scale)
    u = open_unit(key, shape_of("logistic", size, loc, scale), _DOUBLE)
    return as_array(loc) + as_array(scale) * np.log(u / (1 - u))


def pareto(key: Any, a: Any, size: Any = None) -> Any:
    """Numbers with density a / (1 + x)**(a + 1)."""
    refuse_not_positive("pareto", a=a)
    return np.expm1(exponential(key, shape_of("pareto", size, a)) / as_array(a))


def power(key: Any, a: Any, size: Any = None) -> Any:
    """Numbers of [0, 1] with density a * x**(a - 1)."""
    refuse_not_positive("power", a=a)
    return open_unit(key, shape_of("power", size, a), _DOUBLE) ** (1 / as_array(a))


def standard_cauchy(key: Any, size: Any = None) -> Any:
    """Numbers with density 1 / (pi * (1 + x**2))."""
    return np.tan(np.pi * (open_unit(key, shape_of("standard_cauchy", size), _DOUBLE) - 0.5))


def triangular(key: Any, left: Any, mode: Any, right: Any, size: Any = None) -> Any:
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


def chisquare(key: Any, df: Any, size: Any = None) -> Any:
    """Sums of the squares of `df` normal numbers."""
    refuse_not_positive("chisquare", df=df)
    return gamma(key, as_array(df) / 2, size, scale=2.0)


def noncentral_chisquare(key: Any, df: Any, nonc: Any, size: Any = None) -> Any:
    """Sums of the squares of `df` normal numbers whose squared means sum to `nonc`.

    One of the normal numbers has the mean and the others are a gamma number; where df may be 1 or less, gamma numbers
    of a Poisson number of degrees more.
    """
    refuse_not_positive("noncentral_chisquare", df=df)
    refuse_negative("noncentral_chisquare", nonc=nonc)
    wanted, (first, second) = shape_of("noncentral_chisquare", size, df, nonc), split(key)
    degrees, df, nonc = known_value(df), as_array(df), as_array(nonc)
    if degrees is not None and np.all(degrees > 1):
        return chisquare(first, df - 1, wanted) + (normal(second, wanted) + np.sqrt(nonc)) ** 2
    trace = current_trace()
    if trace is not None and trace.derivatives and known_value(nonc) is None:
        raise UnsupportedSyntaxError(
            "noncentral_chisquare: the derivative by `nonc` needs a df that is known and above 1"
        )
    return chisquare(first, df + 2 * poisson(second, np.broadcast_to(nonc / 2, wanted)), wanted)


def f(key: Any, dfnum: Any, dfden: Any, size: Any = None) -> Any:
    """Quotients of two means of squares of normal numbers."""
    refuse_not_positive("f", dfnum=dfnum, dfden=dfden)
    wanted, (first, second) = shape_of("f", size, dfnum, dfden), split(key)
    return (chisquare(first, dfnum, wanted) / as_array(dfnum)) / (chisquare(second, dfden, wanted) / as_array(dfden))


def noncentral_f(key: Any, dfnum: Any, dfden: Any, nonc: Any, size: Any = None) -> Any:
    """Quotients of two means of squares of normal numbers; the squared means of those of the first sum to `nonc`."""
    refuse_not_positive("noncentral_f", dfnum=dfnum, dfden=dfden)
    refuse_negative("noncentral_f", nonc=nonc)
    wanted, (first, second) = shape_of("noncentral_f", size, dfnum, dfden, nonc), split(key)
    over = noncentral_chisquare(first, dfnum, nonc, wanted) / as_array(dfnum)
    return over / (chisquare(second, dfden, wanted) / as_array(dfden))


def standard_t(key: Any, df: Any, size: Any = None) -> Any:
    """Normal numbers divided by the root of a mean of `df` squares of normal numbers."""
    refuse_not_positive("standard_t", df=df)
    wanted, (first, second) = shape_of("standard_t", size, df), split(key)
    return normal(first, wanted) / np.sqrt(chisquare(second, df, wanted) / as_array(df))


def wald(key: Any, mean: Any, scale: Any, size: Any = None) -> Any:
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


def geometric(key: Any, p: Any, size: Any = None) -> Any:
    """The number of trials (i64) until one succeeds, which it does with probability p."""
    refuse_not_positive("geometric", p=p)
    refuse_no_probability("geometric", p=p)
    drawn = exponential(key, shape_of("geometric", size, p))
    return (np.floor(np.minimum(drawn / -np.log1p(-as_array(p)), _MOST)) + 1).astype(np.int64)


def negative_binomial(key: Any, n: Any, p: Any, size: Any = None) -> Any:
    """The number of failures (i64) before the n-th success: Poisson numbers, gamma numbers of which are expected."""
    refuse_not_positive("negative_binomial", n=n, p=p)
    refuse_no_probability("negative_binomial", p=p)
    wanted, (first, second) = shape_of("negative_binomial", size, n, p), split(key)
    p = as_array(p)
    return poisson(second, gamma(first, n, wanted) * ((1 - p) / p))


def vonmises(key: Any, mu: Any, kappa: Any, size: Any = None) -> Any:
    """Angles of [-pi, pi] with density proportional to exp(kappa * cos(x - mu)).

    D. J. Best, N. I. Fisher: Efficient simulation of the von Mises distribution. Applied Statistics 28, 1979. The
    proposals are of a wrapped Cauchy distribution, from the tangents of half the angles, so that nothing cancels.
    """
    refuse_negative("vonmises", kappa=kappa)
    wanted = shape_of("vonmises", size, mu, kappa)
    kappa = spread(kappa, wanted, _DOUBLE)
    root = np.hypot(1, 2 * kappa)
    r = 1 + root
    near = np.sqrt(r) * (np.sqrt(r) + np.sqrt(2))
    rho, rest = 2 * kappa / near, (1 + 1 / (root + 2 * kappa) + np.sqrt(2 * r)) / near  # their sum is 1
    slope, least = rest / (1 + rho), rest * rest * near / 4

    def propose(i: Any, at: Any, kappa: Any, slope: Any, least: Any) -> tuple[Any, Any]:
        first, second = split(fold_in(key, i))
        half = np.arctan(slope * np.tan(np.pi * (open_unit(first, kappa.shape, _DOUBLE, at) - 0.5)))
        y, v = least + 2 * kappa * np.sin(half) ** 2, open_unit(second, kappa.shape, _DOUBLE, at)
        return np.log(y / v) + 1 >= y, 2 * half

    has_density = kappa < np.inf
    start = np.where(kappa == np.inf, 0.0, np.nan)
    angle = as_array(mu) + accepted(propose, (kappa, slope, least), ~((kappa >= 0) & has_density), start, share=2)
    return np.clip(angle - 2 * np.pi * np.floor((angle + np.pi) / (2 * np.pi)), -np.pi, np.pi)


def zipf(key: Any, a: Any, size: Any = None) -> Any:
    """Numbers (i64) from 1 on with probabilities proportional to x**-a; -1 where a is not above 1.

    L. Devroye: Non-uniform random variate generation. 1986, page 551.
    """
    refuse("zipf", "a must be above 1", a, lambda value: ~(value > 1))
    a = spread(a, shape_of("zipf", size, a), _DOUBLE)
    power = a - 1
    steep = power >= 1000  # all are 1, as two to this power would be infinite
    scale = 2.0 ** np.where(steep, 1.0, power)

    def propose(i: Any, at: Any, power: Any, scale: Any) -> tuple[Any, Any]:
        first, second = split(fold_in(key, i))
        x = np.floor(open_unit(first, power.shape, _DOUBLE, at) ** (-1 / power))
        fits = x <= _MOST
        t = (1 + 1 / x) ** power
        v = open_unit(second, power.shape, _DOUBLE, at)
        return fits & (v * x * (t - 1) / (scale - 1) <= t / scale), np.where(fits, x, 1.0)

    start = np.where(steep, 1.0, -1.0)
    return accepted(propose, (power, scale), steep | ~(power > 0), start, share=2).astype(np.int64)


def logseries(key: Any, p: Any, size: Any = None) -> Any:
    """Numbers (i64) from 1 on with probabilities proportional to p**x / x; -1 where p is not in [0, 1).

    A. W. Kemp: Efficient generation of logarithmically distributed pseudo-random variables. Applied Statistics 30,
    1981.
    """
    refuse("logseries", "p must be in [0, 1)", p, lambda value: ~((value >= 0) & (value < 1)))
    wanted, (first, second) = shape_of("logseries", size, p), split(key)
    p = spread(p, wanted, _DOUBLE)
    is_share = (p >= 0) & (p < 1)
    below = np.log1p(-np.where(is_share, p, 0.5)) * open_unit(first, wanted, _DOUBLE)
    # log(1 - exp(below)) without cancellation
    log_q = np.where(below < -0.5, np.log1p(-np.exp(below)), np.log(-np.expm1(below)))
    drawn = np.floor(np.minimum(np.log(open_unit(second, wanted, _DOUBLE)) / log_q, _MOST)) + 1
    return np.where(is_share, drawn, -1.0).astype(np.int64)
