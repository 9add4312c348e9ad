"""Arrays that get shorter by as much in each iteration of a loop, as in `values = values[:-1] + values[1:]`.

The loop carries an array of the first shape, of which a part is in use: the variable is a slice of it that is as long
as the number of the iteration says. After the loop it is a slice of a known length.
"""

from __future__ import annotations

from collections.abc import Sequence

from mlirml.frontend.loops.affine import Linear
from mlirml.frontend.loops.dynamic_indices import Axis, Number
from mlirml.frontend.loops.dynamic_slices.slices import Varying, check_unchanged, part, store
from mlirml.frontend.tracing.array import Cell, Traced
from mlirml.frontend.tracing.carry import Kind
from mlirml.frontend.tracing.trace import Trace

Steps = tuple[int, ...]
"""By how much each dimension gets shorter in an iteration."""


def steps_between(before: Kind, after: Kind, count: int) -> Steps | None:
    """The steps of an array that an iteration leaves shorter; None where `count` iterations cannot go on like that."""
    if before.weak or before.dtype != after.dtype or len(before.shape) != len(after.shape):
        return None
    steps = tuple(one - other for one, other in zip(before.shape, after.shape))
    if any(step < 0 or size < step * count for step, size in zip(steps, before.shape)):
        return None
    return steps


def shortened(array: Traced, steps: Steps, number: Number) -> Varying:
    """What is in use of an array at the start of an iteration."""
    shape = [size - number * step if step else size for size, step in zip(array.shape, steps)]
    return part(array, _axes(steps), shape, array.shape)


def lengthened(trace: Trace, x: Varying, kind: Kind, steps: Steps, number: Number) -> Traced | None:
    """An array of the first shape that begins with `x`; None where `x` is not what the next iteration has in use."""
    integers = trace.integers
    of_number = integers.of(number)
    if x.ndim != len(steps) or x.dtype != kind.dtype or of_number is None:
        return None
    for length, size, step in zip(x._shape, kind.shape, steps):
        form = integers.of(length)
        if form is None or form != Linear(size - step) - of_number * step:
            return None
    place = x._place
    if place is not None and place.base.shape == kind.shape and not place.base._views:
        begin = part(place.base, _axes(steps), x._shape, x._most)
        if begin._same_place(x):
            return place.base
    check_unchanged(x)
    out = Traced(trace, Cell(trace.builder.empty(kind.shape, kind.dtype), owned=True))
    store(part(out, _axes(steps), x._shape, kind.shape), x)
    return out


def remaining(array: Traced, steps: Steps, count: int) -> Traced:
    """What is in use after all iterations."""
    result: Traced = array[tuple(slice(0, size - step * count) for size, step in zip(array.shape, steps))]
    return result


def _axes(steps: Sequence[int]) -> list[Axis]:
    return [Axis(0, 1, dim) for dim in range(len(steps))]
