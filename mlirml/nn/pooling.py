"""Poolings."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from mlirml.errors import DTypeError, ShapeError
from mlirml.nn.define import as_array, composites, floats, from_record, rounded, shown
from mlirml.ops import pooling  # noqa: F401  (makes the records)
from mlirml.ops.registry import NUMBERS
from mlirml.ops.windows import positive

__all__ = [
    "adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_avg_pool3d", "adaptive_max_pool1d", "adaptive_max_pool2d",
    "adaptive_max_pool3d", "avg_pool1d", "avg_pool2d", "avg_pool3d", "lp_pool1d", "lp_pool2d", "lp_pool3d",
    "max_pool1d", "max_pool2d", "max_pool3d",
]  # fmt: skip

max_pool1d = from_record("max_pool1d")
max_pool2d = from_record("max_pool2d")
max_pool3d = from_record("max_pool3d")
avg_pool1d = from_record("avg_pool1d")
avg_pool2d = from_record("avg_pool2d")
avg_pool3d = from_record("avg_pool3d")
adaptive_avg_pool2d = from_record("adaptive_avg_pool2d")


def cell_counts(name: str, rank: int, x: Any, output_size: Any) -> tuple[int, ...]:
    """The checked number of cells along each of the last `rank` dimensions of an adaptive pooling."""
    given = tuple(output_size) if isinstance(output_size, (tuple, list)) else (output_size,) * rank
    if len(x.shape) not in (rank + 1, rank + 2) or 0 in x.shape[-rank:]:
        raise ShapeError(
            f"{name}: the input must be [N, C] and {rank} sizes from 1 on, N may be missing, got {shown(x)}"
        )
    if len(given) != rank:
        raise ShapeError(f"{name}: output_size must be an integer or {rank} of them, got {output_size!r}")
    counts = tuple(size if wanted is None else wanted for size, wanted in zip(x.shape[-rank:], given))
    if any(isinstance(n, bool) or not isinstance(n, (int, np.integer)) or n < 1 for n in counts):
        raise ShapeError(f"{name}: output_size must be integers from 1 on, or None, got {output_size!r}")
    return counts


def cells_reduced(name: str, rank: int, x: Any, output_size: Any, reduce: Callable[..., Any]) -> Any:
    """Each axis reduced over cells that begin at floor(i * n / m) and end at ceil((i + 1) * n / m)."""
    counts = cell_counts(name, rank, x, output_size)
    for axis, count in zip(range(len(x.shape) - rank, len(x.shape)), counts):
        size = x.shape[axis]
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


def _means_of_cells(name: str, rank: int, input: Any, output_size: Any) -> Any:
    (x,), dtype = floats(name, input)
    return rounded(cells_reduced(name, rank, x, output_size, np.mean), dtype)


adaptive_avg_pool1d, adaptive_avg_pool3d = composites(
    _means_of_cells,
    "adaptive_avg_pool{}d",
    {
        1: "The mean of each of `output_size` cells of [N, C, L]; None keeps the size.",
        3: "The mean of each of `output_size` cells of [N, C, D, H, W], a number or three of them; None keeps a size.",
    },
    tolerance=8,
)


def _largest_of_cells(name: str, rank: int, input: Any, output_size: Any) -> Any:
    return cells_reduced(name, rank, _ordered(name, input), output_size, np.max)


adaptive_max_pool1d, adaptive_max_pool2d, adaptive_max_pool3d = composites(
    _largest_of_cells,
    "adaptive_max_pool{}d",
    {
        1: "The largest element of each of `output_size` cells of [N, C, L]; None keeps the size.",
        2: "The largest element of each of `output_size` cells of [N, C, H, W], a number or a pair; None keeps a size.",
        3: "The largest element of each of `output_size` cells of [N, C, D, H, W]; None keeps a size.",
    },
    dtypes=NUMBERS,
)


def _lp_pool(
    name: str, rank: int, input: Any, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False
) -> Any:
    (x,), dtype = floats(name, input)
    if isinstance(norm_type, bool) or not isinstance(norm_type, (int, float)) or not 0 < norm_type < np.inf:
        raise ShapeError(f"{name}: norm_type must be a positive number, got {norm_type!r}")
    pool = (avg_pool1d, avg_pool2d, avg_pool3d)[rank - 1]
    count = math.prod(positive(name, "kernel_size", kernel_size, rank))
    total = pool(x**norm_type, kernel_size, stride, 0, ceil_mode) * count
    empty = total == 0  # where the root has no derivative, 0 is taken for it
    return rounded(np.where(empty, 0, np.where(empty, 1, total) ** (1 / norm_type)), dtype)


lp_pool1d, lp_pool2d, lp_pool3d = composites(
    _lp_pool,
    "lp_pool{}d",
    {
        1: """sum(x ** norm_type) ** (1 / norm_type) of each window of [N, C, L].

    `stride` is the kernel's size by default.
    """,
        2: "As `lp_pool1d`, over [N, C, H, W].",
        3: "As `lp_pool1d`, over [N, C, D, H, W].",
    },
    tolerance=64,
    domain=(0.5, 2.0),
)


def _ordered(name: str, input: Any) -> Any:
    x = as_array(input)
    if x.dtype.kind in "bc":
        raise DTypeError(f"{name}: the input must hold real numbers, got {shown(x)}")
    return x
