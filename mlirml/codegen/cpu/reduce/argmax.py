"""Loops for argmax and argmin along a row: the extremum of each block first, then its index only if the block wins.

For each block of a row:
    m = max(block)                                       vectorised
    if m > best:                                         rare after the first blocks
        best, index = m, first i with block[i] == m      vectorised as a minimum
"""  # fmt: skip

from __future__ import annotations

import math
from collections.abc import Sequence

from mlirml.analysis.cost import element_bytes
from mlirml.analysis.reductions import argmaxes_of, extreme_of
from mlirml.analysis.structured import index_dim
from mlirml.codegen.cpu.frame import Cursor, Frame
from mlirml.codegen.cpu.nest import Access, Body, Nest
from mlirml.codegen.cpu.reduce.combiners import Reducer, is_nan, not_nan
from mlirml.codegen.cpu.reduce.lanes import needed_ops
from mlirml.core.dataclass import dataclass
from mlirml.ir import emit
from mlirml.ir.bindings import mlir
from mlirml.passes import NoMatch

BLOCK = 1024
"""The maximal number of elements of a block; wide ones make it as many bytes as 1024 of four bytes."""
_PART = 8
"""The divisor of the block length in rows of few blocks, as the index is searched in a whole block."""


@dataclass(frozen=True)
class Position:
    """Outputs `value` and `index`: the extremum of `operand` by `reducer`, and its first index."""

    reducer: Reducer
    operand: mlir.Value
    value: int
    index: int

    def needed(self, body: Body) -> list[mlir.Operation]:
        """The operations of the body that the compared value needs."""
        return needed_ops(body, [self.operand])


def match_position(nest: Nest, body: Body) -> Position:
    """The argmax or argmin of a nest."""
    loops = [loop for loop, reduced in zip(nest.origin, nest.reduction, strict=True) if reduced]
    return position_of(body, nest.num_outputs, loops)


def position_of(body: Body, outputs: int, loops: Sequence[int]) -> Position:
    """The argmax or argmin of a body with these reduced loops; raises `NoMatch` for another body."""
    if outputs != 2 or len(loops) != 1:
        raise NoMatch("not two outputs and one reduction loop")
    arguments = body.arguments[len(body.arguments) - 2 :]
    found = next(argmaxes_of(body.yields, arguments, lambda value: index_dim(value) == loops[0]), None)
    combiner = None if found is None else extreme_of(found.better, found.term, arguments[found.value])
    if found is None or combiner is None:
        raise NoMatch("no extreme and its index")
    reducer = Reducer(combiner, found.term.type, [], found.term, found.value)
    return Position(reducer, found.term, found.value, found.index)


@dataclass(frozen=True)
class Search:
    """Builds the search of one row."""

    frame: Frame
    nest: Nest
    body: Body
    plan: Position
    inits: dict[mlir.Value, mlir.Value]

    @property
    def outputs(self) -> list[Access]:
        """The outputs for the value and the index."""
        return [self.nest.out(self.plan.value), self.nest.out(self.plan.index)]

    def first(self, cursor: Cursor) -> list[mlir.Value]:
        """The init of the value and the index of a row."""
        arguments = self.body.arguments[len(self.body.arguments) - 2 :]
        known = [self.inits.get(arguments[number]) for number in (self.plan.value, self.plan.index)]
        return [cursor.load(out) if init is None else init for init, out in zip(known, self.outputs, strict=True)]

    def operand_at(self, cursor: Cursor, i: mlir.Value) -> mlir.Value:
        """The compared value at index `i` of the row."""
        here = cursor.enter(self.nest.rank - 1, i)
        arguments = self.body.arguments[len(self.body.arguments) - 2 :]
        hidden = {argument: argument for argument in arguments}
        needed = self.plan.needed(self.body)
        skip = [op for op in self.body.ops if op not in needed]
        environment = here.run(self.body, here.arguments(self.body, hidden), skip)
        return environment.get(self.plan.operand, self.plan.operand)

    @property
    def block_length(self) -> int:
        """The number of elements in a block."""
        most = min(BLOCK, 4 * BLOCK // element_bytes(self.plan.operand.type))
        return most if self.nest.sizes[-1] >= 4 * most else max(most // _PART, 1)

    def row(self, cursor: Cursor) -> None:
        """Build the search of one row."""
        frame, size = self.frame, self.nest.sizes[-1]
        state = self.first(cursor)
        length = self.block_length
        whole = size // length * length
        if whole:
            state = emit.for_loop(
                frame.index(0),
                frame.index(whole),
                frame.index(length),
                lambda i, carried: self.block(cursor, i, frame.add(i, frame.index(length)), carried),
                state,
            )
        if whole < size:
            state = self.block(cursor, frame.index(whole), frame.index(size), state)
        for value, out in zip(state, self.outputs, strict=True):
            cursor.store(value, out)

    def block(self, cursor: Cursor, lower: mlir.Value, upper: mlir.Value, state: list[mlir.Value]) -> list[mlir.Value]:
        """The value and index after one more block."""
        best, index = state
        extremum = self.extremum(cursor, lower, upper)
        types = [best.type, index.type]
        return emit.conditional(
            self.is_better(extremum, best),
            lambda: [extremum, self.find(cursor, lower, upper, extremum, index.type)],
            lambda: [best, index],
            types,
        )

    def extremum(self, cursor: Cursor, lower: mlir.Value, upper: mlir.Value) -> mlir.Value:
        """The extremum of a block; NaN if it contains one."""
        reducer, one = self.plan.reducer, self.frame.index(1)
        if not reducer.is_nan_aware:

            def best_of(i: mlir.Value, carried: list[mlir.Value]) -> list[mlir.Value]:
                return [reducer.combine(carried[0], self.operand_at(cursor, i), fast=True)]

            return emit.for_loop(lower, upper, one, best_of, [reducer.identity()])[0]

        def step(i: mlir.Value, carried: list[mlir.Value]) -> list[mlir.Value]:
            x = self.operand_at(cursor, i)
            return [reducer.combine_numbers(x, carried[0]), emit.same_type("arith.ori", carried[1], is_nan(x))]

        flag, nan = emit.number(mlir.IntegerType.get_signless(1), 0), emit.number(reducer.type, math.nan)
        best, found = emit.for_loop(lower, upper, one, step, [reducer.identity(), flag])
        return emit.same_type("arith.select", found, nan, best)

    def is_better(self, value: mlir.Value, best: mlir.Value) -> mlir.Value:
        """True if a value wins over the best one so far."""
        better = emit.compare(self.plan.reducer.combiner.better, value, best)
        if not self.plan.reducer.is_nan_aware:
            return better
        return emit.same_type("arith.ori", better, emit.same_type("arith.andi", is_nan(value), not_nan(best)))

    def find(
        self, cursor: Cursor, lower: mlir.Value, upper: mlir.Value, value: mlir.Value, type_: mlir.Type
    ) -> mlir.Value:
        """The first index from `lower` to `upper` with this value, which is there."""
        frame = self.frame
        number_type = mlir.IntegerType.get_signless(32 if self.nest.sizes[-1] < 1 << 31 else 64)
        none = emit.number(number_type, (1 << number_type.width - 1) - 1)

        def step(i: mlir.Value, carried: list[mlir.Value]) -> list[mlir.Value]:
            x = self.operand_at(cursor, i)
            same = emit.compare("oeq" if isinstance(x.type, mlir.FloatType) else "eq", x, value)
            if self.plan.reducer.is_nan_aware:
                same = emit.same_type("arith.ori", same, emit.same_type("arith.andi", is_nan(x), is_nan(value)))
            number = emit.value("arith.index_cast", [emit.same_type("arith.subi", i, lower)], number_type)
            here = emit.same_type("arith.select", same, number, none)
            return [emit.same_type("arith.minsi", carried[0], here)]

        offset = emit.for_loop(lower, upper, frame.index(1), step, [none])[0]
        index = frame.add(lower, emit.value("arith.index_cast", [offset], lower.type))
        return index if isinstance(type_, mlir.IndexType) else emit.value("arith.index_cast", [index], type_)
