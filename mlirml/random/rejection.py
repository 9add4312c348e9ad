"""Distributions drawn by rejection: every element is proposed until all are accepted.

A proposal draws from the key and the number of the iteration, and an accepted element does not change, so that an
element depends neither on the other ones nor on the target.
"""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np

from mlirml.frontend.current import current_trace
from mlirml.random.checks import (
    check_vectors,
    computed,
    float_dtype,
    placed,
    refuse,
    refuse_negative,
    refuse_not_positive,
    repeated,
    shape_of,
    spread,
)
from mlirml.random.continuous import open_unit, standard_normal, unit
from mlirml.random.keys import as_array, checked_key, drawing, fold_in, split
from mlirml.random.proposals import accepted

__all__ = ["beta", "dirichlet", "gamma", "poisson"]

_DOUBLE = np.dtype(np.float64)
_FEW = 10.0


def _differentiable_parts(key: Any, a: Any) -> tuple[Any, Any]:
    """`gamma_parts`, with its derivative by a where derivatives are asked for."""
    trace = current_trace()
    if trace is None or not trace.derivatives:
        return gamma_parts(key, a)
    special = importlib.import_module("mlirml.special.reparameterisation")  # of special functions, above this module
    return special.differentiable_gamma_parts(key, a)


def gamma_parts(key: Any, a: Any) -> tuple[Any, Any]:
    """A gamma number for each a or a + 1, and the logarithm of the factor that makes it one for a.

    G. Marsaglia, W. Tsang: A simple method for generating gamma variables. TOMS 26, 2000.
    """
    shape, dtype = a.shape, a.dtype
    own, below = split(key)
    d = np.where(a < 1, a + 1, a) - dtype.type(1 / 3)
    c = 1 / np.sqrt(9 * d)

    def propose(i: Any, at: Any, d: Any, c: Any) -> tuple[Any, Any]:
        first, second = split(fold_in(own, i))
        x = standard_normal(first, d.shape, dtype, at)
        v = (1 + c * x) ** 3
        safe = np.where(v > 0, v, dtype.type(1))
        drawn = open_unit(second, d.shape, dtype, at)
        return (v > 0) & (np.log(drawn) < 0.5 * x * x + d * (1 - v + np.log(safe))), d * v

    # An infinite parameter is its own number: no proposal for it is accepted.
    start = np.where(a >= 0, a, dtype.type(np.nan))
    result = accepted(propose, (d, c), ~((a > 0) & (a < np.inf)), start)
    factor = np.where(a < 1, np.log(open_unit(below, shape, dtype)) / np.where(a < 1, a, dtype.type(1)), dtype.type(0))
    return result, factor


@drawing
def gamma(key: Any, a: Any, shape: Any = None, dtype: Any = np.float64, *, scale: Any = 1.0) -> Any:
    """Numbers with density proportional to x**(a - 1) * exp(-x / scale); 0 where a is 0, NaN where it is negative."""
    key, dtype = checked_key("gamma", key), float_dtype("gamma", dtype)
    refuse_negative("gamma", a=a, scale=scale)
    result, factor = _differentiable_parts(key, spread(a, shape_of("gamma", shape, a, scale), computed(dtype)))
    return placed(result * np.exp(factor), 0, scale, dtype)


def _log_gamma(key: Any, a: Any) -> Any:
    result, factor = _differentiable_parts(key, a)
    return np.log(result) + factor


@drawing
def beta(key: Any, a: Any, b: Any, shape: Any = None, dtype: Any = np.float64) -> Any:
    """Numbers of [0, 1] with density proportional to x**(a - 1) * (1 - x)**(b - 1)."""
    key, dtype = checked_key("beta", key), float_dtype("beta", dtype)
    refuse_not_positive("beta", a=a, b=b)
    wanted, (first, second) = shape_of("beta", shape, a, b), split(key)
    one, other = (_log_gamma(k, spread(x, wanted, computed(dtype))) for k, x in ((first, a), (second, b)))
    # Where the exponential would be infinite, its derivative would not be a number.
    difference = other - one
    zero = difference >= np.log(np.finfo(difference.dtype).max)
    return np.where(zero, 0, 1 / (1 + np.exp(np.where(zero, 0, difference)))).astype(dtype)


@drawing
def dirichlet(key: Any, alpha: Any, shape: Any = None, dtype: Any = np.float64) -> Any:
    """Vectors [*shape, d] that sum to 1, with density proportional to the product of x**(alpha - 1).

    Elements whose alpha is 0 are 0.
    """
    key, dtype = checked_key("dirichlet", key), float_dtype("dirichlet", dtype)
    alpha = as_array(alpha)
    check_vectors("dirichlet", "alpha", alpha)
    refuse_negative("dirichlet", alpha=alpha)
    wanted = (*shape_of("dirichlet", shape, alpha[..., 0]), alpha.shape[-1])
    logs = _log_gamma(key, spread(alpha, wanted, computed(dtype)))
    largest = np.max(logs, axis=-1, keepdims=True)
    powers = np.exp(logs - np.where(largest == -np.inf, 0, largest))
    total = np.sum(powers, axis=-1, keepdims=True)
    return (powers / np.where(total == 0, 1, total)).astype(dtype)


@drawing
def poisson(key: Any, lam: Any = 1.0, shape: Any = None) -> Any:
    """Numbers of events (i64) where lam are expected; -1 where lam is negative or NaN."""
    key, wanted = checked_key("poisson", key), shape_of("poisson", shape, lam)
    refuse("poisson", "lam must be in [0, 2**62]", lam, lambda value: ~((value >= 0) & (value <= 2.0**62)))
    rate, (first, second) = spread(lam, wanted, _DOUBLE), split(key)
    few = _few_events(first, np.where(rate < _FEW, np.maximum(rate, 0.0), 0.0))
    many = _many_events(second, np.where(rate >= _FEW, rate, np.nan))
    return np.where(rate >= _FEW, many, np.where(rate >= 0, few, -1.0)).astype(np.int64)


def _few_events(key: Any, lam: Any) -> Any:
    """By inversion: the number of sums of probabilities that a uniform number is not below."""
    u = unit(key, lam.shape, _DOUBLE)
    p = np.exp(-lam)

    def add(carry: Any) -> Any:
        i, count, p, total = carry
        more = u >= total
        p = p * lam / i
        return i + 1.0, count + more, p, total + p

    # With lam below 10 the probabilities after the hundredth are below the spacing of the uniform numbers.
    start = as_array(np.float64(1)), np.zeros_like(u), p, p
    return repeated(lambda carry: np.any(u >= carry[3]) & (carry[0] < 100), add, start)[1]


def _log_factorial(k: Any) -> Any:
    """By Stirling's series for k + 7, and the factors between."""
    between = k + 1
    for i in range(2, 8):
        between = between * (k + i)
    z = k + 8
    series = 1 / (12 * z) - 1 / (360 * z**3) + 1 / (1260 * z**5)
    return (z - 0.5) * np.log(z) - z + 0.5 * np.log(2 * np.pi) + series - np.log(between)


def _many_events(key: Any, lam: Any) -> Any:
    """By transformed rejection, for lam of at least 10; where it is NaN, NaN.

    W. Hoermann: The transformed rejection method for generating Poisson random variables. 1993, algorithm PTRS.
    """
    b = 0.931 + 2.53 * np.sqrt(lam)
    a = -0.059 + 0.02483 * b
    log_lam, inverse = np.log(lam), 1.1239 + 1.1328 / (b - 3.4)
    quick = 0.9277 - 3.6224 / (b - 2)

    def propose(i: Any, at: Any, lam: Any, b: Any, a: Any, log_lam: Any, inverse: Any, quick: Any) -> tuple[Any, Any]:
        first, second = split(fold_in(key, i))
        u, v = (open_unit(one, lam.shape, _DOUBLE, at) for one in (first, second))
        u = u - 0.5
        us = 0.5 - np.abs(u)
        k = np.floor((2 * a / us + b) * u + lam + 0.43)
        left = np.log(v) + np.log(inverse) - np.log(a / (us * us) + b)
        exact = (k >= 0) & ((us >= 0.013) | (v <= us)) & (left <= k * log_lam - lam - _log_factorial(np.maximum(k, 0)))
        return ((us >= 0.07) & (v <= quick)) | exact, k

    parameters = (lam, b, a, log_lam, inverse, quick)
    # A seventh of the proposals for lam of 10 are not accepted.
    return accepted(propose, parameters, ~(lam > 0), np.where(lam > 0, 0.0, np.nan), share=4)
