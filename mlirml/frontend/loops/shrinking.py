"""Arrays that get shorter by as much in each iteration of a loop, as in `values = values[:-1] + values[1:]`.

The loop carries an array of the first shape, of which a prefix is in use: the variable is a slice of it, with a length
that depends on the index of the iteration. After the loop it is a slice of static length.
"""

from __future__ import annotations

from collections.abc import Sequence

from mlirml.core.affine import Linear
from mlirml.frontend.arrays.array import Traced
from mlirml.frontend.arrays.carry import LeafType
from mlirml.frontend.arrays.tracer import Cell
from mlirml.frontend.loops.dynamic_indices import Axis, Number
from mlirml.frontend.loops.dynamic_slices.slices import DynamicSlice, check_unchanged, part, store
from mlirml.frontend.tracing.trace import Trace

Steps = tuple[int, ...]
"""The decrement of each dimension in an iteration."""


def steps_between(before: LeafType, after: LeafType, count: int) -> Steps | None:
    """The decrements of an array in an iteration; None if `count` iterations cannot go on like that."""
    if before.weak or before.dtype != after.dtype or len(before.shape) != len(after.shape):
        return None
    steps = tuple(one - other for one, other in zip(before.shape, after.shape))
    if any(step < 0 or size < step * count for step, size in zip(steps, before.shape)):
        return None
    return steps


def shortened(array: Traced, steps: Steps, number: Number) -> DynamicSlice:
    """The slice of an array that is in use at the start of an iteration."""
    shape = [size - number * step if step else size for size, step in zip(array.shape, steps)]
    return part(array, _axes(steps), shape, array.shape)


def lengthened(trace: Trace, x: DynamicSlice, leaf_type: LeafType, steps: Steps, number: Number) -> Traced | None:
    """An array of the first shape that begins with `x`; None if `x` has not the size for the next iteration."""
    integers = trace.integers
    of_number = integers.of(number)
    if x.ndim != len(steps) or x.dtype != leaf_type.dtype or of_number is None:
        return None
    for length, size, step in zip(x._shape, leaf_type.shape, steps):
        form = integers.of(length)
        if form is None or form != Linear(size - step) - of_number * step:
            return None
    location = x._location
    if location is not None and location.base.shape == leaf_type.shape and not location.base._views:
        begin = part(location.base, _axes(steps), x._shape, x._most)
        if begin._is_same_part(x):
            return location.base
    check_unchanged(x)
    out = Traced(trace, Cell(trace.builder.empty(leaf_type.shape, leaf_type.dtype), owned=True))
    store(part(out, _axes(steps), x._shape, leaf_type.shape), x)
    return out


def remaining(array: Traced, steps: Steps, count: int) -> Traced:
    """The slice that is in use after all iterations."""
    return array[tuple(slice(0, size - step * count) for size, step in zip(array.shape, steps))]


def _axes(steps: Sequence[int]) -> list[Axis]:
    return [Axis(0, 1, dim) for dim in range(len(steps))]
