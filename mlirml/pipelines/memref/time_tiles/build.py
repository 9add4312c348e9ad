"""Build the loops over tiles of time and rows."""

from __future__ import annotations

from functools import partial

from mlirml.analysis.captures import Captures
from mlirml.analysis.trip_counts import constant_of
from mlirml.codegen.cpu.elementwise.loops import nested
from mlirml.codegen.cpu.frame import Cursor, Frame
from mlirml.ir import emit
from mlirml.ir.bindings import block_ops, mlir
from mlirml.pipelines.memref.outline_parallel import build_function, noalias
from mlirml.pipelines.memref.time_tiles.match import Sweep, TimeLoop
from mlirml.pipelines.memref.time_tiles.plan import Plan


def build_tiles(time: TimeLoop, plan: Plan, main: mlir.Operation, number: int) -> None:
    """Replace a time loop of @main by the loops over its tiles."""
    for op in time.outside:
        op.move_before(time.loop)
    with time.loop.location, mlir.InsertionPoint(time.loop):
        Tiles(time, plan, main, number).build()
    time.loop.erase()


class Tiles:
    """The loops, from the outermost inwards; each method builds one and calls the next."""

    def __init__(self, time: TimeLoop, plan: Plan, main: mlir.Operation, number: int) -> None:
        self.time, self.plan = time, plan
        self.frame = Frame(time.loop)
        self.main, self.number, self.outlined = main, number, 0
        self.before = plan.first - plan.margin - plan.behind.widest
        self.after = plan.last + plan.margin
        """Rows in front of all rows, and behind them, whatever the skew."""

    def index(self, number: int) -> mlir.Value:
        return self.frame.index(number)

    def plus(self, a: mlir.Value, number: int) -> mlir.Value:
        return emit.same_type("arith.addi", a, self.index(number)) if number else a

    def build(self) -> None:
        """Blocks of rounds."""
        lower, upper, step = self.time.loop.operands
        span = emit.same_type("arith.maxsi", emit.same_type("arith.subi", upper, lower), self.index(0))
        count = span if constant_of(step) == 1 else emit.same_type("arith.ceildivsi", span, step)

        def block(start: mlir.Value, _: list[mlir.Value]) -> None:
            left = emit.same_type("arith.subi", count, start)
            self.phases(start, emit.same_type("arith.minsi", left, self.index(self.plan.rounds)))

        emit.for_loop(self.index(0), count, self.index(self.plan.rounds), block)

    def phases(self, start: mlir.Value, rounds: mlir.Value) -> None:
        """The insides of all chunks, then what waits for them at the ends of chunks."""
        chunks = self.plan.chunks

        def phase(number: mlir.Value, _: list[mlir.Value]) -> None:
            ends = emit.compare("ne", number, self.index(0))
            count = emit.same_type("arith.subi", self.index(chunks), number)
            loop = emit.parallel_loop(
                self.index(0), count, self.index(1), lambda chunk: self.chunk(start, rounds, chunk, ends)
            )
            loop.attributes["mlirml.grain"] = emit.i64(1)

        emit.for_loop(self.index(0), self.index(2), self.index(1), phase)

    def chunk(self, start: mlir.Value, rounds: mlir.Value, chunk: mlir.Value, ends: mlir.Value) -> None:
        """The inside of a chunk, or what is left around its end."""
        plan = self.plan
        length = -((plan.first - plan.last) // plan.chunks)

        def select(condition: mlir.Value, one: mlir.Value, other: mlir.Value) -> mlir.Value:
            return emit.value("arith.select", [condition, one, other], one.type)

        place = self.plus(emit.same_type("arith.muli", chunk, self.index(length)), plan.first)
        is_first = emit.compare("eq", chunk, self.index(0))
        is_last = emit.compare("eq", chunk, self.index(plan.chunks - 1))
        low = select(is_first, self.index(self.before), place)
        high = select(is_last, self.index(self.after), self.plus(place, length))
        self.bands(
            start,
            rounds,
            select(ends, high, place),
            select(ends, self.plus(high, plan.margin), high),
            select(ends, self.index(self.before), low),
            select(ends, high, self.index(self.after)),
        )

    def bands(
        self,
        start: mlir.Value,
        rounds: mlir.Value,
        lower: mlir.Value,
        upper: mlir.Value,
        left: mlir.Value,
        right: mlir.Value,
    ) -> None:
        """Bands of rows in skewed places, and the rounds of each, between the places `left` and `right` from behind."""

        def band(place: mlir.Value, _: list[mlir.Value]) -> None:
            end = emit.same_type("arith.minsi", self.plus(place, self.plan.band), upper)
            emit.for_loop(
                self.index(0),
                rounds,
                self.index(1),
                lambda number, _: self.round(start, number, (place, end), (left, right)),
            )

        emit.for_loop(lower, upper, self.index(self.plan.band), band)

    def round(
        self,
        start: mlir.Value,
        number: mlir.Value,
        band: tuple[mlir.Value, mlir.Value],
        sides: tuple[mlir.Value, mlir.Value],
    ) -> None:
        """The rows of all sweeps in one round."""
        time, plan = self.time, self.plan
        lower, _, step = time.loop.operands
        moved = emit.same_type("arith.muli", emit.same_type("arith.addi", start, number), step)
        environment = {time.loop.regions[0].blocks[0].arguments[0]: emit.same_type("arith.addi", lower, moved)}
        for op in time.scalars:
            emit.body_op(op, environment)
            if op.results[0] in time.cells:
                element = environment[op.results[0]]
                environment[op.results[0]] = emit.value("memref.load", [element], element.type.element_type)
        ahead = emit.same_type("arith.muli", number, self.index(plan.ahead.period))
        behind = emit.same_type("arith.muli", number, self.index(plan.behind.period))
        places = [emit.same_type("arith.subi", place, ahead) for place in band]
        edges = [emit.same_type("arith.addi", side, behind) for side in sides]
        for sweep, forth, back in zip(time.sweeps, plan.ahead.offsets, plan.behind.offsets, strict=True):
            with sweep.op.location:
                low = [self.plus(places[0], -forth - sweep.first), self.plus(edges[0], back - sweep.first)]
                high = [self.plus(places[1], -forth - sweep.first), self.plus(edges[1], back - sweep.first)]
                first, last = self.index(0), self.index(sweep.last - sweep.first)
                for each in low:
                    first = emit.same_type("arith.maxsi", first, each)
                for each in high:
                    last = emit.same_type("arith.minsi", last, each)
                emit.for_loop(first, last, self.index(1), partial(self.row, sweep, dict(environment)))
                *_, rows = block_ops(mlir.InsertionPoint.current.block)
                self.outline(rows)

    def outline(self, rows: mlir.Operation) -> None:
        """Move the rows of a sweep into a function: LLVM takes much longer for loops that stand in many others."""
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
        self, sweep: Sweep, environment: dict[mlir.Value, mlir.Value], row: mlir.Value, _: list[mlir.Value]
    ) -> None:
        """One row of one sweep."""
        cells = self.time.cells
        nest, body = sweep.nest, sweep.body
        for argument, access, operand in zip(body.arguments, nest.accesses, sweep.op.operands, strict=True):
            if access is None:
                value = cells.get(operand, operand)
                environment[argument] = environment.get(value, value)
        cursor = Cursor.start(Frame(sweep.op, self.frame), nest)
        if sweep.with_rows:
            cursor = cursor.enter(0, row)

        def inner(cursor: Cursor) -> None:
            values = cursor.run(body, cursor.arguments(body, environment))
            for number, value in enumerate(body.yields):
                cursor.store(values.get(value, value), nest.out(number))

        nested(cursor, int(sweep.with_rows), nest.rank, inner)
