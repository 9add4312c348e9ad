"""Complex numbers in NumPy's order: by real parts, then by imaginary parts, those with a NaN behind all others.

Stable sorts of real keys, the last key first, make the positions; the numbers follow them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mlirml.dialects.build import Operand, Value
from mlirml.dialects.complex import ComplexBuilder, ComplexValue
from mlirml.dialects.ops import elementwise as ew
from mlirml.dialects.ops import sorting
from mlirml.dialects.ops.gather import take_along_axis
from mlirml.dialects.ops.reductions import as_value
from mlirml.dialects.ops.registry import complex_form, lift

_BYTE = np.dtype(np.uint8)


def _positions(b: ComplexBuilder, value: ComplexValue, descending: bool) -> Value:
    """The positions (i64) that put the last axis in order."""
    # x+yj, x+nanj, nan+yj, nan+nanj: the class of a number counts first, its parts where they are numbers.
    kinds = [b.cast(ew.isnan.build(b, part), _BYTE) for part in (value.re, value.im)]
    rank = ew.add.build(b, ew.add.build(b, kinds[0], kinds[0]), kinds[1])
    order: Value | None = None
    for key in (value.im, value.re, rank):
        near = key if order is None else take_along_axis.build(b, key, order, -1)
        step = sorting.sorted_positions(b, near, near.shape[-1], descending)
        order = step if order is None else take_along_axis.build(b, order, step, -1)
    assert order is not None
    return order


@complex_form(sorting.sort)
def _sort(
    b: ComplexBuilder,
    a: Operand,
    axis: Any = -1,
    kind: Any = None,
    order: None = None,
    *,
    stable: Any = None,
    descending: bool = False,
) -> Value:
    sorting._check_kind("sort", kind, stable, order)
    value, axis = sorting._lined_up("sort", b, a, axis)
    moved, back = sorting._moved(b, "sort", value, axis)
    if moved.size == 0:
        return value
    assert isinstance(moved, ComplexValue)
    places = _positions(b, moved, bool(descending))
    return sorting._back(b, moved.map(lambda part: take_along_axis.build(b, part, places, -1)), back)


@complex_form(sorting.argsort)
def _argsort(
    b: ComplexBuilder,
    a: Operand,
    axis: Any = -1,
    kind: Any = None,
    order: None = None,
    *,
    stable: Any = None,
    descending: bool = False,
) -> Value:
    sorting._check_kind("argsort", kind, stable, order)
    value, axis = sorting._lined_up(
        "argsort", b, a if a.shape or axis is None else b.reshape(as_value(b, a), (1,)), axis
    )
    moved, back = sorting._moved(b, "argsort", value, axis)
    if moved.size == 0:
        return b.empty(value.shape, np.dtype(np.int64))
    assert isinstance(moved, ComplexValue)
    return sorting._back(b, _positions(b, moved, bool(descending)), back)


lift(sorting.partition, sorting.argpartition)
