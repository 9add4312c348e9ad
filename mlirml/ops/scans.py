"""Scans: cumulative sums, products and extrema, as loops that carry the last result; and differences of neighbours.

Along the last axis the carried value is a scalar, and several rows are computed side by side, since each waits for its
own last sum only. Along any other axis the carried value is the row over all later axes, in vectors. Sums are taken in
NumPy's order, so that floats have the same rounding errors.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from mlirml.core.dataclass import dataclass
from mlirml.core.sizes import is_size, same
from mlirml.errors import ShapeError
from mlirml.ir.text.builder import LOC, Body, Builder, Operand, Value
from mlirml.ir.text.dtypes import mlir_name, tensor_type
from mlirml.ops import elementwise as ew
from mlirml.ops.reductions import as_value, loop_dtype, normalized_axes, sum_dtype, with_axis
from mlirml.ops.registry import ALL, BOOL, INTEGERS, OpDef, composed, define, operation

_BOOL = np.dtype(np.bool_)
_ROWS = 4  # that run side by side along the last axis: as many as hide the latency of an addition
ScalarBody = Callable[[Body, list[str], np.dtype], str]

_ADD, _MULTIPLY = ew.combiner(np.add), ew.combiner(np.multiply)


def scan(b: Builder, value: Value, axis: int, dtype: np.dtype, body: ScalarBody) -> Value:
    """`result[i] = body(result[i - 1], value[i])` along an axis, in `dtype`; the first element stays what it is."""
    shape = value.shape
    if value.size == 0:
        return b.empty(shape, dtype)
    if same(shape[axis], 1):
        return b.cast(value, dtype)
    outer, inner = math.prod(shape[:axis]), math.prod(shape[axis + 1 :])
    walk = _Walk(value.dtype, dtype, outer, shape[axis], inner, body)
    if same(inner, 1):
        result = walk.rows(b, b.reshape(value, (outer, shape[axis])))
    else:
        result = walk.columns(b, b.reshape(value, (outer, shape[axis], inner)))
    return b.reshape(result, shape)


@dataclass(frozen=True)
class _Walk:
    """The loop nest of a scan along the middle one of three dimensions."""

    source: np.dtype
    dtype: np.dtype
    outer: int
    steps: int
    inner: int
    body: ScalarBody

    def rows(self, b: Builder, value: Value) -> Value:
        """Along the last of two dimensions, with scalars."""
        bounds = [b.index(n) for n in (0, 1, self.steps)]
        result, first = b.empty((self.outer, self.steps), self.dtype), 0
        for side in (1,) if is_size(self.outer) else (_ROWS, 1):
            last = self.outer - (self.outer - first) % side if side > 1 else self.outer
            if last > first:
                result = self._rows(b, value, result, bounds, (first, last, side))
            first = last
        return result

    def _rows(self, b: Builder, value: Value, out: Value, bounds: list[str], rows: tuple[int, int, int]) -> Value:
        zero, one, steps = bounds
        side = rows[2]
        low, high, stride = (b.index(n) for n in rows)
        kind = mlir_name(self.dtype)
        block = Body()
        row = ["%row"] + [block.op(f"arith.addi %row, {block.op(f'arith.constant {k}', 'index')}", "index")
                          for k in range(1, side)]  # fmt: skip
        starts, filled = [], "%out"
        for place in row:
            start = block.op(f"tensor.extract {value.name}[{place}, {zero}]", value.type)
            starts.append(block.cast(start, self.source, self.dtype))
            filled = block.op(f"tensor.insert {starts[-1]} into {filled}[{place}, {zero}]", out.type)
        carried = [f"%last{k}" for k in range(side)]
        pairs = ", ".join(f"{c} = {s}" for c, s in zip([*carried, "%sofar"], [*starts, filled]))
        types = ", ".join([kind] * side + [out.type])
        loop = Body(prefix="%t")
        sums, stored = [], "%sofar"
        for place, previous in zip(row, carried):
            x = loop.op(f"tensor.extract {value.name}[{place}, %i]", value.type)
            sums.append(self.body(loop, [previous, loop.cast(x, self.source, self.dtype)], self.dtype))
            stored = loop.op(f"tensor.insert {sums[-1]} into {stored}[{place}, %i]", out.type)
        loop.lines.append(f"scf.yield {', '.join([*sums, stored])} : {types}{LOC}")
        block.lines.append(
            f"%done:{side + 1} = scf.for %i = {one} to {steps} step {one} iter_args({pairs}) -> ({types}) {{\n"
            + "\n".join(loop.lines)
            + f"\n}} {{mlirml.scan}}{LOC}"
        )
        block.lines.append(f"scf.yield %done#{side} : {out.type}{LOC}")
        return b.op(
            f"scf.for %row = {low} to {high} step {stride} iter_args(%out = {out.name}) -> ({out.type}) {{\n"
            + "\n".join(block.lines)
            + "\n} {mlirml.scan}",
            out.shape,
            out.dtype,
        )

    def columns(self, b: Builder, value: Value) -> Value:
        """Along the middle of three dimensions, with vectors."""
        one, steps = b.index(1), b.index(self.steps)
        is_one = same(self.outer, 1)
        shape = (self.inner,) if is_one else (self.outer, self.inner)
        out, empty = b.empty(value.shape, self.dtype), b.empty(shape, self.dtype)
        part, result, kind = tensor_type(shape, self.source), empty.type, mlir_name(self.dtype)
        sizes = f"{b.sizes.listed([self.outer, 1, self.inner])} [1, 1, 1]"
        first = b.extract_slice(value, [0, 0, 0], [self.outer, 1, self.inner], [1, 1, 1], [0, 1] if is_one else [1])
        start = b.generic([first], [range(len(shape))], empty, range(len(shape)), ["parallel"] * len(shape),
                          lambda block, xs, _: block.cast(xs[0], self.source, self.dtype))  # fmt: skip
        begun = b.insert_slice(start, out, [0, 0, 0], [self.outer, 1, self.inner], [1, 1, 1])
        block = Body()
        total = self.body(block, ["%last", block.cast("%x", self.source, self.dtype)], self.dtype)
        dims = ", ".join(f"d{i}" for i in range(len(shape)))
        maps = ", ".join([f"affine_map<({dims}) -> ({dims})>"] * 3)
        iterators = ", ".join(['"parallel"'] * len(shape))
        lines = [
            f"%next = tensor.extract_slice {value.name}[0, %i, 0] {sizes} : {value.type} to {part}{LOC}",
            f"%place = tensor.extract_slice %sofar[0, %i, 0] {sizes} : {out.type} to {result}{LOC}",
            f"%new:2 = linalg.generic {{indexing_maps = [{maps}], iterator_types = [{iterators}]}} "
            f"ins(%next : {part}) outs(%sum, %place : {result}, {result}) {{",
            f"^bb0(%x: {mlir_name(self.source)}{LOC}, %last: {kind}{LOC}, %old: {kind}{LOC}):",
            *block.lines,
            f"linalg.yield {total}, {total} : {kind}, {kind}{LOC}",
            f"}} -> ({result}, {result}){LOC}",
            f"%stored = tensor.insert_slice %new#1 into %sofar[0, %i, 0] {sizes} : {result} into {out.type}{LOC}",
            f"scf.yield %new#0, %stored : {result}, {out.type}{LOC}",
        ]
        return b.op2(
            f"scf.for %i = {one} to {steps} step {one} iter_args(%sum = {start.name}, %sofar = {begun.name}) "
            f"-> ({result}, {out.type}) {{\n" + "\n".join(lines) + "\n} {mlirml.scan}",
            empty,
            out,
        )[1]


def _along(name: str, b: Builder, a: Operand, axis: Any) -> tuple[Value, int]:
    """The array, flattened where no axis is given, and the axis."""
    value = as_value(b, a)
    if axis is None:
        return b.reshape(value, (value.size,)), 0
    if not value.shape and not name.startswith("cum"):
        raise ShapeError(f"{name}: a 0-d array has no axis {axis}")
    value = with_axis(b, value)
    return value, normalized_axes(name, value.shape, axis)[0]


@operation("scan", np.cumsum, dtypes=ALL, methods=("cumsum",), scalars=False)
def cumsum(b: Builder, a: Operand, axis: Any = None, dtype: Any = None, out: None = None) -> Value:
    """Running sums along an axis, of the flattened array without one; small integers add up in 64 bits."""
    value, place = _along("cumsum", b, a, axis)
    return scan(b, value, place, sum_dtype("cumsum", value, dtype), _ADD)


@operation("scan", np.cumprod, dtypes=ALL, methods=("cumprod",), scalars=False, domain=(0.5, 1.5))
def cumprod(b: Builder, a: Operand, axis: Any = None, dtype: Any = None, out: None = None) -> Value:
    """Running products along an axis, of the flattened array without one; small integers multiply in 64 bits."""
    value, place = _along("cumprod", b, a, axis)
    return scan(b, value, place, sum_dtype("cumprod", value, dtype), _MULTIPLY)


def _accumulate(name: str, ufunc: np.ufunc, dtypes: tuple[str, ...], doc: str, body: ScalarBody | None = None) -> OpDef:
    """The record of `ufunc.accumulate`; without a body, that of the combiner."""
    combine = body or ew.combiner(ufunc)

    def build(b: Builder, array: Operand, axis: Any = 0, dtype: Any = None, out: None = None) -> Value:
        value, place = _along(f"{ufunc.__name__}.accumulate", b, array, axis)
        if ufunc in (np.add, np.multiply):
            kind = sum_dtype(name, value, dtype)
        elif ufunc in (np.logical_and, np.logical_or):
            kind = _BOOL
        else:
            kind = loop_dtype(name, ufunc, value.dtype, dtype)
        return scan(b, value, place, kind, combine)

    return define(OpDef(name, "scan", ufunc.accumulate, build, dtypes, doc, scalars=False))


_accumulate("add_accumulate", np.add, ALL, "Running sums along an axis.")
_accumulate("multiply_accumulate", np.multiply, ALL, "Running products.")
cummax = _accumulate("cummax", np.maximum, ALL, "The largest element so far along an axis; NaN wins.")
cummin = _accumulate("cummin", np.minimum, ALL, "The smallest element so far along an axis; NaN wins.")
_accumulate("logical_and_accumulate", np.logical_and, ALL, "Whether all elements so far are true.", _MULTIPLY)
_accumulate("logical_or_accumulate", np.logical_or, ALL, "Whether some element so far is true.", _ADD)
_accumulate("bitwise_and_accumulate", np.bitwise_and, BOOL + INTEGERS, "Running ands.")
_accumulate("bitwise_or_accumulate", np.bitwise_or, BOOL + INTEGERS, "Running ors.")
_accumulate("bitwise_xor_accumulate", np.bitwise_xor, BOOL + INTEGERS, "Running xors.")


def _cumulative(xp: Any, name: str, function: Any, first: int, x: Any, axis: Any, dtype: Any, initial: bool) -> Any:
    x = xp.asarray(x)
    if not x.ndim:
        raise ShapeError(f"{name}: a 0-d array has nothing to add up", help="use `np.atleast_1d(x)`")
    if axis is None:
        if x.ndim > 1:
            raise ShapeError(f"{name}: give the axis of an array of {x.ndim} dimensions")
        axis = 0
    (place,) = normalized_axes(name, x.shape, axis)
    result = function(x, axis=place, dtype=dtype)
    if not initial:
        return result
    start = xp.full((*x.shape[:place], 1, *x.shape[place + 1 :]), first, dtype=result.dtype)
    return xp.concatenate([start, result], axis=place)


if hasattr(np, "cumulative_sum"):  # since NumPy 2.1

    @composed("scan", np.cumulative_sum, dtypes=ALL)
    def cumulative_sum(
        xp: Any, x: Any, /, *, axis: Any = None, dtype: Any = None, out: None = None, include_initial: bool = False
    ) -> Any:
        """Cumulative sums along an axis, with a leading 0 if `include_initial`."""
        return _cumulative(xp, "cumulative_sum", xp.cumsum, 0, x, axis, dtype, include_initial)

    @composed("scan", np.cumulative_prod, dtypes=ALL, domain=(0.5, 1.5))
    def cumulative_prod(
        xp: Any, x: Any, /, *, axis: Any = None, dtype: Any = None, out: None = None, include_initial: bool = False
    ) -> Any:
        """Cumulative products along an axis, with a leading 1 if `include_initial`."""
        return _cumulative(xp, "cumulative_prod", xp.cumprod, 1, x, axis, dtype, include_initial)


@composed("scan", np.nancumsum, dtypes=ALL)
def nancumsum(xp: Any, a: Any, axis: Any = None, dtype: Any = None, out: None = None) -> Any:
    """Running sums along an axis, NaN taken as 0."""
    a = xp.asarray(a)
    if np.issubdtype(a.dtype, np.inexact):  # NumPy leaves the NaN of a bfloat16
        a = xp.where(xp.isnan(a), xp.zeros((), a.dtype), a)
    return xp.cumsum(a, axis=axis, dtype=dtype)


@composed("scan", np.nancumprod, dtypes=ALL, domain=(0.5, 1.5))
def nancumprod(xp: Any, a: Any, axis: Any = None, dtype: Any = None, out: None = None) -> Any:
    """Running products along an axis, NaN taken as 1."""
    a = xp.asarray(a)
    if np.issubdtype(a.dtype, np.inexact):  # NumPy leaves the NaN of a bfloat16
        a = xp.where(xp.isnan(a), xp.ones((), a.dtype), a)
    return xp.cumprod(a, axis=axis, dtype=dtype)


@composed("scan", np.diff, dtypes=ALL)
def diff(xp: Any, a: Any, n: int = 1, axis: int = -1, prepend: Any = None, append: Any = None) -> Any:
    """Differences of neighbours along an axis, n times; of truth values, whether they differ."""
    a = xp.asarray(a)
    count = int(n.__index__())
    if count == 0:
        return a
    if count < 0:
        raise ShapeError(f"diff: n cannot be negative, got {count}")
    if not a.ndim:
        raise ShapeError("diff: needs at least 1 dimension")
    (place,) = normalized_axes("diff", a.shape, axis)
    ends = []
    for end in (prepend, append):
        if end is not None and end is not np._NoValue:
            end = xp.asarray(end)
            if not end.ndim:
                end = xp.broadcast_to(end, tuple(1 if i == place else m for i, m in enumerate(a.shape)))
            ends.append(end)
        else:
            ends.append(None)
    if any(end is not None for end in ends):
        a = xp.concatenate([x for x in (ends[0], a, ends[1]) if x is not None], axis=place)
    subtract = xp.not_equal if a.dtype == np.bool_ else xp.subtract
    before, after = ((*[slice(None)] * place, cut) for cut in (slice(None, -1), slice(1, None)))
    for _ in range(count):
        a = subtract(a[after], a[before])
    return a
