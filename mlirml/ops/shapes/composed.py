"""Views and joins composed of others: turned and split arrays, grids of coordinates, stacks of columns."""

from __future__ import annotations

from typing import Any

import numpy as np

from mlirml.errors import ShapeError
from mlirml.ir.text.dtypes import common_shape
from mlirml.ops.reductions import normalized_axes
from mlirml.ops.registry import ALL, composed


def _least(name: str, x: Any, rank: int) -> None:
    if x.ndim < rank:
        raise ShapeError(f"{name}: needs at least {rank} dimensions, not {x.ndim}")


@composed("view", np.rot90, dtypes=ALL)
def rot90(xp: Any, m: Any, k: int = 1, axes: Any = (0, 1)) -> Any:
    """A plane turned by k right angles, from the first of its axes towards the second."""
    m = xp.asarray(m)
    first, second = (normalized_axes("rot90", m.shape, a)[0] for a in axes)
    if first == second:
        raise ShapeError(f"rot90: axes {tuple(axes)} are the same")
    turns = int(k) % 4
    if turns == 0:
        return m[...]
    if turns == 2:
        return xp.flip(xp.flip(m, first), second)
    return xp.flip(xp.swapaxes(m, first, second), first if turns == 1 else second)


@composed("view", np.flipud, dtypes=ALL)
def flipud(xp: Any, m: Any) -> Any:
    """The rows in reverse order."""
    m = xp.asarray(m)
    _least("flipud", m, 1)
    return xp.flip(m, 0)


@composed("view", np.fliplr, dtypes=ALL)
def fliplr(xp: Any, m: Any) -> Any:
    """The columns in reverse order."""
    m = xp.asarray(m)
    _least("fliplr", m, 2)
    return xp.flip(m, 1)


@composed("view", np.rollaxis, dtypes=ALL)
def rollaxis(xp: Any, a: Any, axis: int, start: int = 0) -> Any:
    """An axis moved before another."""
    a = xp.asarray(a)
    (old,) = normalized_axes("rollaxis", a.shape, axis)
    (new,) = normalized_axes("rollaxis", (1,) * (a.ndim + 1), start + a.ndim if start < 0 else start)
    return xp.moveaxis(a, old, new - 1 if old < new else new)


@composed("view", np.atleast_3d, dtypes=ALL)
def atleast_3d(xp: Any, *arys: Any) -> Any:
    """At least 3 dimensions: new ones around a vector, after those of a matrix."""
    results = []
    for x in map(xp.asarray, arys):
        shape = {0: (1, 1, 1), 1: (1, x.size, 1), 2: (*x.shape, 1)}.get(x.ndim)
        results.append(x if shape is None else x.reshape(shape))
    return results[0] if len(results) == 1 else tuple(results)


@composed("view", np.hsplit, dtypes=ALL)
def hsplit(xp: Any, ary: Any, indices_or_sections: Any) -> Any:
    """Parts side by side: along axis 1, or axis 0 of a vector."""
    ary = xp.asarray(ary)
    _least("hsplit", ary, 1)
    return xp.split(ary, indices_or_sections, 1 if ary.ndim > 1 else 0)


@composed("view", np.vsplit, dtypes=ALL)
def vsplit(xp: Any, ary: Any, indices_or_sections: Any) -> Any:
    """Parts on top of each other, along axis 0."""
    ary = xp.asarray(ary)
    _least("vsplit", ary, 2)
    return xp.split(ary, indices_or_sections, 0)


@composed("view", np.dsplit, dtypes=ALL)
def dsplit(xp: Any, ary: Any, indices_or_sections: Any) -> Any:
    """Parts along axis 2."""
    ary = xp.asarray(ary)
    _least("dsplit", ary, 3)
    return xp.split(ary, indices_or_sections, 2)


if hasattr(np, "unstack"):  # since NumPy 2.1

    @composed("view", np.unstack, dtypes=ALL)
    def unstack(xp: Any, x: Any, /, *, axis: int = 0) -> Any:
        """The slices along an axis."""
        x = xp.asarray(x)
        _least("unstack", x, 1)
        moved = xp.moveaxis(x, axis, 0)
        return tuple(moved[i, ...] for i in range(moved.shape[0]))


@composed("join", np.meshgrid, dtypes=ALL, arrays=-1)
def meshgrid(xp: Any, *xi: Any, copy: bool = True, sparse: bool = False, indexing: str = "xy") -> Any:
    """Grids of coordinates from vectors."""
    if indexing not in ("xy", "ij"):
        raise ShapeError(f"meshgrid: indexing is 'xy' or 'ij', not {indexing!r}")
    count = len(xi)
    order = list(range(count))
    if indexing == "xy" and count > 1:
        order[:2] = 1, 0
    vectors = [xp.asarray(x) for x in xi]
    lined = [v.reshape(tuple(-1 if order[i] == j else 1 for j in range(count))) for i, v in enumerate(vectors)]
    if not sparse:
        shape = common_shape(*(v.shape for v in lined))
        lined = [xp.broadcast_to(v, shape) for v in lined]
    return tuple(v.copy() for v in lined) if copy else tuple(lined)


@composed("join", np.append, dtypes=ALL)
def append(xp: Any, arr: Any, values: Any, axis: Any = None) -> Any:
    """Values appended to an array along an axis; both flattened without one."""
    arr, values = xp.asarray(arr), xp.asarray(values)
    if axis is None:
        return xp.concatenate([arr.reshape(-1), values.reshape(-1)])
    return xp.concatenate([arr, values], axis=axis)


@composed("join", np.column_stack, dtypes=ALL, arrays=-1)
def column_stack(xp: Any, tup: Any) -> Any:
    """Vectors as columns, and matrices, side by side."""
    columns = [x if x.ndim > 1 else x.reshape((x.size, 1)) for x in map(xp.asarray, tup)]
    return xp.concatenate(columns, axis=1)


@composed("join", np.dstack, dtypes=ALL, arrays=-1)
def dstack(xp: Any, tup: Any) -> Any:
    """Arrays joined along axis 2."""
    return xp.concatenate([atleast_3d.build(xp, x) for x in tup], axis=2)
