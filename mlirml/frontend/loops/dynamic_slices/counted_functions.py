"""NumPy's functions whose results are as long as numbers among the data say: nothing bounds these when tracing.

Their buffers have the room that the expression in the user's file has by now (`core/rooms.py`): where it is not enough,
the call is repeated with more.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mlirml.core.rooms import CAPACITIES, capacity_of
from mlirml.errors import DTypeError, OutgrownListError, ShapeError
from mlirml.frontend.arrays.array import Traced
from mlirml.frontend.frames import user_location
from mlirml.frontend.loops.dynamic_indices import python_integer
from mlirml.frontend.loops.dynamic_slices.compaction import beginning
from mlirml.frontend.loops.dynamic_slices.slices import DynamicSlice, transposed
from mlirml.frontend.tracing.trace import Trace
from mlirml.ir.text import control
from mlirml.ir.text.builder import Check

_INDEX = np.dtype(np.int64)


def repeat(trace: Trace, a: Any, repeats: Any, axis: Any = None) -> DynamicSlice:
    """`np.repeat` by an array of counts, or one count, of run time."""
    array: Any = trace.array(a, copy=False)
    if axis is None:
        array, axis = array.reshape(-1), 0
    if not -array.ndim <= axis < array.ndim:
        raise ShapeError(f"repeat: axis {axis} is out of bounds for an array of {array.ndim} dimension(s)")
    axis %= array.ndim
    rows = np.moveaxis(array, axis, 0)
    counts: Any = trace.array(repeats, copy=False)
    if counts.dtype.kind not in "biu" or counts.ndim > 1:
        raise DTypeError(f"repeat: repeats must be integers, one or one for each element, got {counts._describe()}")
    size = rows.shape[0]
    counts = counts.astype(_INDEX).reshape(-1)
    if counts.size != size and counts.size != 1:
        raise ShapeError(f"repeat: {counts.size} repeats for {size} elements along axis {axis} of {array._describe()}")
    if not size:
        return beginning(rows, 0)  # type: ignore[arg-type]
    _require(trace, (counts >= 0).all(), Check("ShapeError", "repeat: repeats cannot be negative"))
    ends = np.cumsum(np.broadcast_to(counts, (size,)))
    total = python_integer(trace, ends[size - 1]._read())
    capacity = _room(trace, total, size)
    # The number of elements that end at or before a position is that of the element there.
    steps = trace.known(np.zeros(capacity + 1, _INDEX))._copy()
    np.add.at(steps, np.minimum(ends[: size - 1], capacity), 1)
    found = beginning(rows[np.cumsum(steps)[:capacity]], total)
    return transposed(found, [*range(1, axis + 1), 0, *range(axis + 1, rows.ndim)]) if axis else found


def bincount(trace: Trace, numbers: Traced, weights: Any) -> DynamicSlice:
    """`np.bincount` of numbers without a known bound."""
    x: Any = numbers.astype(_INDEX)
    if not x.size:
        return beginning(trace.known(np.zeros(0, _INDEX)), 0)  # type: ignore[arg-type]
    _require(trace, (x >= 0).all(), Check("ShapeError", "bincount: a number is negative"))
    length = python_integer(trace, (x.max() + 1)._read())
    capacity = _room(trace, length, 0)
    safe = np.clip(x, 0, capacity - 1)
    counts: Any = np.bincount(safe, weights, minlength=capacity)
    return beginning(counts, length)


def _room(trace: Trace, length: Any, least: int) -> int:
    """The room for a result of this length, which the program checks; it is at least `least`."""
    location = user_location()
    site = "a function" if location is None else f"{location.file}:{location.line}:{location.column}"
    capacity = capacity_of(site, least)
    trace.guards["room", site] = CAPACITIES, site, CAPACITIES[site]
    error = OutgrownListError(site, capacity)
    _require(trace, length <= capacity, Check(type(error).__name__, str(error), raised=error))
    return capacity


def _require(trace: Trace, condition: Any, check: Check) -> None:
    """Let the call fail where a condition on numbers of run time does not hold."""
    b = trace.builder
    if isinstance(condition, Traced):
        b.check(control.to_scalar(b, condition._read()), check)
    elif not condition:
        b.check(b.scalar(False, np.dtype(np.bool_)), check)
