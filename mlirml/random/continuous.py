"""Distributions of real numbers that are functions of one uniform number each."""

from __future__ import annotations

from typing import Any

import numpy as np

from mlirml.errors import ShapeError
from mlirml.ops.error_functions import erf
from mlirml.random.checks import (
    check_real,
    check_vectors,
    computed,
    float_dtype,
    placed,
    refuse,
    refuse_negative,
    shape_of,
    spread,
)
from mlirml.random.keys import as_array, blocks, checked_key, drawing, known_value
from mlirml.random.quantiles import normal_quantile

__all__ = ["exponential", "gumbel", "laplace", "multivariate_normal", "normal", "truncated_normal", "uniform"]


def unit(key: Any, shape: tuple[int, ...], dtype: np.dtype, at: Any = None) -> Any:
    """Uniform numbers of [0, 1): multiples of 2**-23 for f32, of 2**-52 for f64; those `at` positions of an array."""
    if dtype.itemsize < 8:
        return (blocks(key, shape, "xor", at) >> np.uint32(9)).astype(np.int32).astype(np.float32) * np.float32(
            2.0**-23
        )
    pairs = blocks(key, shape, "both", at)
    high = (pairs >> np.uint64(38)).astype(np.int32).astype(np.float64)
    low = ((pairs >> np.uint64(12)).astype(np.int32) & np.int32((1 << 26) - 1)).astype(np.float64)
    return high * 2.0**-26 + low * 2.0**-52  # exact; two halves, as processors convert i32 only


def open_unit(key: Any, shape: tuple[int, ...], dtype: np.dtype, at: Any = None) -> Any:
    """Uniform numbers of (0, 1): the middles of the intervals that `unit` rounds down."""
    drawn = unit(key, shape, dtype, at)
    return drawn + drawn.dtype.type(2.0**-24 if dtype.itemsize < 8 else 2.0**-53)


def standard_normal(key: Any, shape: tuple[int, ...], dtype: np.dtype, at: Any = None) -> Any:
    """Normal numbers with mean 0 and standard deviation 1: the quantiles of uniform numbers of (-1, 1)."""
    return normal_quantile(open_unit(key, shape, dtype, at) * 2 - 1)


def standard_gumbel(key: Any, shape: tuple[int, ...], dtype: np.dtype) -> Any:
    """Numbers with the distribution exp(-exp(-x))."""
    return -np.log(-np.log(open_unit(key, shape, dtype)))


@drawing
def uniform(key: Any, shape: Any = None, dtype: Any = np.float64, *, low: Any = 0.0, high: Any = 1.0) -> Any:
    """Uniform numbers of [low, high)."""
    key, dtype = checked_key("uniform", key), float_dtype("uniform", dtype)
    wanted = shape_of("uniform", shape, low, high)
    for bound in (low, high):
        refuse("uniform", "low and high must be finite", bound, np.isinf)
    if (least := known_value(low)) is not None:
        refuse("uniform", "high cannot be below low", high, lambda value: value < least)
    drawn = unit(key, wanted, dtype)
    if type(low) in (int, float) and type(high) in (int, float):
        return placed(drawn, low, high - low, dtype)
    return placed(drawn, low, as_array(high).astype(dtype) - as_array(low).astype(dtype), dtype)


@drawing
def normal(key: Any, shape: Any = None, dtype: Any = np.float64, *, loc: Any = 0.0, scale: Any = 1.0) -> Any:
    """Normal numbers with mean `loc` and standard deviation `scale`."""
    key, dtype = checked_key("normal", key), float_dtype("normal", dtype)
    refuse_negative("normal", scale=scale)
    return placed(standard_normal(key, shape_of("normal", shape, loc, scale), dtype), loc, scale, dtype)


@drawing
def truncated_normal(key: Any, low: Any, high: Any, shape: Any = None, dtype: Any = np.float64) -> Any:
    """Normal numbers with mean 0 and standard deviation 1 before those outside of [low, high] are left out.

    An interval that lies farther out than 5 (f32) or 8 (f64) on one side has no probability left, and gives its bounds.
    """
    key, dtype = checked_key("truncated_normal", key), float_dtype("truncated_normal", dtype)
    wanted, wide = shape_of("truncated_normal", shape, low, high), computed(dtype)
    least, most = (spread(x, wanted, wide) for x in (low, high))
    refuse("truncated_normal", "low must be below high", least - most, lambda gap: gap >= 0)
    root = wide.type(np.sqrt(2))
    start, stop = (erf.reference(x / root) for x in (least, most))
    inner = normal_quantile(np.clip(start + (stop - start) * open_unit(key, wanted, dtype), *_open_interval(wide)))
    return np.minimum(np.maximum(inner, least), most).astype(dtype)


def _open_interval(dtype: np.dtype) -> tuple[Any, Any]:
    edge = np.nextafter(dtype.type(1), dtype.type(0))
    return -edge, edge


@drawing
def exponential(key: Any, shape: Any = None, dtype: Any = np.float64, *, scale: Any = 1.0) -> Any:
    """Numbers of [0, inf) with density exp(-x / scale) / scale."""
    key, dtype = checked_key("exponential", key), float_dtype("exponential", dtype)
    refuse_negative("exponential", scale=scale)
    return placed(-np.log1p(-unit(key, shape_of("exponential", shape, scale), dtype)), 0, scale, dtype)


@drawing
def gumbel(key: Any, shape: Any = None, dtype: Any = np.float64, *, loc: Any = 0.0, scale: Any = 1.0) -> Any:
    """Numbers with the distribution exp(-exp(-(x - loc) / scale))."""
    key, dtype = checked_key("gumbel", key), float_dtype("gumbel", dtype)
    refuse_negative("gumbel", scale=scale)
    return placed(standard_gumbel(key, shape_of("gumbel", shape, loc, scale), dtype), loc, scale, dtype)


@drawing
def laplace(key: Any, shape: Any = None, dtype: Any = np.float64, *, loc: Any = 0.0, scale: Any = 1.0) -> Any:
    """Numbers with density exp(-abs(x - loc) / scale) / (2 * scale)."""
    key, dtype = checked_key("laplace", key), float_dtype("laplace", dtype)
    refuse_negative("laplace", scale=scale)
    u = open_unit(key, shape_of("laplace", shape, loc, scale), dtype) * 2 - 1
    return placed(-np.sign(u) * np.log1p(-np.abs(u)), loc, scale, dtype)


@drawing
def multivariate_normal(key: Any, mean: Any, cov: Any, shape: Any = None, dtype: Any = np.float64) -> Any:
    """Vectors [*shape, d] of a normal distribution with mean [..., d] and covariance [..., d, d], by Cholesky."""
    name = "multivariate_normal"
    key, dtype = checked_key(name, key), float_dtype(name, dtype)
    wide = computed(dtype)
    check_real(name, mean, cov)
    mean, cov = as_array(mean).astype(wide), as_array(cov).astype(wide)
    check_vectors(name, "the mean", mean)
    if cov.shape[-2:] != mean.shape[-1:] * 2:
        raise ShapeError(f"{name}: a mean {list(mean.shape)} and a covariance {list(cov.shape)} do not fit")
    wanted = shape_of(name, shape, mean[..., 0], cov[..., 0, 0])
    noise = standard_normal(key, (*wanted, mean.shape[-1]), dtype)
    root = np.linalg.cholesky(cov)
    moved = noise @ root.T if root.ndim == 2 else (root @ noise[..., None])[..., 0]
    return (mean + moved).astype(dtype)
