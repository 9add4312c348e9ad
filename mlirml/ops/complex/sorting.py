"""Sorting of complex numbers in NumPy's order: by real parts, then by imaginary parts, those with a NaN last.

The positions are computed by stable sorts of real keys, the last key first; the elements are gathered by them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from mlirml.ir.text.builder import Body, Operand, Value
from mlirml.ir.text.complex import ComplexBuilder, ComplexValue
from mlirml.ir.text.complex_scalars import Complex, Real, Truth
from mlirml.ops import elementwise as ew
from mlirml.ops import sorting
from mlirml.ops.indexing.gather import take_along_axis
from mlirml.ops.reductions import as_value
from mlirml.ops.registry import complex_form

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
    sorting._check_algorithm("sort", kind, stable, order)
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
    sorting._check_algorithm("argsort", kind, stable, order)
    value, axis = sorting._lined_up(
        "argsort", b, a if a.shape or axis is None else b.reshape(as_value(b, a), (1,)), axis
    )
    moved, back = sorting._moved(b, "argsort", value, axis)
    if moved.size == 0:
        return b.empty(value.shape, np.dtype(np.int64))
    assert isinstance(moved, ComplexValue)
    return sorting._back(b, _positions(b, moved, bool(descending)), back)


@complex_form(sorting.topk)
def _topk(
    b: ComplexBuilder, x: Operand, k: Any, axis: int = -1, largest: bool = True, sorted: bool = True
) -> tuple[Value, Value]:
    value = as_value(b, x)
    count = sorting.count_of_topk(value, k, axis)
    moved, back = sorting._moved(b, "topk", value, axis)
    if not moved.size:
        shape = (*moved.shape[:-1], count)
        empty = b.empty(shape, value.dtype), b.empty(shape, np.dtype(np.int64))
        return sorting._back(b, empty[0], back), sorting._back(b, empty[1], back)
    assert isinstance(moved, ComplexValue)
    places = _positions(b, moved, bool(largest))
    rank = len(places.shape)
    places = b.extract_slice(places, [0] * rank, [*places.shape[:-1], count], [1] * rank, ())
    chosen = moved.map(lambda part: take_along_axis.build(b, part, places, -1))
    return sorting._back(b, chosen, back), sorting._back(b, places, back)


@complex_form(sorting.searchsorted)
def _searchsorted(b: ComplexBuilder, a: Operand, v: Operand, side: str = "left", sorter: Any = None) -> Value:
    table, keys = sorting.search_operands(b, a, v, side, sorter)
    if table.size == 0 or keys.size == 0:
        return b.filled(keys.shape, np.dtype(np.int64), 0)
    assert isinstance(table, ComplexValue) and isinstance(keys, ComplexValue)
    re, im, part = table.re, table.im, table.re.dtype

    def body(block: Body, xs: list[str]) -> str:
        key = Complex(*(Real(block, x, part) for x in xs))

        def before(probe: str) -> str:
            names = [block.op(f"tensor.extract {x.name}[{probe}]", x.type) for x in (re, im)]
            element = Complex(*(Real(block, x, part) for x in names))
            return (precedes(element, key) if side == "left" else ~precedes(key, element)).name

        return sorting.position_by_halves(b, block, table.size, before)

    return b.elementwise([keys.re, keys.im], [part, part], np.dtype(np.int64), keys.shape, body)


def precedes(x: Complex, y: Complex) -> Truth:
    """True if a complex number precedes another one in the sorted order: those with NaN come after all others."""
    numbers = ~x.im.is_nan(), ~y.im.is_nan()
    both = x.re.same(y.re) | (x.re.is_nan() & y.re.is_nan())
    beside = (x.im < y.im) | (numbers[0] & ~numbers[1])
    lower = (x.re < y.re) & (numbers[0] | ~numbers[1])
    higher = (x.re > y.re) & ~numbers[1] & numbers[0]
    return lower | higher | (both & beside) | (y.re.is_nan() & ~x.re.is_nan())


@complex_form(sorting.partition)
def _partition(
    b: ComplexBuilder, a: Operand, kth: Any, axis: Any = -1, kind: str = "introselect", order: None = None
) -> Value:
    return _partitioned("partition", _sort, b, a, kth, axis)


@complex_form(sorting.argpartition)
def _argpartition(
    b: ComplexBuilder, a: Operand, kth: Any, axis: Any = -1, kind: str = "introselect", order: None = None
) -> Value:
    return _partitioned("argpartition", _argsort, b, a, kth, axis)


def _partitioned(name: str, sort: Callable[..., Value], b: ComplexBuilder, a: Operand, kth: Any, axis: Any) -> Value:
    """A partition by a whole sort."""
    value, axis = sorting._lined_up(name, b, a, axis)
    sorting.checked_kth(name, kth, value, axis)
    return sort(b, value, axis)
