"""Distributions of real numbers that are functions of one uniform number each."""

from __future__ import annotations

from typing import Any

import numpy as np

from mlirml.errors import DTypeError, ShapeError
from mlirml.ir.text.dtypes import is_float
from mlirml.random.keys import as_array, blocks, checked_key, drawing, sizes
from mlirml.random.quantiles import normal_quantile


def float_dtype(name: str, dtype: Any) -> np.dtype:
    """The dtype of a result, f16, bf16, f32 or f64."""
    found: np.dtype = np.dtype(dtype)
    if not is_float(found):
        raise DTypeError(f"{name}: the dtype must be a float, not {found.name}")
    return found


def shape_of(name: str, shape: Any, *parameters: Any) -> tuple[int, ...]:
    """The shape of a result: the one that is asked for, or that of the parameters."""
    shapes = [np.shape(x) for x in parameters]
    try:
        common = np.broadcast_shapes(*shapes)
        wanted = common if shape is None else sizes(name, shape)
        if np.broadcast_shapes(common, wanted) != wanted:
            raise ValueError
    except ValueError:
        given = ", ".join(str(list(s)) for s in shapes)
        raise ShapeError(f"{name}: parameters of shape {given} do not broadcast to {shape!r}") from None
    return wanted


def unit(key: Any, shape: tuple[int, ...], dtype: np.dtype) -> Any:
    """Uniform numbers of [0, 1): multiples of 2**-23 for f32, of 2**-52 for f64."""
    if dtype.itemsize < 8:
        return (blocks(key, shape, "xor") >> np.uint32(9)).astype(np.int32).astype(np.float32) * np.float32(2.0**-23)
    words = blocks(key, shape, "both")
    high = (words >> np.uint64(38)).astype(np.int32).astype(np.float64)
    low = ((words >> np.uint64(12)).astype(np.int32) & np.int32((1 << 26) - 1)).astype(np.float64)
    return high * 2.0**-26 + low * 2.0**-52  # exact; two halves, as processors convert i32 only


def placed(x: Any, loc: Any, scale: Any, dtype: np.dtype) -> Any:
    """`loc + scale * x`, in the dtype."""
    x = x.astype(dtype, copy=False)
    if not (type(scale) in (int, float) and scale == 1):
        x = x * as_array(scale).astype(dtype)
    if not (type(loc) in (int, float) and loc == 0):
        x = x + as_array(loc).astype(dtype)
    return x


@drawing
def uniform(key: Any, shape: Any = None, dtype: Any = np.float64, *, low: Any = 0.0, high: Any = 1.0) -> Any:
    """Uniform numbers of [low, high)."""
    key, dtype = checked_key("uniform", key), float_dtype("uniform", dtype)
    drawn = unit(key, shape_of("uniform", shape, low, high), dtype)
    if type(low) in (int, float) and type(high) in (int, float):
        return placed(drawn, low, high - low, dtype)
    return placed(drawn, low, as_array(high).astype(dtype) - as_array(low).astype(dtype), dtype)


@drawing
def normal(key: Any, shape: Any = None, dtype: Any = np.float64, *, loc: Any = 0.0, scale: Any = 1.0) -> Any:
    """Normal numbers with mean `loc` and standard deviation `scale`."""
    key, dtype = checked_key("normal", key), float_dtype("normal", dtype)
    return placed(standard_normal(key, shape_of("normal", shape, loc, scale), dtype), loc, scale, dtype)


def standard_normal(key: Any, shape: tuple[int, ...], dtype: np.dtype) -> Any:
    """Normal numbers with mean 0 and standard deviation 1: the quantiles of uniform numbers of (-1, 1)."""
    half = 2.0**-24 if dtype.itemsize < 8 else 2.0**-53  # the middle of the interval that rounds to a number
    drawn = unit(key, shape, dtype)
    return normal_quantile((drawn + drawn.dtype.type(half)) * 2 - 1)
