"""Creation of arrays from dynamic values: ranges of numbers, blocks, windows."""

from __future__ import annotations

from typing import Any

import numpy as np

from mlirml.core.sizes import is_size
from mlirml.errors import DTypeError, ShapeError
from mlirml.ops.numeric import promoted
from mlirml.ops.reductions import normalized_axes
from mlirml.ops.registry import ALL, NO_COMPLEX_ORDER, composed
from mlirml.ops.shapes.rearrange import known

_BUT_BF16 = tuple(d for d in ALL if d != "bf16")


def _count(name: str, num: Any) -> int:
    count = int(known(name, "num", num))
    if count < 0:
        raise ShapeError(f"{name}: num cannot be negative, got {count}")
    return count


@composed("creation", np.linspace, dtypes=ALL, arrays=2, tolerance=4)
def linspace(
    xp: Any,
    start: Any,
    stop: Any,
    num: Any = 50,
    endpoint: bool = True,
    retstep: bool = False,
    dtype: Any = None,
    axis: int = 0,
    *,
    device: Any = None,
) -> Any:
    """`num` numbers from start to stop, evenly spaced along a new axis."""
    count = _count("linspace", num)
    between = np.result_type(*(promoted(xp, x) for x in (start, stop)), 1.0)
    start, stop = (xp.asarray(x).astype(between) for x in (start, stop))
    parts = count - 1 if endpoint else count
    delta = xp.subtract(stop, start)
    steps = xp.arange(count, dtype=between).reshape((count,) + (1,) * delta.ndim)
    step = delta / parts if parts > 0 else xp.full((), np.nan, dtype=between)
    # Where the step vanishes, the shares are scaled instead.
    grown = xp.where(step == 0, (steps / parts) * delta, steps * step) if parts > 0 else steps * delta
    line = xp.broadcast_to(grown + start, (count, *delta.shape))
    if endpoint and count > 1:
        last = xp.broadcast_to(stop.astype(line.dtype), delta.shape)
        line = xp.concatenate([line[:-1], last[None]], axis=0)
    wanted = between if dtype is None else np.dtype(dtype)
    if np.issubdtype(wanted, np.integer):
        line = xp.floor(line)
    result = xp.moveaxis(line.astype(wanted), 0, axis) if axis else line.astype(wanted)
    return (result, step) if retstep else result


@composed("creation", np.logspace, dtypes=ALL, gaps=NO_COMPLEX_ORDER, arrays=2, tolerance=64)
def logspace(
    xp: Any,
    start: Any,
    stop: Any,
    num: Any = 50,
    endpoint: bool = True,
    base: Any = 10.0,
    dtype: Any = None,
    axis: int = 0,
) -> Any:
    """`num` powers of the base, from base**start to base**stop."""
    if np.iscomplexobj(start) or np.iscomplexobj(stop):
        raise DTypeError("logspace: not compiled for complex numbers")
    exponents = linspace.build(xp, start, stop, num, endpoint, axis=axis)
    result = xp.power(xp.asarray(base).astype(exponents.dtype), exponents)
    return result if dtype is None else result.astype(dtype)


@composed("creation", np.geomspace, dtypes=_BUT_BF16, gaps=NO_COMPLEX_ORDER, arrays=2, domain=(0.5, 3), tolerance=64)
def geomspace(
    xp: Any, start: Any, stop: Any, num: Any = 50, endpoint: bool = True, dtype: Any = None, axis: int = 0
) -> Any:
    """`num` numbers of f64 from start to stop with equal quotients along a new axis; NaN where their signs differ."""
    if np.iscomplexobj(start) or np.iscomplexobj(stop):
        raise DTypeError("geomspace: not compiled for complex numbers")
    if any(xp.asarray(x).dtype.name == "bfloat16" for x in (start, stop)):
        raise DTypeError("geomspace: not compiled for bf16, as in NumPy")
    count = _count("geomspace", num)
    start, stop = xp.broadcast_arrays(*(xp.asarray(x).astype(np.float64) for x in (start, stop)))
    sign = xp.sign(start)
    exponents = (xp.log10(start * sign), xp.log10(stop * sign))
    line = logspace.build(xp, *exponents, count, endpoint) * sign
    ends = [line[:0], start[None], line[1:]] if count else [line]
    if count > 1 and endpoint:
        ends = [start[None], line[1:-1], stop[None]]
    line = xp.concatenate(ends, axis=0)
    result = line if dtype is None else line.astype(dtype)
    return xp.moveaxis(result, 0, axis) if axis else result


@composed("join", np.block, dtypes=ALL, arrays=-1)
def block(xp: Any, arrays: Any) -> Any:
    """Arrays in nested lists side by side: along the last axis innermost, the one before it in the list around."""
    depth, leaves = 0, arrays
    while isinstance(leaves, list):
        if not leaves:
            raise ShapeError("block: a list is empty")
        depth, leaves = depth + 1, leaves[0]
    rank = max([depth, *(np.ndim(x) for x in _flat(arrays))])

    def joined(tree: Any, level: int) -> Any:
        if isinstance(tree, list) != (level < depth):
            raise ShapeError("block: the lists are nested to different depths")
        if not isinstance(tree, list):
            x = xp.asarray(tree)
            return x.reshape((1,) * (rank - x.ndim) + x.shape)
        return xp.concatenate([joined(item, level + 1) for item in tree], axis=rank - depth + level)

    result = joined(arrays, 0)
    return result.copy() if not depth else result


def _flat(tree: Any) -> list[Any]:
    return [x for item in tree for x in _flat(item)] if isinstance(tree, list) else [tree]


@composed("rearrangement", np.lib.stride_tricks.sliding_window_view, dtypes=ALL)
def sliding_window_view(
    xp: Any, x: Any, window_shape: Any, axis: Any = None, *, subok: bool = False, writeable: bool = False
) -> Any:
    """The sliding windows of given sizes along axes, in new axes after the others."""
    x = xp.asarray(x)
    sizes = tuple(window_shape) if isinstance(window_shape, (tuple, list)) else (window_shape,)
    listed = range(x.ndim) if axis is None else axis if isinstance(axis, (tuple, list)) else (axis,)
    axes = [normalized_axes("sliding_window_view", x.shape, a)[0] for a in listed]
    if len(sizes) != len(axes):
        raise ShapeError(f"sliding_window_view: {len(sizes)} window sizes for {len(axes)} axes")
    for place, size in zip(axes, sizes):
        n = x.shape[place]
        if not 0 <= size <= n:
            raise ShapeError(f"sliding_window_view: a window of {size} does not fit {n} elements along axis {place}")
        steps = np.arange(size)
        first = xp.arange(n - size + 1) if is_size(n) else np.arange(n - size + 1)
        table = first[:, None] + steps if is_size(n) else xp.known(first[:, None] + steps)
        x = xp.moveaxis(xp.take(x, table, axis=place), place + 1, -1)
    return x
