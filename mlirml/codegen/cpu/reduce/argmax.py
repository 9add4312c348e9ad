"""Loops for argmax and argmin along a row: the extremum of each block first, then its index only if the block wins.

For each block of a row:
    m = max(block)                                       vectorised
    if m > best:                                         rare after the first blocks
        best, index = m, first i with block[i] == m      vectorised as a minimum
"""  # fmt: skip

from __future__ import annotations

import math
from collections.abc import Sequence

from mlirml.analysis.values import uses_any
from mlirml.codegen.cpu.frame import Cursor, Frame
from mlirml.codegen.cpu.nest import Access, Body, Nest, element_bytes
from mlirml.codegen.cpu.reduce.combiners import Reducer, is_nan, not_nan
from mlirml.core.dataclass import dataclass
from mlirml.ir import emit
from mlirml.ir.bindings import defining_op, mlir
from mlirml.passes import NoMatch

BLOCK = 1024
"""The maximal number of elements of a block; wide ones make it as many bytes as 1024 of four bytes."""
_PART = 8
"""The divisor of the block length in rows of few blocks, as the index is searched in a whole block."""

_BETTER = {
    "maxsi": "sgt", "minsi": "slt", "maxui": "ugt", "minui": "ult", "maximumf": "ogt", "minimumf": "olt",
    "maxnumf": "ogt", "minnumf": "olt",
}  # fmt: skip
_PAST_NAN = {"maximumf": "maxnumf", "minimumf": "minnumf"}


@dataclass(frozen=True)
class Position:
    """Outputs `value` and `index`: the extremum of `operand` by `reducer`, and its first index."""

    reducer: Reducer
    operand: mlir.Value
    value: int
    index: int


def match_position(nest: Nest, body: Body) -> Position:
    """Recognise `better = x > best; yield select(better, x, best), select(better, index, place)`."""
    if nest.num_outputs != 2 or sum(nest.reduction) != 1:
        raise NoMatch("not two outputs and one reduction loop")
    arguments = body.arguments[len(body.arguments) - 2 :]
    index = next((n for n in range(2) if is_index_select(nest, body, n, arguments[n])), None)
    if index is None:
        raise NoMatch("no output is an index")
    value = 1 - index
    better = operation(body.yields[index], "arith.select").operands[0]
    operand, short = match_better(better, arguments[value])
    check_value(body.yields[value], better, operand, arguments[value], short)
    depends = {arguments[0], arguments[1]}
    for op in body.ops:
        if uses_any(op, depends):
            depends.update(op.results)
    if operand in depends:
        raise NoMatch("what is compared depends on the best value")
    owner = operation(body.yields[index], "arith.select")
    return Position(Reducer(f"arith.{short}", operand.type, owner, operand, value), operand, value, index)


def operation(value: mlir.Value, name: str) -> mlir.Operation:
    """The operation of this name that defines a value."""
    op = defining_op(value)
    if op is None or op.name != name:
        raise NoMatch(f"not a result of {name}")
    return op


def is_index_select(nest: Nest, body: Body, number: int, argument: mlir.Value) -> bool:
    """True if an output is `select(better, index of the reduced loop, argument)`."""
    op = defining_op(body.yields[number])
    if op is None or op.name != "arith.select" or op.operands[2] != argument:
        return False
    source = defining_op(op.operands[1])
    if source is not None and source.name == "arith.index_cast":
        source = defining_op(source.operands[0])
    reduced = nest.reduction.index(True)
    if source is None or source.name != "linalg.index":
        return False
    return bool(source.attributes["dim"].value == nest.origin[reduced])


def match_better(better: mlir.Value, best: mlir.Value) -> tuple[mlir.Value, str]:
    """The value that is compared with `best`, and the extremum that implies: with NaN winning, or ignored."""
    op = defining_op(better)
    if op is None:
        raise NoMatch("the comparison comes from outside")
    if op.name == "arith.cmpi":
        return compared_operand(op, best, emit.INTEGER_PREDICATES)
    if op.name == "arith.cmpf":
        x, short = compared_operand(op, best, emit.FLOAT_PREDICATES)
        return x, _PAST_NAN[short]
    if op.name != "arith.ori":
        raise NoMatch("no comparison")
    compare, nans = operation(op.operands[0], "arith.cmpf"), operation(op.operands[1], "arith.andi")
    x, short = compared_operand(compare, best, emit.FLOAT_PREDICATES)
    tests = {(test.attributes["predicate"].value, *test.operands) for test in map(float_comparison, nans.operands)}
    if tests != {(emit.FLOAT_PREDICATES["uno"], x, x), (emit.FLOAT_PREDICATES["ord"], best, best)}:
        raise NoMatch("the comparison is another one")
    return x, short


def compared_operand(op: mlir.Operation, best: mlir.Value, predicates: dict[str, int]) -> tuple[mlir.Value, str]:
    """`x` and the extremum that `x predicate best` selects."""
    for short, predicate in _BETTER.items():
        if predicates.get(predicate) == op.attributes["predicate"].value and op.operands[1] == best:
            return op.operands[0], short
    raise NoMatch("the comparison is another one")


def float_comparison(value: mlir.Value) -> mlir.Operation:
    return operation(value, "arith.cmpf")


def check_value(value: mlir.Value, better: mlir.Value, operand: mlir.Value, best: mlir.Value, short: str) -> None:
    """Check that the value output is `select(better, x, best)`, or the equivalent maximum or minimum."""
    op = defining_op(value)
    operands = list(op.operands) if op is not None else []
    if op is None or not (
        (op.name == "arith.select" and operands == [better, operand, best])
        or (op.name == f"arith.{short}" and operands in ([operand, best], [best, operand]))
    ):
        raise NoMatch("the value is not the one that was compared")


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
        needed = self.needed()
        skip = [op for op in self.body.ops if op not in needed]
        environment = here.run(self.body, here.arguments(self.body, hidden), skip)
        return environment.get(self.plan.operand, self.plan.operand)

    def needed(self) -> list[mlir.Operation]:
        """The operations that the compared value needs."""
        wanted, found = {self.plan.operand}, []
        for op in reversed(self.body.ops):
            if any(result in wanted for result in op.results):
                wanted.update(op.operands)
                found.append(op)
        return found

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
        return self.extrema([cursor], lower, upper)[0]

    def extrema(self, cursors: Sequence[Cursor], lower: mlir.Value, upper: mlir.Value) -> list[mlir.Value]:
        """The extrema of a block of each of some rows, which are read at the same time."""
        reducer, one = self.plan.reducer, self.frame.index(1)
        if not reducer.is_nan_aware:
            return emit.for_loop(
                lower,
                upper,
                one,
                lambda i, carried: [
                    reducer.combine(best, self.operand_at(cursor, i), fast=True)
                    for cursor, best in zip(cursors, carried, strict=True)
                ],
                [reducer.identity()] * len(cursors),
            )

        def step(i: mlir.Value, carried: list[mlir.Value]) -> list[mlir.Value]:
            values = [self.operand_at(cursor, i) for cursor in cursors]
            new = [reducer.combine_numbers(x, best) for x, best in zip(values, carried, strict=False)]
            flags = carried[len(cursors) :]
            return new + [emit.same_type("arith.ori", flag, is_nan(x)) for x, flag in zip(values, flags, strict=True)]

        flag, nan = emit.number(mlir.IntegerType.get_signless(1), 0), emit.number(reducer.type, math.nan)
        found = emit.for_loop(lower, upper, one, step, [*[reducer.identity()] * len(cursors), *[flag] * len(cursors)])
        best, nans = found[: len(cursors)], found[len(cursors) :]
        return [emit.same_type("arith.select", flag, nan, value) for value, flag in zip(best, nans, strict=True)]

    def is_better(self, value: mlir.Value, best: mlir.Value) -> mlir.Value:
        """True if a value wins over the best one so far."""
        better = emit.compare(_BETTER[self.plan.reducer.short], value, best)
        if not self.plan.reducer.is_nan_aware:
            return better
        return emit.same_type("arith.ori", better, emit.same_type("arith.andi", is_nan(value), not_nan(best)))

    def find(
        self, cursor: Cursor, lower: mlir.Value, upper: mlir.Value, value: mlir.Value, type_: mlir.Type
    ) -> mlir.Value:
        """The first index of a block with this value."""
        frame, i32 = self.frame, mlir.IntegerType.get_signless(32)
        none = emit.number(i32, BLOCK)

        def step(i: mlir.Value, carried: list[mlir.Value]) -> list[mlir.Value]:
            x = self.operand_at(cursor, i)
            same = emit.compare("oeq" if isinstance(x.type, mlir.FloatType) else "eq", x, value)
            if self.plan.reducer.is_nan_aware:
                same = emit.same_type("arith.ori", same, emit.same_type("arith.andi", is_nan(x), is_nan(value)))
            number = emit.value("arith.index_cast", [emit.same_type("arith.subi", i, lower)], i32)
            here = emit.same_type("arith.select", same, number, none)
            return [emit.same_type("arith.minsi", carried[0], here)]

        offset = emit.for_loop(lower, upper, frame.index(1), step, [none])[0]
        index = frame.add(lower, emit.value("arith.index_cast", [offset], lower.type))
        return index if isinstance(type_, mlir.IndexType) else emit.value("arith.index_cast", [index], type_)
