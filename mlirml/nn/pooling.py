"""Poolings."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from mlirml.errors import DTypeError, ShapeError
from mlirml.nn.define import as_array, composite, floats, from_record, rounded, shown
from mlirml.ops import pooling  # noqa: F401  (makes the records)
from mlirml.ops.registry import NUMBERS

max_pool1d = from_record("max_pool1d")
max_pool2d = from_record("max_pool2d")
max_pool3d = from_record("max_pool3d")
avg_pool1d = from_record("avg_pool1d")
avg_pool2d = from_record("avg_pool2d")
avg_pool3d = from_record("avg_pool3d")
adaptive_avg_pool2d = from_record("adaptive_avg_pool2d")


def _adaptive(name: str, rank: int, x: Any, output_size: Any, reduce: Callable[..., Any]) -> Any:
    """Each axis reduced over cells that begin at floor(i * n / m) and end at ceil((i + 1) * n / m)."""
    given = tuple(output_size) if isinstance(output_size, (tuple, list)) else (output_size,) * rank
    if len(x.shape) not in (rank + 1, rank + 2) or 0 in x.shape[-rank:]:
        raise ShapeError(
            f"{name}: the input must be [N, C] and {rank} sizes from 1 on, N may be missing, got {shown(x)}"
        )
    if len(given) != rank:
        raise ShapeError(f"{name}: output_size must be an integer or {rank} of them, got {output_size!r}")
    for axis, wanted in zip(range(len(x.shape) - rank, len(x.shape)), given):
        size = x.shape[axis]
        count = size if wanted is None else wanted
        if isinstance(count, bool) or not isinstance(count, (int, np.integer)) or count < 1:
            raise ShapeError(f"{name}: output_size must be integers from 1 on, or None, got {output_size!r}")
        if count == size:
            continue
        if size % count == 0:
            x = reduce(x.reshape(*x.shape[:axis], count, size // count, *x.shape[axis + 1 :]), axis=axis + 1)
            continue
        cells = [(i * size // count, -(-(i + 1) * size // count)) for i in range(count)]
        front: Any = (slice(None),) * axis
        parts = [(*front, slice(low, high)) for low, high in cells]
        x = np.stack([reduce(x[part], axis=axis) for part in parts], axis)
    return x


@composite(tolerance=8)
def adaptive_avg_pool1d(input: Any, output_size: Any) -> Any:
    """The mean of each of `output_size` cells of [N, C, L]; None keeps the size."""
    (x,), dtype = floats("adaptive_avg_pool1d", input)
    return rounded(_adaptive("adaptive_avg_pool1d", 1, x, output_size, np.mean), dtype)


@composite(tolerance=8)
def adaptive_avg_pool3d(input: Any, output_size: Any) -> Any:
    """The mean of each of `output_size` cells of [N, C, D, H, W], a number or three of them; None keeps a size."""
    (x,), dtype = floats("adaptive_avg_pool3d", input)
    return rounded(_adaptive("adaptive_avg_pool3d", 3, x, output_size, np.mean), dtype)


@composite(dtypes=NUMBERS)
def adaptive_max_pool1d(input: Any, output_size: Any) -> Any:
    """The largest element of each of `output_size` cells of [N, C, L]; None keeps the size."""
    return _adaptive("adaptive_max_pool1d", 1, _ordered("adaptive_max_pool1d", input), output_size, np.max)


@composite(dtypes=NUMBERS)
def adaptive_max_pool2d(input: Any, output_size: Any) -> Any:
    """The largest element of each of `output_size` cells of [N, C, H, W], a number or a pair; None keeps a size."""
    return _adaptive("adaptive_max_pool2d", 2, _ordered("adaptive_max_pool2d", input), output_size, np.max)


@composite(dtypes=NUMBERS)
def adaptive_max_pool3d(input: Any, output_size: Any) -> Any:
    """The largest element of each of `output_size` cells of [N, C, D, H, W]; None keeps a size."""
    return _adaptive("adaptive_max_pool3d", 3, _ordered("adaptive_max_pool3d", input), output_size, np.max)


def _ordered(name: str, input: Any) -> Any:
    x = as_array(input)
    if x.dtype.kind in "bc":
        raise DTypeError(f"{name}: the input must hold real numbers, got {shown(x)}")
    return x
