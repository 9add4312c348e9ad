"""Basic indexing: Python index expressions as view operations, checked against static shapes."""

from __future__ import annotations

from typing import Any

import numpy as np

from mlirml.dialects.ops.views import Reshape, Slice, ViewOp
from mlirml.errors import IndexOutOfBoundsError, ShapeError, UnsupportedSyntaxError


def index_views(shape: tuple[int, ...], index: Any) -> list[ViewOp]:
    """The views that `x[index]` takes of an array of this shape; integers, slices, `...` and `None` only."""
    items = index if isinstance(index, tuple) else (index,)
    used = sum(1 for item in items if item is not None and item is not Ellipsis)
    if used > len(shape):
        rank = "1 dimension" if len(shape) == 1 else f"{len(shape)} dimensions"
        raise IndexOutOfBoundsError(f"too many indices: {used} for an array of {rank}, shape {list(shape)}")
    if sum(1 for item in items if item is Ellipsis) > 1:
        raise ShapeError("an index can have only one ellipsis (`...`)")
    if not any(item is Ellipsis for item in items):
        items = (*items, Ellipsis)
    ranges: list[tuple[int, int, int]] = []  # start, size and step of each dimension of the array
    drop: list[int] = []
    result: list[int] = []
    for item in items:
        axis = len(ranges)
        if item is None:
            result.append(1)
        elif item is Ellipsis:
            rest = shape[axis : axis + len(shape) - used]
            ranges += [(0, n, 1) for n in rest]
            result += rest
        elif isinstance(item, slice):
            start, stop, step = _slice_bounds(item, shape[axis])
            count = len(range(start, stop, step))
            ranges.append((start if count else 0, count, step if count > 1 else 1))
            result.append(count)
        else:
            ranges.append((_position(item, shape[axis], axis), 1, 1))
            drop.append(axis)
    starts, sizes, steps = (tuple(r[i] for r in ranges) for i in range(3))
    kept = tuple(n for i, n in enumerate(sizes) if i not in drop)
    views: list[ViewOp] = [Slice(kept, starts, sizes, steps, tuple(drop))]
    if tuple(result) != kept:
        views.append(Reshape(tuple(result)))
    return views


def _slice_bounds(item: slice, size: int) -> tuple[int, int, int]:
    for bound in (item.start, item.stop, item.step):
        if bound is not None and not hasattr(bound, "__index__"):
            raise ShapeError(f"slice bounds must be integers or None, got {bound!r}")
    if item.step is not None and int(item.step.__index__()) == 0:
        raise ShapeError("slice step cannot be zero")
    return item.indices(size)


def _position(item: Any, size: int, axis: int) -> int:
    if isinstance(item, (bool, np.bool_)):
        raise UnsupportedSyntaxError("indexing with True or False is not compiled", help="use `x[None]` to add an axis")
    if isinstance(item, (list, np.ndarray)) and np.ndim(item) > 0:
        raise UnsupportedSyntaxError(
            "indexing with an integer array or a list is not compiled yet",
            help="for a few positions write `np.stack([x[i] for i in positions])`",
        )
    try:
        number = int(item.__index__())
    except (AttributeError, TypeError):
        raise ShapeError(f"an index must be an integer, a slice, `...` or None, got {item!r}") from None
    if not -size <= number < size:
        raise IndexOutOfBoundsError(
            f"index {number} is out of bounds for axis {axis} with size {size}",
            help=f"an index lies between {-size} and {size - 1}" if size else "the axis is empty",
        )
    return number % size
