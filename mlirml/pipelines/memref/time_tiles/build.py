"""Build the loops over tiles in time and rows."""

from __future__ import annotations

from functools import partial

from mlirml.analysis.captures import Captures
from mlirml.analysis.constants import constant_of
from mlirml.codegen.cpu.elementwise.loops import nested
from mlirml.codegen.cpu.frame import Cursor, Frame
from mlirml.ir import emit
from mlirml.ir.bindings import block_ops, mlir
from mlirml.pipelines.memref.outline_parallel import build_function, noalias
from mlirml.pipelines.memref.time_tiles.match import Stencil, TimeLoop
from mlirml.pipelines.memref.time_tiles.plan import Plan


def build_tiles(time: TimeLoop, plan: Plan, main: mlir.Operation, number: int) -> None:
    """Replace a time loop of @main by the loops over its tiles."""
    for op in time.outside:
        op.move_before(time.loop)
    with time.loop.location, mlir.InsertionPoint(time.loop):
        Tiles(time, plan, main, number).build()
    time.loop.erase()


class Tiles:
    """The tile loops, outermost first; each method builds one loop and calls the next method."""

    def __init__(self, time: TimeLoop, plan: Plan, main: mlir.Operation, number: int) -> None:
        self.time, self.plan = time, plan
        self.frame = Frame(time.loop)
        self.main, self.number, self.outlined = main, number, 0
        self.before = plan.first - plan.margin - plan.backward.widest
        self.after = plan.last + plan.margin
        """Bounds before the first and after the last row, whatever the skew."""

    def index(self, number: int) -> mlir.Value:
        return self.frame.index(number)

    def plus(self, a: mlir.Value, number: int) -> mlir.Value:
        return emit.same_type("arith.addi", a, self.index(number)) if number else a

    def build(self) -> None:
        """The loop over blocks of time steps."""
        lower, upper, step = self.time.loop.operands
        span = emit.same_type("arith.maxsi", emit.same_type("arith.subi", upper, lower), self.index(0))
        count = span if constant_of(step) == 1 else emit.same_type("arith.ceildivsi", span, step)

        def block(start: mlir.Value, _: list[mlir.Value]) -> None:
            left = emit.same_type("arith.subi", count, start)
            self.phases(start, emit.same_type("arith.minsi", left, self.index(self.plan.steps)))

        emit.for_loop(self.index(0), count, self.index(self.plan.steps), block)

    def phases(self, start: mlir.Value, steps: mlir.Value) -> None:
        """The loop over phases: first the interiors of all chunks, then the rows around the ends of chunks."""
        chunks = self.plan.chunks

        def phase(number: mlir.Value, _: list[mlir.Value]) -> None:
            ends = emit.compare("ne", number, self.index(0))
            count = emit.same_type("arith.subi", self.index(chunks), number)
            loop = emit.parallel_loop(
                self.index(0), count, self.index(1), lambda chunk: self.chunk(start, steps, chunk, ends)
            )
            loop.attributes["mlirml.grain"] = emit.i64(1)

        emit.for_loop(self.index(0), self.index(2), self.index(1), phase)

    def chunk(self, start: mlir.Value, steps: mlir.Value, chunk: mlir.Value, ends: mlir.Value) -> None:
        """The interior of a chunk, or the remaining rows around its end."""
        plan = self.plan
        length = -((plan.first - plan.last) // plan.chunks)

        def select(condition: mlir.Value, one: mlir.Value, other: mlir.Value) -> mlir.Value:
            return emit.value("arith.select", [condition, one, other], one.type)

        first = self.plus(emit.same_type("arith.muli", chunk, self.index(length)), plan.first)
        is_first = emit.compare("eq", chunk, self.index(0))
        is_last = emit.compare("eq", chunk, self.index(plan.chunks - 1))
        low = select(is_first, self.index(self.before), first)
        high = select(is_last, self.index(self.after), self.plus(first, length))
        self.bands(
            start,
            steps,
            select(ends, high, first),
            select(ends, self.plus(high, plan.margin), high),
            select(ends, self.index(self.before), low),
            select(ends, high, self.index(self.after)),
        )

    def bands(
        self,
        start: mlir.Value,
        steps: mlir.Value,
        lower: mlir.Value,
        upper: mlir.Value,
        left: mlir.Value,
        right: mlir.Value,
    ) -> None:
        """Loops over row tiles in skewed coordinates and their time steps, clipped to `left` and `right`.

        The clipping is in the backward skew.
        """

        def band(first: mlir.Value, _: list[mlir.Value]) -> None:
            end = emit.same_type("arith.minsi", self.plus(first, self.plan.band), upper)
            emit.for_loop(
                self.index(0),
                steps,
                self.index(1),
                lambda number, _: self.step(start, number, (first, end), (left, right)),
            )

        emit.for_loop(lower, upper, self.index(self.plan.band), band)

    def step(
        self,
        start: mlir.Value,
        number: mlir.Value,
        band: tuple[mlir.Value, mlir.Value],
        sides: tuple[mlir.Value, mlir.Value],
    ) -> None:
        """The rows of all stencils in one time step."""
        time, plan = self.time, self.plan
        lower, _, step = time.loop.operands
        moved = emit.same_type("arith.muli", emit.same_type("arith.addi", start, number), step)
        environment = {time.loop.regions[0].blocks[0].arguments[0]: emit.same_type("arith.addi", lower, moved)}
        for op in time.scalars:
            emit.body_op(op, environment)
            if op.results[0] in time.cells:
                element = environment[op.results[0]]
                environment[op.results[0]] = emit.value("memref.load", [element], element.type.element_type)
        forward = emit.same_type("arith.muli", number, self.index(plan.forward.period))
        backward = emit.same_type("arith.muli", number, self.index(plan.backward.period))
        bounds = [emit.same_type("arith.subi", row, forward) for row in band]
        edges = [emit.same_type("arith.addi", side, backward) for side in sides]
        for stencil, forth, back in zip(time.stencils, plan.forward.offsets, plan.backward.offsets, strict=True):
            with stencil.op.location:
                low = [self.plus(bounds[0], -forth - stencil.first), self.plus(edges[0], back - stencil.first)]
                high = [self.plus(bounds[1], -forth - stencil.first), self.plus(edges[1], back - stencil.first)]
                first, last = self.index(0), self.index(stencil.last - stencil.first)
                for each in low:
                    first = emit.same_type("arith.maxsi", first, each)
                for each in high:
                    last = emit.same_type("arith.minsi", last, each)
                emit.for_loop(first, last, self.index(1), partial(self.row, stencil, dict(environment)))
                *_, rows = block_ops(mlir.InsertionPoint.current.block)
                self.outline(rows)

    def outline(self, rows: mlir.Operation) -> None:
        """Outline the rows of a stencil into a function: LLVM takes much longer for deeply nested loops."""
        self.outlined += 1
        captures = Captures([rows])
        lower, upper, _ = rows.operands
        values = [value for value in captures.values if value not in (lower, upper)]
        name = f"main.sweep{self.number}.{self.outlined}"
        entry = build_function(name, self.main, [v.type for v in values], noalias(values, self.main))
        ends = dict(zip((lower, upper), entry.arguments))
        given = dict(zip(values, list(entry.arguments)[2:], strict=True))
        with mlir.InsertionPoint(entry):
            environment = captures.rebuild([{**given, **ends}[value] for value in captures.values])
            end = emit.create("func.return")
        attributes = {"callee": mlir.FlatSymbolRefAttr.get(name)}
        emit.create("func.call", [lower, upper, *values], (), attributes)
        rows.move_before(end)
        captures.replace(environment)
        entry.owner.operation.attributes["passthrough"] = mlir.ArrayAttr.get([mlir.StringAttr.get("noinline")])

    def row(
        self, stencil: Stencil, environment: dict[mlir.Value, mlir.Value], row: mlir.Value, _: list[mlir.Value]
    ) -> None:
        """One row of one stencil."""
        cells = self.time.cells
        nest, body = stencil.nest, stencil.body
        for argument, access, operand in zip(body.arguments, nest.accesses, stencil.op.operands, strict=True):
            if access is None:
                value = cells.get(operand, operand)
                environment[argument] = environment.get(value, value)
        cursor = Cursor.start(Frame(stencil.op, self.frame), nest)
        if stencil.with_rows:
            cursor = cursor.enter(0, row)

        def inner(cursor: Cursor) -> None:
            values = cursor.run(body, cursor.arguments(body, environment))
            for number, value in enumerate(body.yields):
                cursor.store(values.get(value, value), nest.out(number))

        nested(cursor, int(stencil.with_rows), nest.rank, inner)
