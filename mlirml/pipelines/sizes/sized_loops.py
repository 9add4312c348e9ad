"""The loops of one structured operation on memrefs of dynamic sizes."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence

from mlirml.analysis.structured import indexing_maps, reductions_of
from mlirml.codegen.cpu.nest import read_body
from mlirml.codegen.cpu.reduce.combiners import Reducer, is_nan, match_reducer, two_sum
from mlirml.codegen.cpu.reduce.rows import BLOCK, totals_of
from mlirml.errors import LoweringError
from mlirml.ir import emit
from mlirml.ir.bindings import defining_op, mlir
from mlirml.ir.location import source_location
from mlirml.passes import NoMatch
from mlirml.pipelines.sizes.position_loops import search_of
from mlirml.pipelines.sizes.subscripts import expression_uses, is_dense
from mlirml.pipelines.sizes.transposed_loops import Tiles, transposition_of

_WINDOW, _SHORT_PENALTY = 16, 100
_UNROLLED = 32
"""The points of a window, at most, that are computed one after another without a loop."""
ROWS = 4
"""The rows that sums along columns add at a time; one sum alone adds twice as many."""


class Loops:
    """The loops of one structured operation on memrefs and scalars."""

    def __init__(self, op: mlir.Operation, vector_bits: int = 0) -> None:
        self.op = op
        self.operands, self.maps = list(op.operands), indexing_maps(op)
        self.reduced = reductions_of(op)
        self.body = read_body(op)
        self.outs = len(self.body.yields)
        self.first_out = len(self.operands) - self.outs
        self.indices: list[mlir.Value | None] = [None] * len(self.reduced)
        self.hoisted: dict[mlir.Value, mlir.Value] = {}
        self.bounds: dict[int, tuple[mlir.Value, mlir.Value]] = {}  # of loops that do not go over all of their size
        self.transposition = transposition_of(self, self.innermost(), vector_bits)

    def prepare(self) -> None:
        """Emit what `build` needs before any loop around it."""
        if self.transposition is not None:
            self.transposition.make_buffers(self)

    def build(self, rows: Sequence[mlir.Value] = ()) -> None:
        """Emit the loops at the insertion point, which is in the first of them at the indices `rows`."""
        self.zero, self.one = emit.index(0), emit.index(1)
        outer = self.rows()[: len(rows)]
        for loop, i in zip(outer, rows, strict=True):
            self.indices[loop] = i
        sizes = [self.zero if d in outer else self.size(d) for d in range(len(self.reduced))]
        inner = self.innermost()
        inner = None if inner in outer else inner
        rest = [d for d in range(len(self.reduced)) if d != inner and d not in outer]
        parallel = [d for d in rest if not self.reduced[d]]
        reduced = [d for d in rest if self.reduced[d]]
        plan = self.transposition
        if plan is not None and plan.is_ready and plan.a not in outer and plan.b not in outer:
            self.nest([d for d in parallel if d != plan.a], sizes, Tiles(self, plan, sizes).build)
        elif inner is None or self.reduced[inner]:
            carried = [*reduced, *([inner] if inner is not None else [])]
            self.nest(parallel, sizes, lambda: self.accumulate(carried, sizes))
        elif reduced and (points := self.window(reduced)):
            self.nest(parallel, sizes, lambda: self.unrolled(reduced, points, inner, sizes))
        elif reduced and not any(self.uses(n, reduced[-1]) for n in range(self.first_out, len(self.operands))):
            self.nest([*parallel, *reduced[:-1]], sizes, lambda: self.columns(reduced[-1], inner, sizes))
        else:
            self.nest([*parallel, *reduced, inner], sizes, lambda: self.accumulate([], sizes), inner)

    def window(self, reduced: Sequence[int]) -> list[tuple[int, ...]]:
        """The indices of reduced loops that go over a small window of static size; none for other loops."""
        sizes = []
        for loop in reduced:
            if not self.is_window(loop):
                return []
            number, d = self.extent(loop)
            type_ = self.operands[number].type
            if type_.is_dynamic_dim(d) or any(self.uses(n, loop) for n in range(self.first_out, len(self.operands))):
                return []
            sizes.append(type_.shape[d])
        return list(itertools.product(*map(range, sizes))) if math.prod(sizes) <= _UNROLLED else []

    def unrolled(
        self, reduced: Sequence[int], points: Sequence[tuple[int, ...]], inner: int, sizes: Sequence[mlir.Value]
    ) -> None:
        """The innermost loop, in which the results of all points of a window stay in registers."""
        numbers = [*range(self.first_out, len(self.operands))]

        def enter(point: Sequence[int]) -> None:
            for loop, i in zip(reduced, point, strict=True):
                self.indices[loop] = emit.index(i)

        hoisted = []
        for point in points:
            enter(point)
            self.hoisted = {}
            self.hoist(inner)
            hoisted.append(self.hoisted)

        def body(j: mlir.Value, _: list[mlir.Value]) -> None:
            self.indices[inner] = j
            values = [self.load(number) for number in numbers]
            for point, known in zip(points, hoisted, strict=True):
                enter(point)
                self.hoisted = known
                environment = self.elements(dict(zip(self.body.arguments[self.first_out :], values, strict=True)))
                values = [environment.get(value, value) for value in self.body.yields]
            for number, value in zip(numbers, values, strict=True):
                self.store(number, value)

        emit.for_loop(*self.bounds.get(inner, (self.zero, sizes[inner])), self.one, body)

    def rows(self) -> list[int]:
        """The parallel loops that index the first dimensions of the output alone, in their order."""
        found: list[int] = []
        for expression in self.maps[-1].results:
            if not isinstance(expression, mlir.AffineDimExpr) or self.reduced[expression.position]:
                break
            found.append(expression.position)
        return found if len(set(found)) == len(found) else []

    def extent(self, loop: int) -> tuple[int, int]:
        """The number of an operand, and the dimension of it that a loop indexes alone."""
        for number, map_ in enumerate(self.maps):
            for d, expression in enumerate(map_.results):
                if isinstance(expression, mlir.AffineDimExpr) and expression.position == loop:
                    return number, d
        raise LoweringError("a loop of no known trip count", location=source_location(self.op.location))

    def size(self, loop: int) -> mlir.Value:
        """The trip count of a loop."""
        number, d = self.extent(loop)
        operand = self.operands[number]
        if not operand.type.is_dynamic_dim(d):
            return emit.index(operand.type.shape[d])
        return emit.value("memref.dim", [operand, emit.index(d)], mlir.IndexType.get())

    def innermost(self) -> int | None:
        """The loop along which fewest operands take steps other than 1, the last among equals; outputs count twice.

        It is none of those over windows, which are short, if there is another one.
        """
        penalties = [_SHORT_PENALTY if self.is_window(loop) else 0 for loop in range(len(self.reduced))]
        for number, (operand, map_) in enumerate(zip(self.operands, self.maps, strict=True)):
            weight = 2 if number >= len(self.operands) - self.outs else 1
            for d, expression in enumerate(map_.results):
                last = d == len(map_.results) - 1 and is_dense(operand.type)
                for loop in range(len(penalties)):
                    if expression_uses(expression, loop) and not (last and isinstance(expression, mlir.AffineDimExpr)):
                        penalties[loop] += weight
        return min(range(len(penalties)), key=lambda d: (penalties[d], -d), default=None)

    def is_window(self, loop: int) -> bool:
        """True for a short loop in a sum with another one."""
        sums = [e for map_ in self.maps for e in map_.results if isinstance(e, mlir.AffineAddExpr)]
        if not any(expression_uses(expression, loop) for expression in sums) or not self.reduced[loop]:
            return False
        number, d = self.extent(loop)
        kind = self.operands[number].type
        return not kind.is_dynamic_dim(d) and kind.shape[d] <= _WINDOW

    def nest(
        self, loops: Sequence[int], sizes: Sequence[mlir.Value], inner: Callable[[], None], innermost: int = -1
    ) -> None:
        """Loops without carried values around what `inner` builds."""
        if not loops:
            inner()
            return
        if loops[0] == innermost:
            self.hoist(innermost)

        def body(i: mlir.Value, _: list[mlir.Value]) -> None:
            self.indices[loops[0]] = i
            self.nest(loops[1:], sizes, inner, innermost)

        emit.for_loop(*self.bounds.get(loops[0], (self.zero, sizes[loops[0]])), self.one, body)

    def columns(self, rows: int, inner: int, sizes: Sequence[mlir.Value]) -> None:
        """A reduced loop around the innermost one: several rows at a time, so that outputs are loaded less often."""
        at_once = ROWS if self.outs > 1 else 2 * ROWS
        several = emit.index(at_once)
        rest = emit.same_type("arith.remui", sizes[rows], several)
        whole = emit.same_type("arith.subi", sizes[rows], rest)
        for first, last, count in ((self.zero, whole, at_once), (whole, sizes[rows], 1)):

            def body(i: mlir.Value, _: list[mlir.Value], count: int = count) -> None:
                self.add_rows(rows, inner, i, count, sizes)

            emit.for_loop(first, last, several if count > 1 else self.one, body)

    def add_rows(self, rows: int, inner: int, first: mlir.Value, count: int, sizes: Sequence[mlir.Value]) -> None:
        """The innermost loop for `count` rows from the first one on."""
        numbers = [*range(self.first_out, len(self.operands))]
        indices = [first, *(emit.same_type("arith.addi", first, emit.index(step)) for step in range(1, count))]
        hoisted = []
        for i in indices:
            self.indices[rows], self.hoisted = i, {}
            self.hoist(inner)
            hoisted.append(self.hoisted)

        def body(j: mlir.Value, _: list[mlir.Value]) -> None:
            self.indices[inner] = j
            values = [self.load(number) for number in numbers]
            for i, known in zip(indices, hoisted, strict=True):
                self.indices[rows], self.hoisted = i, known
                environment = self.elements(dict(zip(self.body.arguments[self.first_out :], values, strict=True)))
                values = [environment.get(value, value) for value in self.body.yields]
            for number, value in zip(numbers, values, strict=True):
                self.store(number, value)

        emit.for_loop(*self.bounds.get(inner, (self.zero, sizes[inner])), self.one, body)

    def hoist(self, loop: int) -> None:
        """Load the inputs that the innermost loop does not index before it: LLVM does not know that stores in the loop
        leave them as they are.
        """
        for number in range(self.first_out):
            argument = self.body.arguments[number]
            if self.body.reads(argument) and not self.uses(number, loop):
                self.hoisted[argument] = self.load(number)

    def uses(self, number: int, loop: int) -> bool:
        """True if a loop indexes an operand."""
        return any(expression_uses(expression, loop) for expression in self.maps[number].results)

    def accumulate(self, loops: Sequence[int], sizes: Sequence[mlir.Value]) -> None:
        """The reduced loops, which carry the elements of reduced outputs."""
        outputs = range(self.first_out, len(self.operands))
        carried = [n for n in outputs if loops and not any(self.uses(n, loop) for loop in loops)]
        reducers = self.reducers(carried)
        if reducers:
            Sums(self, reducers, list(loops), sizes).build()
            return
        search = search_of(self, list(loops), sizes[loops[0]]) if len(loops) == 1 and len(carried) == 2 else None
        if search is not None:
            search.build()
            return
        if loops:
            self.hoist(loops[-1])
        results = self.carried(list(loops), sizes, carried, [self.load(number) for number in carried])
        for number, result in zip(carried, results, strict=True):
            self.store(number, result)

    def reducers(self, carried: Sequence[int]) -> list[Reducer]:
        """The combiners of these outputs; none if one of them has no known one."""
        try:
            return [
                match_reducer(
                    n - self.first_out, self.body.yields[n - self.first_out], self.body.arguments[n], self.body
                )
                for n in carried
            ]
        except NoMatch:
            return []

    def carried(
        self, loops: list[int], sizes: Sequence[mlir.Value], numbers: Sequence[int], values: list[mlir.Value]
    ) -> list[mlir.Value]:
        """The values of these outputs after the loops, from those before them."""
        if not loops:
            environment = self.elements(dict(zip((self.body.arguments[n] for n in numbers), values, strict=True)))
            yields = [self.body.yields[n - self.first_out] for n in numbers]
            self.store_elements(environment, numbers)
            return [environment.get(value, value) for value in yields]

        def body(i: mlir.Value, inner: list[mlir.Value]) -> list[mlir.Value]:
            self.indices[loops[0]] = i
            return self.carried(loops[1:], sizes, numbers, inner)

        return emit.for_loop(self.zero, sizes[loops[0]], self.one, body, values)

    def elements(
        self, given: dict[mlir.Value, mlir.Value], skip: Sequence[mlir.Operation] = ()
    ) -> dict[mlir.Value, mlir.Value]:
        """Build the body for one element: the map of its values to the new ones."""
        environment = {**self.hoisted, **given}
        for number, argument in enumerate(self.body.arguments):
            if argument not in environment and self.body.reads(argument):
                environment[argument] = self.load(number)
        for op in self.body.ops:
            if op in skip:
                continue
            if op.name == "linalg.index":
                environment[op.results[0]] = self.variable(int(op.attributes["dim"].value))
            else:
                emit.body_op(op, environment)
        return environment

    def store_elements(self, environment: dict[mlir.Value, mlir.Value], carried: Sequence[int]) -> None:
        """Store the outputs that no loop carries."""
        for number, value in enumerate(self.body.yields, self.first_out):
            if number not in carried:
                self.store(number, environment.get(value, value))

    def store(self, number: int, value: mlir.Value) -> None:
        emit.create("memref.store", [value, self.operands[number], *self.subscripts(number)])

    def variable(self, loop: int) -> mlir.Value:
        found = self.indices[loop]
        assert found is not None
        return found

    def load(self, number: int) -> mlir.Value:
        """The element of an operand; a scalar itself."""
        operand = self.operands[number]
        if not isinstance(operand.type, mlir.MemRefType):
            return operand
        return emit.value("memref.load", [operand, *self.subscripts(number)], operand.type.element_type)

    def subscripts(self, number: int) -> list[mlir.Value]:
        """The subscripts of an operand in the innermost loop."""
        return [self.evaluated(expression) for expression in self.maps[number].results]

    def evaluated(self, expression: mlir.AffineExpr) -> mlir.Value:
        """A subscript as a value."""
        if isinstance(expression, mlir.AffineDimExpr):
            return self.variable(expression.position)
        if isinstance(expression, mlir.AffineConstantExpr):
            return emit.index(expression.value)
        name = {mlir.AffineAddExpr: "arith.addi", mlir.AffineMulExpr: "arith.muli"}.get(type(expression))
        if name is None:
            raise LoweringError(f"a subscript {expression}", location=source_location(self.op.location))
        return emit.same_type(name, self.evaluated(expression.lhs), self.evaluated(expression.rhs))


class Sums:
    """The reduced loops of an operation whose outputs have known combiners.

    As in `codegen/cpu/reduce/rows.py`: a maximum is one of numbers and a flag for NaN, and sums of floats are added up
    in blocks, whose totals are added with compensation.
    """

    def __init__(
        self, around: Loops, reducers: Sequence[Reducer], loops: list[int], sizes: Sequence[mlir.Value]
    ) -> None:
        self.around, self.reducers, self.loops, self.sizes = around, reducers, loops, sizes
        self.compensated = [reducer.is_float_sum and self.is_long() for reducer in reducers]
        self.numbers = [reducer.out + around.first_out for reducer in reducers]
        self.skip = [op for reducer in reducers for op in reducer.ops]

    def is_long(self) -> bool:
        """True unless the sums are known to have few terms."""
        lengths = [defining_op(self.sizes[loop]) for loop in self.loops]
        if any(op is None or op.name != "arith.constant" for op in lengths):
            return True
        return math.prod(mlir.IntegerAttr(op.attributes["value"]).value for op in lengths) > 2 * BLOCK  # type: ignore[union-attr]

    def build(self) -> None:
        """Build the loops; totals are combined with the outputs, which hold the inits."""
        state: list[mlir.Value] = []
        for reducer, twice in zip(self.reducers, self.compensated, strict=True):
            state += [reducer.identity()] * (2 if twice else 1)
        totals = totals_of(self.loop(self.loops, state), self.compensated)
        for reducer, number, total in zip(self.reducers, self.numbers, totals, strict=True):
            self.around.store(number, reducer.combine(self.around.load(number), total))

    def loop(self, loops: list[int], state: list[mlir.Value]) -> list[mlir.Value]:
        """The loops, which carry the state."""
        around, size = self.around, self.sizes[loops[0]]
        if len(loops) > 1:

            def outer(i: mlir.Value, carried: list[mlir.Value]) -> list[mlir.Value]:
                around.indices[loops[0]] = i
                return self.loop(loops[1:], carried)

            return emit.for_loop(around.zero, size, around.one, outer, state)
        around.hoist(loops[0])
        if not any(self.compensated):
            return self.absorbed(self.block(around.zero, size), state)
        step = emit.index(BLOCK)

        def block(i: mlir.Value, carried: list[mlir.Value]) -> list[mlir.Value]:
            end = emit.same_type("arith.minsi", emit.same_type("arith.addi", i, step), size)
            return self.absorbed(self.block(i, end), carried)

        return emit.for_loop(around.zero, size, step, block, state)

    def absorbed(self, totals: Sequence[mlir.Value], state: Sequence[mlir.Value]) -> list[mlir.Value]:
        """The state with the totals of one more block."""
        new: list[mlir.Value] = []
        rest = list(state)
        for reducer, total, twice in zip(self.reducers, totals, self.compensated, strict=True):
            before = rest.pop(0)
            new += two_sum(before, rest.pop(0), total) if twice else [reducer.combine(before, total)]
        return new

    def block(self, lower: mlir.Value, upper: mlir.Value) -> list[mlir.Value]:
        """The innermost loop, which LLVM vectorises: its totals."""
        state: list[mlir.Value] = []
        for reducer in self.reducers:
            state.append(reducer.identity())
            if reducer.is_nan_aware:
                state.append(emit.number(mlir.IntegerType.get_signless(1), 0))
        around = self.around
        arguments = [around.body.arguments[number] for number in self.numbers]

        def inner(i: mlir.Value, carried: list[mlir.Value]) -> list[mlir.Value]:
            around.indices[self.loops[-1]] = i
            environment = around.elements({argument: argument for argument in arguments}, self.skip)
            around.store_elements(environment, self.numbers)
            new, rest = [], list(carried)
            for reducer in self.reducers:
                value, before = environment.get(reducer.value, reducer.value), rest.pop(0)
                if reducer.is_nan_aware:
                    flag = emit.same_type("arith.ori", rest.pop(0), is_nan(value))
                    new += [reducer.combine_numbers(value, before), flag]
                else:
                    new.append(reducer.combine(before, value, fast=True))
            return new

        final = emit.for_loop(lower, upper, around.one, inner, state)
        totals = []
        for reducer in self.reducers:
            total = final.pop(0)
            if reducer.is_nan_aware:
                total = emit.same_type("arith.select", final.pop(0), emit.number(reducer.type, math.nan), total)
            totals.append(total)
        return totals
