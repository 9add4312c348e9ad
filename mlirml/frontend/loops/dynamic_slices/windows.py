"""Indices in loops: dynamic numbers, and slices with dynamic starts, as one dynamic slice of static size."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from mlirml.core.affine import Linear
from mlirml.errors import IndexOutOfBoundsError, InvalidIndexError, ShapeError
from mlirml.frontend.arrays.array import Traced
from mlirml.frontend.arrays.indexing import Index, UnknownLengthError, length, position, slice_bounds
from mlirml.frontend.tracing.trace import Trace
from mlirml.ir.text import control
from mlirml.ir.text.builder import Check
from mlirml.ops.indexing.positions import scalar_position
from mlirml.ops.shapes.dynamic_views import Start, moving
from mlirml.ops.shapes.views import Reshape, Slice, ViewOp

_Part = tuple[Start, int, int, object]
"""Start, size, step and what the start comes from. One that goes backwards starts at its end, with a negative step."""

_CUT = "write the end of a slice that is cut as `min(i + n, len(x))`"


def window_index(trace: Trace, shape: tuple[int, ...], index: Any) -> Index | None:
    """The index as a window; None for what has no number of the program in it, or more than those and slices."""
    items = index if isinstance(index, tuple) else (index,)
    if not any(map(_is_traced, items)) or not all(item is None or _is_basic(item) for item in items):
        return None
    new_axes = any(item is None for item in items)
    everything, items = items, tuple(item for item in items if item is not None)
    rests = sum(item is Ellipsis for item in items)
    if len(items) - rests > len(shape) or rests > 1:
        return None
    given = list(items) if rests else [*items, Ellipsis]
    indices = next(i for i, item in enumerate(given) if item is Ellipsis)
    given[indices : indices + 1] = [slice(None)] * (len(shape) - len(items) + rests)
    parts: list[_Part] = []
    drop: list[int] = []
    for axis, (item, size) in enumerate(zip(given, shape)):
        part = _part(trace, item, size, axis)
        if part is None:
            return None
        parts.append(part)
        if not isinstance(item, slice):
            drop.append(axis)
    starts, sizes, steps, sources = zip(*parts)
    view = moving(shape, starts, sizes, [*map(abs, steps)], drop, sources, trace.builder.region)
    views: tuple[ViewOp, ...] = (view, *_flipped(view.shape, [s < 0 for d, s in enumerate(steps) if d not in drop]))
    full = not rests and len(drop) == len(shape) == len(items)
    if not new_axes:
        return Index(views, (), (), 0, view.shape, False, full)
    sizes_left, result = list(view.shape), []
    after = sum(isinstance(item, slice) for item in everything[everything.index(Ellipsis) :]) if rests else 0
    for item in everything if rests else (*everything, Ellipsis):
        if item is None:
            result.append(1)
        elif item is Ellipsis:
            count = len(sizes_left) - after
            result += sizes_left[:count]
            del sizes_left[:count]
        elif isinstance(item, slice):
            result.append(sizes_left.pop(0))
    return Index((*views, Reshape(tuple(result))), (), (), 0, tuple(result), False, False)


def _flipped(shape: tuple[int, ...], flips: Sequence[bool]) -> list[Slice]:
    """The view with some dimensions reversed; none if there are none."""
    if not any(flips):
        return []
    starts = tuple(n - 1 if flip else 0 for n, flip in zip(shape, flips))
    return [Slice(shape, starts, shape, tuple(-1 if flip else 1 for flip in flips), ())]


def _is_traced(item: Any) -> bool:
    if isinstance(item, slice):
        parts = item.start, item.stop, item.step
        return any(isinstance(part, Traced) and part._known() is None for part in parts)
    return isinstance(item, Traced) and item._known() is None


def _is_basic(item: Any) -> bool:
    if isinstance(item, Traced):
        return item._scalar and not item.shape and item.dtype.kind in "iu"
    return isinstance(item, (int, slice, np.integer, type(Ellipsis))) and not isinstance(item, bool)


def _part(trace: Trace, item: Any, size: int, axis: int) -> _Part | None:
    if isinstance(item, slice):
        if _is_traced(item):
            return _moving_slice(trace, item, size)
        start, stop, step = slice_bounds(item, size)
        count = length(start, stop, step)
        return None if step < 0 else (start if count else 0, count, step if count > 1 else 1, start)
    known = item._known() if isinstance(item, Traced) else item
    if known is not None:
        number = position(int(known), size, axis)
        return number, 1, 1, number
    value = item._read()
    return scalar_position(trace.builder, value, size, axis), 1, 1, value


def _moving_slice(trace: Trace, item: slice, size: int) -> _Part:
    """A slice with a dynamic start and a static length."""
    integers = trace.integers
    step = 1 if item.step is None else item.step
    if isinstance(step, Traced):
        raise UnknownLengthError("the step of a slice differs between iterations")
    if step == 0:
        raise ShapeError("slice step cannot be zero")
    if step < 0 and (item.start is None or item.stop is None):
        raise UnknownLengthError("the length of a slice differs between iterations")
    from mlirml.frontend.loops.dynamic_indices import slice_bound

    given = 0 if item.start is None else item.start, size if item.stop is None else item.stop
    bounds = [slice_bound(trace, bound) for bound in given]
    forms = []
    for bound in bounds:
        form = integers.of(bound)
        if form is None:
            raise InvalidIndexError(f"slice bounds must be integers or None, got {bound!r}")
        forms.append(_from_start(trace, form, size))
    span = forms[1] - forms[0]
    if not span.is_constant:
        raise UnknownLengthError("the length of a slice differs between iterations")
    count = len(range(0, span.constant, step))
    start = bounds[0]
    if step < 0:
        return _backward(trace, start, forms[0], count, step, size)
    if not isinstance(start, Traced):
        return int(start), count, step, int(start)
    b = trace.builder
    name = control.to_index(b, start._read())
    if forms[0] is not integers.of(start):
        _, greatest = integers.limits(forms[0])
        if greatest is None or greatest + span.constant > size:  # NumPy cuts it at the end
            raise UnknownLengthError("the length of a slice differs between iterations")
        name = b.named(f"arith.addi {name}, {b.index(size)} : index")
    elif any(last + span.constant > size for last in b.extremes_of(start._read()) or ()):  # NumPy cuts it
        raise UnknownLengthError("the length of a slice differs between iterations")
    if b.checked:
        name = _checked(trace, forms[0], name, span.constant, size)
    return name, count, step, start._read()


def _backward(trace: Trace, start: Any, form: Linear, count: int, step: int, size: int) -> _Part:
    """A slice of `count` elements that goes backwards from `start`, which is certainly an index."""
    _, greatest = trace.integers.limits(form)
    is_index = greatest is not None and greatest < size and form is trace.integers.of(start)
    if not is_index or not count or not isinstance(start, Traced):
        raise UnknownLengthError("the length of a slice differs between iterations")
    b = trace.builder
    name = b.named(f"arith.subi {control.to_index(b, start._read())}, {b.index((1 - count) * step)} : index")
    return name, count, step if count > 1 else 1, (start._read(), count, step)


def _from_start(trace: Trace, form: Linear, size: int) -> Linear:
    """A bound counted from the start of the axis."""
    least, greatest = trace.integers.limits(form)
    if least is not None and least >= 0:
        return form
    if greatest is not None and greatest < 0:
        return form + Linear(size)
    raise UnknownLengthError("a bound of a slice may be negative in one iteration and not in another")


def _checked(trace: Trace, start: Linear, name: str, length: int, size: int) -> str:
    """The start of a slice, counted from that of the axis: checked, and clamped for what follows a failed check."""
    b = trace.builder
    _, greatest = trace.integers.limits(start)
    if greatest is not None and greatest + length <= size:
        return name
    if length > size:
        raise IndexOutOfBoundsError(f"a slice of length {length} of an axis of size {size}")
    limit = b.index(size - length)
    in_bounds = b.named(f"arith.cmpi sle, {name}, {limit} : index")
    message = f"a slice of length {length} goes beyond the end of an axis of size {size}"
    b.check(in_bounds, Check("IndexOutOfBoundsError", message, _CUT))
    return b.named(f"arith.minsi {name}, {limit} : index")
