"""The index of an extreme of a row of dynamic length: the extreme of each block, then its index if the block wins.

As in `codegen/cpu/reduce/argmax.py`, whose two loops over a block LLVM vectorises.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from mlirml.codegen.cpu.reduce.argmax import BLOCK, Position, position_of
from mlirml.codegen.cpu.reduce.combiners import is_nan, not_nan
from mlirml.ir import emit
from mlirml.ir.bindings import mlir
from mlirml.passes import NoMatch

if TYPE_CHECKING:
    from mlirml.pipelines.sizes.sized_loops import Loops


def search_of(around: Loops, loops: list[int], size: mlir.Value) -> Search | None:
    """The search of an operation with two outputs along one innermost loop; None if it is no argmax or argmin."""
    try:
        return Search(around, position_of(around.body, around.outs, loops), loops[0], size)
    except NoMatch:
        return None


class Search:
    """Builds the search along one loop."""

    def __init__(self, around: Loops, plan: Position, loop: int, size: mlir.Value) -> None:
        self.around, self.plan, self.loop, self.size = around, plan, loop, size
        needed = plan.needed(around.body)
        self.skip = [op for op in around.body.ops if op not in needed]

    def build(self) -> None:
        """Emit the loops over blocks, and store the extreme and its index."""
        around, first = self.around, self.around.first_out
        around.hoist(self.loop)
        numbers = [first + self.plan.value, first + self.plan.index]
        step = emit.index(BLOCK)

        def block(i: mlir.Value, state: list[mlir.Value]) -> list[mlir.Value]:
            return self.block(i, emit.same_type("arith.minsi", emit.same_type("arith.addi", i, step), self.size), state)

        inits = [around.load(number) for number in numbers]
        state = emit.for_loop(around.zero, self.size, step, block, inits)
        for number, value in zip(numbers, state, strict=True):
            around.store(number, value)

    def block(self, lower: mlir.Value, upper: mlir.Value, state: list[mlir.Value]) -> list[mlir.Value]:
        """The value and index after one more block."""
        best, index = state
        extreme = self.extreme(lower, upper)
        return emit.conditional(
            self.is_better(extreme, best),
            lambda: [extreme, self.find(lower, upper, extreme, index.type)],
            lambda: [best, index],
            [best.type, index.type],
        )

    def operand_at(self, i: mlir.Value) -> mlir.Value:
        """The compared value at an index."""
        around = self.around
        around.indices[self.loop] = i
        hidden = {argument: argument for argument in around.body.arguments[around.first_out :]}
        return around.elements(hidden, self.skip).get(self.plan.operand, self.plan.operand)

    def extreme(self, lower: mlir.Value, upper: mlir.Value) -> mlir.Value:
        """The extreme of a block; NaN if it contains one."""
        reducer = self.plan.reducer
        flag = emit.number(mlir.IntegerType.get_signless(1), 0)

        def step(i: mlir.Value, carried: list[mlir.Value]) -> list[mlir.Value]:
            x = self.operand_at(i)
            if not reducer.is_nan_aware:
                return [reducer.combine(carried[0], x, fast=True)]
            return [reducer.combine_numbers(x, carried[0]), emit.same_type("arith.ori", carried[1], is_nan(x))]

        inits = [reducer.identity(), *([flag] if reducer.is_nan_aware else [])]
        best, *found = emit.for_loop(lower, upper, self.around.one, step, inits)
        if not found:
            return best
        return emit.same_type("arith.select", found[0], emit.number(reducer.type, math.nan), best)

    def is_better(self, value: mlir.Value, best: mlir.Value) -> mlir.Value:
        """True if a value wins over the best one so far."""
        better = emit.compare(self.plan.reducer.combiner.better, value, best)
        if not self.plan.reducer.is_nan_aware:
            return better
        return emit.same_type("arith.ori", better, emit.same_type("arith.andi", is_nan(value), not_nan(best)))

    def find(self, lower: mlir.Value, upper: mlir.Value, value: mlir.Value, type_: mlir.Type) -> mlir.Value:
        """The first index from `lower` to `upper` with this value, which is there."""
        number_type = mlir.IntegerType.get_signless(32)
        none = emit.number(number_type, (1 << 31) - 1)

        def step(i: mlir.Value, carried: list[mlir.Value]) -> list[mlir.Value]:
            x = self.operand_at(i)
            same = emit.compare("oeq" if isinstance(x.type, mlir.FloatType) else "eq", x, value)
            if self.plan.reducer.is_nan_aware:
                same = emit.same_type("arith.ori", same, emit.same_type("arith.andi", is_nan(x), is_nan(value)))
            number = emit.value("arith.index_cast", [emit.same_type("arith.subi", i, lower)], number_type)
            return [emit.same_type("arith.minsi", carried[0], emit.same_type("arith.select", same, number, none))]

        offset = emit.for_loop(lower, upper, self.around.one, step, [none])[0]
        index = emit.same_type("arith.addi", lower, emit.value("arith.index_cast", [offset], lower.type))
        return index if isinstance(type_, mlir.IndexType) else emit.value("arith.index_cast", [index], type_)
