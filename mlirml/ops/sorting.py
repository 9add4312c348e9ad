"""Sorting and searching: `mlirml.sort` and `mlirml.argsort` order the rows of a matrix; all else is made of them.

    %sorted = "mlirml.sort"(%x, %out) {descending = false, kind = "f32"}
        : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
    %order = "mlirml.argsort"(%x, %out) {descending = false, kind = "f32"}
        : (tensor<4x8xf32>, tensor<4x3xi64>) -> tensor<4x3xi64>

Both are stable; `mlirml.argsort` gives as many positions of each row as its result has columns. NaN comes last, or
first in descending order, and -0.0 equals 0.0. With `kth = array<i64: first, last>` only the elements from the one to
the other position of a row need be in order, no larger ones before and no smaller ones after them: the rest may be in
any order.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from mlirml.core.sizes import is_size
from mlirml.errors import ShapeError, UnsupportedSyntaxError
from mlirml.ir.text.builder import Body, Builder, Operand, Value
from mlirml.ir.text.dtypes import is_float, mlir_name, short_name
from mlirml.ops import promotion
from mlirml.ops.reductions import as_value, normalized_axes
from mlirml.ops.registry import ALL, composed, dispatching, operation
from mlirml.ops.shapes.rearrange import known

_BOOL, _BYTE, _INDEX = np.dtype(np.bool_), np.dtype(np.uint8), np.dtype(np.int64)


def _row_op(b: Builder, name: str, rows: Value, out: Value, descending: bool, kth: Sequence[int] = ()) -> Value:
    attributes = f'descending = {str(descending).lower()}, kind = "{short_name(rows.dtype)}"'
    if kth:
        attributes += f", kth = array<i64: {min(kth)}, {max(kth)}>"
    text = f'"{name}"({rows.name}, {out.name}) {{{attributes}}} : ({rows.type}, {out.type}) -> {out.type}'
    return b.op(text, out.shape, out.dtype)


def _moved(b: Builder, name: str, value: Value, axis: Any) -> tuple[Value, list[int]]:
    """The array with the axis last, and the dimensions in that order."""
    (dim,) = normalized_axes(name, value.shape, axis)
    order = [*(i for i in range(len(value.shape)) if i != dim), dim]
    return b.transpose(value, order), order


def _back(b: Builder, value: Value, order: list[int]) -> Value:
    return b.transpose(value, [order.index(i) for i in range(len(order))])


def sorted_values(b: Builder, value: Value, descending: bool = False, kth: Sequence[int] = ()) -> Value:
    """The last axis in order, or in such that the elements at the positions `kth` are where they are in order."""
    if value.size == 0 or value.shape[-1] == 1:
        return value
    rows = b.cast(b.reshape(value, (value.size // value.shape[-1], value.shape[-1])), _element(value.dtype))
    result = _row_op(b, "mlirml.sort", rows, b.empty(rows.shape, rows.dtype), descending, kth)
    return b.reshape(b.cast(result, value.dtype), value.shape)


def sorted_positions(b: Builder, value: Value, count: int, descending: bool = False, kth: Sequence[int] = ()) -> Value:
    """The positions of the first `count` elements along the last axis in order, in i64, or of all by `kth`."""
    shape = (*value.shape[:-1], count)
    if math.prod(shape) == 0:
        return b.empty(shape, _INDEX)
    rows = b.cast(b.reshape(value, (value.size // value.shape[-1], value.shape[-1])), _element(value.dtype))
    result = _row_op(b, "mlirml.argsort", rows, b.empty((rows.shape[0], count), _INDEX), descending, kth)
    return b.reshape(result, shape)


def _element(dtype: np.dtype) -> np.dtype:
    return _BYTE if dtype == _BOOL else dtype


def _check_algorithm(name: str, algorithm: Any, stable: Any, order: Any) -> None:
    if order is not None:
        raise UnsupportedSyntaxError(f"{name}: `order` names fields, which arrays of numbers do not have")
    if algorithm is not None and stable is not None:
        raise UnsupportedSyntaxError(f"{name}: `kind` and `stable` exclude each other, as in NumPy")
    if algorithm is not None and str(algorithm)[:1].lower() not in ("q", "m", "h", "s"):
        raise UnsupportedSyntaxError(f"{name}: `kind` must be one of 'quick', 'heap' or 'stable', not {algorithm!r}")


def _lined_up(name: str, b: Builder, a: Operand, axis: Any) -> tuple[Value, Any]:
    value = as_value(b, a)
    if axis is None:
        return b.reshape(value, (value.size,)), -1
    return value, axis


@operation("sorting", np.sort, dtypes=ALL, scalars=False)
def sort(
    b: Builder,
    a: Operand,
    axis: Any = -1,
    kind: Any = None,
    order: None = None,
    *,
    stable: Any = None,
    descending: bool = False,
) -> Value:
    """The elements in order along an axis, or all of them; NaN last. The sort is always stable."""
    _check_algorithm("sort", kind, stable, order)
    value, axis = _lined_up("sort", b, a, axis)
    moved, back = _moved(b, "sort", value, axis)
    return _back(b, sorted_values(b, moved, bool(descending)), back)


@operation("sorting", np.argsort, dtypes=ALL, methods=("argsort",), scalars=False)
def argsort(
    b: Builder,
    a: Operand,
    axis: Any = -1,
    kind: Any = None,
    order: None = None,
    *,
    stable: Any = None,
    descending: bool = False,
) -> Value:
    """The positions (i64) that put an axis in order; NaN last. Equal elements keep their order."""
    _check_algorithm("argsort", kind, stable, order)
    value, axis = _lined_up("argsort", b, a if a.shape or axis is None else b.reshape(as_value(b, a), (1,)), axis)
    moved, back = _moved(b, "argsort", value, axis)
    return _back(b, sorted_positions(b, moved, moved.shape[-1], bool(descending)), back)


def checked_kth(name: str, kth: Any, value: Value, axis: Any) -> tuple[int, ...]:
    """The positions that an array is partitioned at; none where they depend on a dynamic size."""
    size = value.shape[normalized_axes(name, value.shape, axis)[0]]
    if not value.size:  # NumPy does not look
        return ()
    found = np.atleast_1d(known(name, "kth", kth)).tolist()
    for k in found:
        if not -size <= k < size:
            raise ShapeError(f"{name}: kth {k} is out of bounds for {size} elements")
    positions = [k if k >= 0 else size + k for k in found]
    return () if any(map(is_size, positions)) else tuple(map(int, positions))


@operation("sorting", np.partition, dtypes=ALL, scalars=False)
def partition(b: Builder, a: Operand, kth: Any, axis: Any = -1, kind: str = "introselect", order: None = None) -> Value:
    """The array with its kth element at its sorted position, no larger ones before it and no smaller ones after it."""
    value, axis = _lined_up("partition", b, a, axis)
    positions = checked_kth("partition", kth, value, axis)
    moved, back = _moved(b, "partition", value, axis)
    return _back(b, sorted_values(b, moved, kth=positions), back)


@operation("sorting", np.argpartition, dtypes=ALL, methods=("argpartition",), scalars=False)
def argpartition(
    b: Builder, a: Operand, kth: Any, axis: Any = -1, kind: str = "introselect", order: None = None
) -> Value:
    """The positions of `partition`."""
    value, axis = _lined_up("argpartition", b, a, axis)
    positions = checked_kth("argpartition", kth, value, axis)
    moved, back = _moved(b, "argpartition", value, axis)
    return _back(b, sorted_positions(b, moved, moved.shape[-1], kth=positions), back)


def _topk(x: Any, k: int, axis: int = -1, largest: bool = True, sorted: bool = True) -> tuple[Any, Any]:
    """`topk` of a real array."""
    array = np.asarray(x)
    if largest:
        last = array.shape[axis] - 1
        order = last - np.flip(np.argsort(np.flip(array, axis), axis=axis, kind="stable"), axis)
    else:
        order = np.argsort(array, axis=axis, kind="stable")
    indices = np.take(order, np.arange(k), axis=axis)
    return np.take_along_axis(array, indices, axis), indices


@operation("sorting", dispatching(_topk), dtypes=ALL, scalars=False)
def topk(
    b: Builder, x: Operand, k: Any, axis: int = -1, largest: bool = True, sorted: bool = True
) -> tuple[Value, Value]:
    """The k largest (or smallest) elements along an axis in order, and their positions (i64); NaN is largest."""
    value = as_value(b, x)
    count = count_of_topk(value, k, axis)
    moved, back = _moved(b, "topk", value, axis)
    positions = sorted_positions(b, moved, count, bool(largest))
    rank = len(positions.shape)

    def index(block: Body, loops: list[str], names: list[str]) -> list[str]:
        return [*loops[:-1], block.op(f"arith.index_cast {names[0]}", "i64 to index")]

    chosen = positions
    if positions.size:
        chosen = b.gather_at(moved, positions.shape, [positions], [range(rank)], index)
    else:
        chosen = b.empty(positions.shape, value.dtype)
    return _back(b, chosen, back), _back(b, positions, back)


def count_of_topk(value: Value, k: Any, axis: int) -> int:
    """The checked number of elements that `topk` returns."""
    if not value.shape:
        raise ShapeError("topk: a 0-d array has nothing to choose from")
    there = value.shape[normalized_axes("topk", value.shape, axis)[0]]
    count = int(known("topk", "k", k))
    if not 0 <= count <= there:
        raise ShapeError(f"topk: k is {count}, but there are {there} elements along axis {axis} of {value}")
    return count


@operation("sorting", np.searchsorted, dtypes=ALL, arrays=2, methods=("searchsorted",), array_options=("sorter",))
def searchsorted(b: Builder, a: Operand, v: Operand, side: str = "left", sorter: Any = None) -> Value:
    """The insertion positions (i64) of each of `v` into the sorted `a`: before or after equal elements."""
    table, keys = search_operands(b, a, v, side, sorter)
    dtype = table.dtype
    if table.size == 0 or keys.size == 0:
        return b.filled(keys.shape, _INDEX, 0)

    def body(block: Body, xs: list[str]) -> str:
        def before(probe: str) -> str:
            element = block.op(f"tensor.extract {table.name}[{probe}]", table.type)
            return _less(block, element, xs[0], dtype) if side == "left" else _not_less(block, xs[0], element, dtype)

        return position_by_halves(b, block, table.size, before)

    return b.elementwise([keys], [dtype], _INDEX, keys.shape, body)


def search_operands(b: Builder, a: Operand, v: Operand, side: str, sorter: Any) -> tuple[Value, Value]:
    """The sorted array and the values to find in it, in one dtype."""
    table, keys = as_value(b, promotion.strong(a)), as_value(b, promotion.strong(v))
    if len(table.shape) != 1:
        raise ShapeError(f"searchsorted: needs an array of 1 dimension, not {table}")
    if side not in ("left", "right"):
        raise ShapeError(f"searchsorted: side is 'left' or 'right', not {side!r}")
    dtype = promotion.result_type(table, keys)
    table, keys = b.cast(table, dtype), b.cast(keys, dtype)
    if sorter is None:
        return table, keys
    order = as_value(b, sorter)
    if order.shape != table.shape or order.dtype.kind not in "iu":
        raise ShapeError(f"searchsorted: the sorter {order} does not fit {table}")
    table = b.gather_at(
        table,
        table.shape,
        [b.cast(order, _INDEX)],
        [[0]],
        lambda block, loops, names: [block.op(f"arith.index_cast {names[0]}", "i64 to index")],
    )
    return table, keys


def position_by_halves(b: Builder, block: Body, size: int, before: Callable[[str], str]) -> str:
    """The number of elements before a position (i64), by binary search; `before` decides whether one of them is."""
    # Branch-free bisection: the first `low` elements are known to be before the position, `length` are undecided.
    if is_size(size):
        return _position_in_any(b, block, size, before)
    low, length = block.op("arith.constant 0", "index"), size
    while length > 0:
        half = (length + 1) // 2
        probe = block.op(f"arith.addi {low}, {block.op(f'arith.constant {half - 1}', 'index')}", "index")
        is_before = before(probe)
        past = block.op(f"arith.addi {low}, {block.op(f'arith.constant {half}', 'index')}", "index")
        low = block.op(f"arith.select {is_before}, {past}, {low}", "index")
        length -= half
    return block.op(f"arith.index_cast {low}", "index to i64")


def _position_in_any(b: Builder, block: Body, size: Any, before: Callable[[str], str]) -> str:
    """`position_by_halves` of a dynamic size, in a number of steps that is enough for sizes of so many bytes."""
    one, zero = (block.op(f"arith.constant {n}", "index") for n in (1, 0))
    low, length = zero, b.sizes.name(size)
    steps = _STEPS
    while size >= 1 << steps:
        steps += _STEPS
    for _ in range(steps):
        half = block.op(f"arith.shrui {block.op(f'arith.addi {length}, {one}', 'index')}, {one}", "index")
        past = block.op(f"arith.addi {low}, {half}", "index")
        # No element is undecided where the half of them is none: any may be read then.
        probe = block.op(f"arith.maxsi {block.op(f'arith.subi {past}, {one}', 'index')}, {zero}", "index")
        low = block.op(f"arith.select {before(probe)}, {past}, {low}", "index")
        length = block.op(f"arith.subi {length}, {half}", "index")
    return block.op(f"arith.index_cast {low}", "index to i64")


_STEPS = 8


def _less(block: Body, x: str, y: str, dtype: np.dtype) -> str:
    """True if x precedes y in sorted order: NaN comes after all numbers."""
    kind = mlir_name(dtype)
    if not is_float(dtype):
        return block.op(f"arith.cmpi {'slt' if dtype.kind == 'i' else 'ult'}, {x}, {y}", kind)
    number = block.op(f"arith.cmpf ord, {x}, {x}", kind)
    below = block.op(f"arith.cmpf ult, {x}, {y}", kind)
    return block.op(f"arith.andi {number}, {below}", "i1")


def _not_less(block: Body, x: str, y: str, dtype: np.dtype) -> str:
    return block.op(f"arith.xori {_less(block, x, y, dtype)}, {block.constant(True, _BOOL)}", "i1")


@composed("sorting", np.lexsort, dtypes=ALL)
def lexsort(xp: Any, keys: Any, axis: int = -1) -> Any:
    """The positions that put several keys in order, the last key first."""
    rows = [xp.asarray(key) for key in keys]
    if not rows:
        raise ShapeError("lexsort: needs at least one key")
    if not rows[0].ndim:
        return xp.zeros((), dtype=np.int64)[()]  # a NumPy scalar
    order = xp.argsort(rows[0], axis=axis)
    for row in rows[1:]:
        step = xp.argsort(xp.take_along_axis(row, order, axis=axis), axis=axis)
        order = xp.take_along_axis(order, step, axis=axis)
    return order
