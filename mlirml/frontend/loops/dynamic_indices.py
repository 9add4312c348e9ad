"""Locations of slices with dynamic bounds in arrays, and relations between such bounds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from mlirml.core.affine import Linear
from mlirml.core.dataclass import dataclass
from mlirml.frontend.arrays.array import Traced
from mlirml.frontend.arrays.tracer import Cell
from mlirml.frontend.tracing.trace import Trace
from mlirml.ir.text import control

Number = Any
"""An integer: Python's, or a dynamic one."""
_MOST = int(np.iinfo(np.int64).max)


@dataclass(frozen=True, eq=False)
class Axis:
    """The extent of a slice along an axis of an array: from `start` on, with a step, along dimension `dim` of the
    slice.
    """

    start: Number
    step: Number = 1
    dim: int | None = None


@dataclass(frozen=True, eq=False)
class Read:
    """A read of elements: the slice of the array `base` with these `axes` and lengths.

    `aligned` if each element of the result is computed from the one at the same index of the slice.
    """

    base: Traced
    axes: tuple[Axis, ...]
    shape: tuple[Number, ...]
    version: int
    aligned: bool = True

    def is_same_part(self, other: Read) -> bool:
        """True if two slices are equal."""
        integers = self.base._trace.integers
        if not self.base._is_same_part(other.base) or len(self.shape) != len(other.shape):
            return False
        axes = all(
            _equal(integers, one.step, two.step) and one.dim == two.dim and _equal(integers, one.start, two.start)
            for one, two in zip(self.axes, other.axes)
        )
        return axes and all(_equal(integers, one, two) for one, two in zip(self.shape, other.shape))

    def is_apart(self, other: Read) -> bool:
        """True if two slices certainly have no element in common."""
        if self.base._cell is not other.base._cell:
            return True
        if not self.base._is_same_part(other.base):
            return False
        integers = self.base._trace.integers
        for number in range(len(self.axes)):
            (low, high), (first, last) = self.span(number), other.span(number)
            for end, start in ((high, first), (last, low)):
                forms = integers.of(end), integers.of(start)
                if None not in forms:
                    gap, _ = integers.limits(forms[1] - forms[0])
                    if gap is not None and gap > 0:
                        return True
        return False

    def span(self, number: int) -> tuple[Number, Number]:
        """The least and the greatest index along an axis."""
        axis = self.axes[number]
        if axis.dim is None:
            return axis.start, axis.start
        last = axis.start + (self.shape[axis.dim] - 1) * axis.step
        forward = isinstance(axis.step, Traced) or axis.step > 0  # a step of the program is positive
        return (axis.start, last) if forward else (last, axis.start)


def index_of(read: Read, indices: Sequence[Number]) -> tuple[Number, ...]:
    """The index in the array of an element of a slice."""
    return tuple(axis.start if axis.dim is None else axis.start + indices[axis.dim] * axis.step for axis in read.axes)


def _equal(integers: Any, one: Number, other: Number) -> bool:
    if one is other:
        return True
    forms = integers.of(one), integers.of(other)
    return None not in forms and forms[0] - forms[1] == type(forms[0])(0)


def clamped(trace: Trace, number: Number, low: Number, high: Number) -> Number:
    """A number clamped between two others; nothing is emitted if it is known to be between them."""
    b, integers = trace.builder, trace.integers
    form, lowest, highest = (integers.of(n) for n in (number, low, high))
    limits = integers.limits(form - lowest)[0], integers.limits(highest - form)[0]
    if all(type(n) is int for n in (number, low, high)):
        return min(max(number, low), high)
    if all(limit is not None and limit >= 0 for limit in limits):
        return number
    name = index_name(trace, number)
    for limit, bound, op in zip(limits, (low, high), ("maxsi", "minsi")):
        if limit is None or limit < 0:
            name = b.named(f"arith.{op} {name}, {index_name(trace, bound)} : index")
    value = control.from_index(b, name)
    integers.forms[value.name] = integers.symbol(lowest, highest, integers.roots(number))
    trace.note_sizes((number, low, high), value)
    return python_integer(trace, value)


def index_name(trace: Trace, number: Number) -> str:
    """A number as a value of type `index`."""
    b = trace.builder
    return control.to_index(b, number._read()) if isinstance(number, Traced) else b.index(number)


def python_integer(trace: Trace, value: Any) -> Traced:
    """A value as a dynamic Python integer."""
    return Traced(trace, Cell(replace(value, weak=True)), scalar=True)


def slice_bound(trace: Trace, bound: Any) -> Any:
    """A dynamic slice bound converted to i64, with the range of its dtype recorded; others unchanged."""
    if not isinstance(bound, Traced) or bound.shape or bound.dtype.kind not in "iu" or bound._known() is not None:
        return int(bound) if isinstance(bound, np.integer) else bound
    if bound.dtype == np.int64:
        return bound
    limits = np.iinfo(bound.dtype)
    if limits.max > _MOST:
        bound = trace.call_function(np.minimum, (bound, bound.dtype.type(_MOST)), {})
    wide = trace.astype(bound, np.dtype(np.int64))
    value = wide._read()
    integers = trace.integers
    if value.name not in integers.forms:
        roots = integers.roots(bound)
        integers.forms[value.name] = integers.symbol(
            Linear(int(limits.min)), Linear(min(int(limits.max), _MOST)), roots
        )
    return wide
