"""Indices of dynamic slices: numbers, slices with dynamic bounds, `...` and None."""

from __future__ import annotations

from typing import Any

import numpy as np

from mlirml.core.dataclass import dataclass
from mlirml.errors import IndexOutOfBoundsError, InvalidIndexError, ShapeError
from mlirml.frontend.arrays.array import Traced
from mlirml.frontend.arrays.indexing import is_dynamic, position
from mlirml.frontend.arrays.number_lists import pays
from mlirml.frontend.loops.dynamic_indices import Axis, Number, clamped, index_name, slice_bound
from mlirml.frontend.loops.dynamic_slices.positions import has_rows, rows_at
from mlirml.frontend.loops.dynamic_slices.slices import DynamicSlice, is_mask, moved, part, refused
from mlirml.frontend.tracing.trace import Trace
from mlirml.ir.text.builder import Check

_FEW = 8
"""Loops that make no more copies are unrolled if slices have static lengths then."""


@dataclass(frozen=True)
class Walk:
    """The indices along a dimension: from `start` on with a step, `length` of them, or one if that is None."""

    start: Number
    step: Number = 1
    length: Number = None
    most: int = 1


def _is_for_few(trace: Trace, length: Traced) -> bool:
    """True for a length that is constant if a few copies are made of loops around it, which are faster then."""
    form = trace.integers.of(length)
    return form is not None and all(symbol.roots for symbol in form.factors) and not pays(trace, length, _FEW)


def part_of_part(x: DynamicSlice, index: Any) -> DynamicSlice:
    """`x[index]`."""
    trace = x._trace
    if has_positions(index):
        from mlirml.frontend.loops.dynamic_slices.gathering import elements_at

        return elements_at(x, index)
    if isinstance(index, tuple) and any(is_dynamic(item) or is_mask(item) for item in index):
        from mlirml.frontend.loops.dynamic_slices.gathering import beside_slices

        beside = beside_slices(x, index)
        if beside is not None:
            return beside.elements()
    if has_rows(index):
        return rows_at(x, index)
    items = list(index) if isinstance(index, tuple) else [index]
    used = sum(item is not None and item is not Ellipsis for item in items)
    if used > x.ndim:
        rank = "1 dimension" if x.ndim == 1 else f"{x.ndim} dimensions"
        raise IndexOutOfBoundsError(f"too many indices: {used} for an array of {rank}")
    if sum(item is Ellipsis for item in items) > 1:
        raise InvalidIndexError("an index can have only one ellipsis (`...`)")
    if not any(item is Ellipsis for item in items):
        items.append(Ellipsis)
    indices = next(number for number, item in enumerate(items) if item is Ellipsis)
    items[indices : indices + 1] = [slice(None)] * (x.ndim - used)
    walks: list[Walk] = []
    dims: list[int | None] = []  # of the result, for each of x
    shape: list[Number] = []
    most: list[int] = []
    for item in items:
        if item is None:
            shape.append(1)
            most.append(1)
            continue
        walk = _walk(x, item, len(walks))
        dims.append(None if walk.length is None else len(shape))
        walks.append(walk)
        if walk.length is not None:
            shape.append(walk.length)
            most.append(walk.most)
    for walk in walks:
        if isinstance(walk.length, Traced) and _is_for_few(trace, walk.length):
            error = refused(trace, x, "a loop of few iterations")
            error.roots = trace.integers.roots(walk.length)
            raise error
    if x._location is not None:
        axes = [_under(axis, walks, dims) for axis in x._location.axes]
        return part(x._location.base, axes, shape, most)

    def element(found: tuple[Number, ...]) -> Any:
        return x._at([w.start if d is None else w.start + found[d] * w.step for w, d in zip(walks, dims)])

    sample = np.ones((1,) * len(shape), x.dtype)
    return DynamicSlice(trace, shape, most, sample, element, moved(x))


def has_positions(index: Any) -> bool:
    """True for an array of positions or a mask, or several such arrays and numbers, without slices beside them."""
    items = index if isinstance(index, tuple) else (index,)
    if any(item is None or item is Ellipsis or isinstance(item, slice) for item in items):
        return False
    return any(is_dynamic(item) or isinstance(item, list) or _is_positions(item) for item in items)


def _is_positions(index: Any) -> bool:
    """True for an array of positions of static length."""
    return isinstance(index, (Traced, np.ndarray)) and len(index.shape) > 0 and index.dtype.kind in "iu"


def _under(axis: Axis, walks: list[Walk], dims: list[int | None]) -> Axis:
    if axis.dim is None:
        return axis
    walk = walks[axis.dim]
    start = axis.start + walk.start * axis.step
    return Axis(start, axis.step * walk.step, dims[axis.dim])


def _walk(x: DynamicSlice, item: Any, dim: int) -> Walk:
    trace, size = x._trace, x._shape[dim]
    if isinstance(item, slice):
        return sliced(trace, item, x._length(dim), x._most[dim])
    if isinstance(item, Traced):
        known = item._known()
        if item.shape or item.dtype.kind not in "iu":
            raise refused(trace, x, f"an index by {item._describe()}")
        item = item if known is None else int(known)
    if not isinstance(item, Traced):
        try:
            indices = int(item.__index__())
        except (AttributeError, TypeError):
            raise refused(trace, x, f"an index by {item!r}") from None
        if isinstance(size, int):
            return Walk(position(indices, size, dim))
        return Walk(_checked(trace, indices + x._length(dim) if indices < 0 else indices, size))
    least, greatest = trace.integers.limits_of(item._read())
    if least is not None and least >= 0:
        return Walk(_checked(trace, item, size))
    if greatest is not None and greatest < 0:
        return Walk(_checked(trace, item + x._length(dim), size))
    number: Any = item
    length = x._length(dim)
    chosen = trace.hooks.select(number < 0, lambda: number + length, lambda: number)
    return Walk(_checked(trace, chosen, size))


def _checked(trace: Trace, number: Number, size: Number) -> Number:
    """An index that is checked against a dynamic length."""
    b, integers = trace.builder, trace.integers
    forms = integers.of(number), integers.of(size)
    if not b.checked or isinstance(size, int) or None in forms:
        return number
    for gap, test in ((forms[0], f"sge, {index_name(trace, number)}, {b.index(0)}"), (forms[1] - forms[0], "")):
        least, _ = integers.limits(gap)
        if least is None or least < (0 if test else 1):
            test = test or f"slt, {index_name(trace, number)}, {index_name(trace, size)}"
            b.check(
                b.named(f"arith.cmpi {test} : index"),
                Check("IndexOutOfBoundsError", "the index is out of bounds for a slice of changing length"),
            )
    return number


def sliced(trace: Trace, item: slice, size: Number, most: int) -> Walk:
    """A slice of a dimension."""
    step = 1 if item.step is None else item.step
    if isinstance(step, Traced):
        known = step._known()
        step = _positive(trace, step) if known is None else int(known)
    if not isinstance(step, Traced):
        step = int(step.__index__())
        if step == 0:
            raise ShapeError("slice step cannot be zero")
    forward = isinstance(step, Traced) or step > 0
    low, high = (0, size) if forward else (-1, size - 1)
    ends = []
    for bound, default in ((item.start, low if forward else high), (item.stop, high if forward else low)):
        ends.append(default if bound is None else clamped(trace, _from_start(trace, bound, size), low, high))
    start, stop = ends
    length = stop - start if forward else start - stop
    if isinstance(step, Traced):
        number: Any = length
        return Walk(start, step, -(-number // step), most)
    if abs(step) != 1:
        length = -(-length // abs(step))
    if isinstance(length, int):
        length = max(length, 0)
    elif step > 0:
        _note_whole_length(trace, item, step, length)
    return Walk(start, step, length, -(-most // abs(step)))


def _note_whole_length(trace: Trace, item: slice, step: int, length: Traced) -> None:
    """Note the length that a slice has wherever it is within its dimension, if that is a constant."""
    bounds = item.start, item.stop
    if any(bound is None for bound in bounds):
        return
    first, last = (trace.integers.of(slice_bound(trace, bound)) for bound in bounds)
    span = None if first is None or last is None else last - first
    if span is not None and span.is_constant:
        trace.integers.whole_lengths[length._read().name] = len(range(0, span.constant, step))


def _positive(trace: Trace, step: Traced) -> Traced:
    """A step that is known at run time only, which is checked to be positive."""
    if step.shape or step.dtype.kind not in "iu":
        raise InvalidIndexError(f"slice steps must be integers or None, got {step._describe()}")
    number: Traced = slice_bound(trace, step)
    least, _ = trace.integers.limits_of(number._read())
    b = trace.builder
    if b.checked and (least is None or least < 1):
        b.check(
            b.named(f"arith.cmpi sge, {index_name(trace, number)}, {b.index(1)} : index"),
            Check("ShapeError", "the step of a slice that is a number of the program is not positive"),
        )
    return number


def _from_start(trace: Trace, bound: Any, size: Number) -> Number:
    """A slice bound counted from the start."""
    if isinstance(bound, Traced):
        known = bound._known()
        if bound.shape or bound.dtype.kind not in "iu":
            raise InvalidIndexError(f"slice bounds must be integers or None, got {bound._describe()}")
        bound = bound if known is None else int(known)
    if not isinstance(bound, Traced):
        if not hasattr(bound, "__index__"):
            raise InvalidIndexError(f"slice bounds must be integers or None, got {bound!r}")
        bound = int(bound.__index__())
        return bound + size if bound < 0 else bound
    bound = slice_bound(trace, bound)
    least, greatest = trace.integers.limits_of(bound._read())
    if least is not None and least >= 0:
        return bound
    if greatest is not None and greatest < 0:
        return bound + size
    return trace.hooks.select(bound < 0, lambda: bound + size, lambda: bound)
