"""Joining arrays: concatenate, stack and their kin; each writes its parts into one new tensor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from mlirml.core.sizes import same_shape
from mlirml.errors import DTypeError, ShapeError
from mlirml.ir.text.builder import Builder, Operand, Value
from mlirml.ir.text.dtypes import as_dtype, short_name
from mlirml.ops import promotion
from mlirml.ops.reductions import as_value, normalized_axes
from mlirml.ops.registry import ALL, operation


def _joined(b: Builder, name: str, values: list[Value], axis: Any) -> Value:
    if not values:
        raise ShapeError(f"{name}: needs at least one array")
    if not values[0].shape:
        raise ShapeError(f"{name}: 0-d arrays cannot be joined", help="use `np.stack`")
    (dim,) = normalized_axes(name, values[0].shape, axis)
    first = values[0].shape
    for shape in {value.shape: None for value in values}:
        if len(shape) != len(first):
            message = f"{name}: numbers of dimensions differ, {_shown(values)}"
            raise ShapeError(message, help="add an axis with `x[None]`")
        if any(m != n for i, (m, n) in enumerate(zip(shape, first)) if i != dim):
            raise ShapeError(f"{name}: sizes differ outside of axis {dim}, {_shown(values)}")
    shape = tuple(sum(v.shape[dim] for v in values) if i == dim else n for i, n in enumerate(first))
    result, start = b.empty(shape, values[0].dtype), 0
    for value in values:
        offsets = [start if i == dim else 0 for i in range(len(shape))]
        result = b.insert_slice(value, result, offsets, value.shape, [1] * len(shape))
        start += value.shape[dim]
    return result


def _shown(values: Sequence[Value]) -> str:
    return ", ".join(map(str, values))


def _promoted(b: Builder, arrays: Sequence[Operand], dtype: Any) -> list[Value]:
    if not arrays:
        return []
    arrays = [promotion.strong(a) for a in arrays]
    common = promotion.result_type(*arrays)
    if dtype is not None:
        if not np.can_cast(common, as_dtype(dtype), "same_kind"):
            raise DTypeError(f"arrays of dtype {short_name(common)} cannot be joined as {short_name(as_dtype(dtype))}")
        common = as_dtype(dtype)
    return [b.cast(as_value(b, a), common) for a in arrays]


@operation("join", np.concatenate, dtypes=ALL, arrays=-1)
def concat(b: Builder, arrays: Sequence[Operand], axis: Any = 0, out: None = None, *, dtype: Any = None) -> Value:
    """Arrays joined along an axis; None flattens them first."""
    values = _promoted(b, arrays, dtype)
    if axis is None:
        values, axis = [b.reshape(v, (v.size,)) for v in values], 0
    return _joined(b, "concatenate", values, axis)


@operation("join", np.stack, dtypes=ALL, arrays=-1)
def stack(b: Builder, arrays: Sequence[Operand], axis: int = 0, out: None = None, *, dtype: Any = None) -> Value:
    """Arrays of one shape along a new axis."""
    values = _promoted(b, arrays, dtype)
    if values:
        if not all(same_shape(v.shape, values[0].shape) for v in values):
            raise ShapeError(f"stack: shapes differ, {_shown(values)}")
        (dim,) = normalized_axes("stack", (1, *values[0].shape), axis)
        values = [b.reshape(v, (*v.shape[:dim], 1, *v.shape[dim:])) for v in values]
        axis = dim
    return _joined(b, "stack", values, axis)


@operation("join", np.vstack, dtypes=ALL, arrays=-1)
def vstack(b: Builder, tup: Sequence[Operand], *, dtype: Any = None) -> Value:
    """Rows on top of each other; a 1-D array is a row."""
    values = [b.reshape(v, (1, v.size)) if len(v.shape) < 2 else v for v in _promoted(b, tup, dtype)]
    return _joined(b, "vstack", values, 0)


@operation("join", np.hstack, dtypes=ALL, arrays=-1)
def hstack(b: Builder, tup: Sequence[Operand], *, dtype: Any = None) -> Value:
    """Arrays side by side: along axis 1, or axis 0 for 1-D arrays."""
    values = [b.reshape(v, (1,)) if not v.shape else v for v in _promoted(b, tup, dtype)]
    return _joined(b, "hstack", values, 0 if values and len(values[0].shape) == 1 else 1)
