"""Loops of a structured operation that reads operands transposed: tiles, whose squares are transposed in registers.

As in `codegen/cpu/elementwise/transpose.py`, for trip counts that are dynamic: the last square of a loop starts earlier
instead of being smaller, and a loop shorter than a square is one over elements.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from mlirml.analysis.memory import array_of as root_of
from mlirml.analysis.memory import body_effects
from mlirml.codegen.cpu.elementwise.transpose import BUFFER_BYTES, COLUMNS, ROWS, transpose
from mlirml.core.dataclass import dataclass
from mlirml.ir import emit
from mlirml.ir.bindings import mlir
from mlirml.pipelines.memref.lanes import shifted
from mlirml.pipelines.sizes.subscripts import expression_uses, is_dense

if TYPE_CHECKING:
    from mlirml.pipelines.sizes.sized_loops import Loops

_MOST_LANES = 16


@dataclass
class Transposition:
    """Loop `a` along which the operands `across` are contiguous, and `b` along which the others are.

    `copied` is the operand that the operation copies to its only output, if that is all that it does; others go through
    `buffers` of the size of a tile, which exist once `make_buffers` was called.
    """

    a: int
    b: int
    across: tuple[int, ...]
    lanes: int
    rows: int
    copied: int | None
    buffers: list[mlir.Value]

    @property
    def is_ready(self) -> bool:
        """True if the loops can be built."""
        return self.copied is not None or bool(self.buffers)

    def make_buffers(self, loops: Loops) -> None:
        """Allocate the buffers on the stack, at the insertion point, which must not be in a loop."""
        if self.copied is not None:
            return
        attributes = {"alignment": emit.i64(64), "operandSegmentSizes": emit.segments(0, 0)}
        for number in self.across:
            element = loops.operands[number].type.element_type
            type_ = mlir.MemRefType.get([self.rows, COLUMNS], element)
            self.buffers.append(emit.create("memref.alloca", (), [type_], attributes).results[0])


def transposition_of(loops: Loops, inner: int | None, vector_bits: int) -> Transposition | None:
    """The transposition of an operation whose innermost loop is `inner`; None if it has none that is worth a tile."""
    if inner is None or any(loops.reduced) or not vector_bits:
        return None
    inputs = range(loops.first_out)
    read = [n for n in inputs if loops.body.reads(loops.body.arguments[n]) and loops.uses(n, inner)]
    across = [n for n in read if last_loop(loops, n) not in (None, inner)]
    found = {last_loop(loops, n) for n in across}
    if len(found) != 1 or any(last_loop(loops, n) != inner for n in range(loops.first_out, len(loops.operands))):
        return None
    a = next(iter(found))
    assert a is not None
    width = max(bytes_of(loops, n) for n in across)
    if not all(bytes_of(loops, n) for n in across) or stores_inputs(loops):
        return None
    lanes = min(_MOST_LANES, vector_bits // 8 // width)
    if lanes < 2 or any(is_shorter(loops, loop, lanes) for loop in (a, inner)):
        return None
    rows = max(lanes, min(ROWS, BUFFER_BYTES // (COLUMNS * width * len(across))))
    return Transposition(a, inner, tuple(across), lanes, rows, copied_input(loops, across), [])


def last_loop(loops: Loops, number: int) -> int | None:
    """The loop along which an operand is contiguous, and which is in no other subscript; None if there is none."""
    operand, results = loops.operands[number], loops.maps[number].results
    if not isinstance(operand.type, mlir.MemRefType) or not len(results) or not is_dense(operand.type):
        return None
    *others, last = results
    if not isinstance(last, mlir.AffineDimExpr) or any(expression_uses(other, last.position) for other in others):
        return None
    return int(last.position)


def bytes_of(loops: Loops, number: int) -> int:
    """The bytes of an element of an operand; 0 for one that is not shifted in vectors."""
    element = loops.operands[number].type.element_type
    if not isinstance(element, (mlir.IntegerType, mlir.FloatType)) or element.width % 8:
        return 0
    return int(element.width) // 8


def stores_inputs(loops: Loops) -> bool:
    """True if an output is read, or may share memory with an input: elements may be computed twice."""
    if any(loops.body.reads(argument) for argument in loops.body.arguments[loops.first_out :]):
        return True
    inputs, in_body = {root_of(operand) for operand in loops.operands[: loops.first_out]}, body_effects(loops.op)
    outputs = [root_of(operand) for operand in loops.operands[loops.first_out :]]
    return any(memory in inputs or in_body.touches(memory) for memory in outputs)


def is_shorter(loops: Loops, loop: int, lanes: int) -> bool:
    """True for a loop of fewer iterations than a vector has lanes."""
    number, d = loops.extent(loop)
    type_ = loops.operands[number].type
    return not type_.is_dynamic_dim(d) and type_.shape[d] < lanes


def copied_input(loops: Loops, across: Sequence[int]) -> int | None:
    """The input that the body yields as it is, as its only result."""
    yields = loops.body.yields
    return next((n for n in across if len(yields) == 1 and yields[0] == loops.body.arguments[n]), None)


class Tiles:
    """Builds the two loops of a transposition in tiles."""

    def __init__(self, loops: Loops, plan: Transposition, sizes: Sequence[mlir.Value]) -> None:
        self.loops, self.plan, self.sizes = loops, plan, sizes

    def build(self) -> None:
        """Emit the loops over tiles at the insertion point."""
        plan, loops = self.plan, self.loops
        rows, columns = (loops.bounds.get(d, (loops.zero, self.sizes[d])) for d in (plan.a, plan.b))
        self.blocks(rows, plan.rows, lambda i: self.blocks(columns, COLUMNS, lambda j: self.tile(i, j)))

    def blocks(
        self,
        bounds: tuple[mlir.Value, mlir.Value],
        length: int,
        body: Callable[[tuple[mlir.Value, mlir.Value]], None],
    ) -> None:
        """A loop over blocks of `length` iterations, the last of them shorter; `body` gets the bounds of one.

        The last one is at least as long as a vector, and repeats iterations for that, if all of them together are.
        """
        step = emit.index(length)
        latest = emit.same_type("arith.subi", bounds[1], emit.index(self.plan.lanes))

        def block(i: mlir.Value, _: list[mlir.Value]) -> None:
            start = emit.same_type("arith.maxsi", emit.same_type("arith.minsi", i, latest), bounds[0])
            body((start, emit.same_type("arith.minsi", emit.same_type("arith.addi", i, step), bounds[1])))

        emit.for_loop(*bounds, step, block)

    def tile(self, rows: tuple[mlir.Value, mlir.Value], columns: tuple[mlir.Value, mlir.Value]) -> None:
        """One tile: its operands go through the buffers, or straight to the output."""
        plan, loops = self.plan, self.loops
        origin = rows[0], columns[0]
        if plan.copied is not None:
            self.transpose(plan.copied, None, rows, columns, origin)
            return
        for number, buffer in zip(plan.across, plan.buffers, strict=True):
            self.transpose(number, buffer, rows, columns, origin)

        def row(i: mlir.Value, _: list[mlir.Value]) -> None:
            loops.indices[plan.a] = i
            loops.hoisted = {}
            loops.hoist(plan.b)
            emit.for_loop(*columns, loops.one, lambda j, _: self.element(i, j, origin))

        emit.for_loop(*rows, loops.one, row)

    def element(self, i: mlir.Value, j: mlir.Value, origin: tuple[mlir.Value, mlir.Value]) -> None:
        """The body of the operation for one element, with those of the buffers."""
        loops, plan = self.loops, self.plan
        loops.indices[plan.b] = j
        at = [emit.same_type("arith.subi", x, first) for x, first in zip((i, j), origin, strict=True)]
        given = {}
        for number, buffer in zip(plan.across, plan.buffers, strict=True):
            given[loops.body.arguments[number]] = emit.value("memref.load", [buffer, *at], buffer.type.element_type)
        loops.store_elements(loops.elements(given), ())

    def transpose(
        self,
        number: int,
        buffer: mlir.Value | None,
        rows: tuple[mlir.Value, mlir.Value],
        columns: tuple[mlir.Value, mlir.Value],
        origin: tuple[mlir.Value, mlir.Value],
    ) -> None:
        """Copy a tile of an operand to a buffer, or to the output, in squares, the last of which overlap others."""
        lanes = emit.index(self.plan.lanes)
        latest = [emit.same_type("arith.subi", last, lanes) for _, last in (rows, columns)]
        fits = [emit.compare("sge", x, first) for x, (first, _) in zip(latest, (rows, columns), strict=True)]

        def square(i: mlir.Value, j: mlir.Value) -> None:
            i, j = (emit.same_type("arith.minsi", x, last) for x, last in zip((i, j), latest, strict=True))
            self.square(number, buffer, i, j, origin)

        def squares() -> list[mlir.Value]:
            emit.for_loop(*rows, lanes, lambda i, _: emit.for_loop(*columns, lanes, lambda j, _: square(i, j)) and None)
            return []

        def elements() -> list[mlir.Value]:
            self.each(number, buffer, rows, columns, origin)
            return []

        emit.conditional(emit.same_type("arith.andi", *fits), squares, elements, [])

    def square(
        self,
        number: int,
        buffer: mlir.Value | None,
        i: mlir.Value,
        j: mlir.Value,
        origin: tuple[mlir.Value, mlir.Value],
    ) -> None:
        """A square of vectors."""
        loops, plan = self.loops, self.plan
        operand = loops.operands[number]
        type_ = mlir.VectorType.get([plan.lanes], operand.type.element_type)
        vectors = []
        for step in range(plan.lanes):
            loops.indices[plan.a], loops.indices[plan.b] = i, shifted(j, step)
            vectors.append(emit.value("vector.load", [operand, *loops.subscripts(number)], type_))
        for step, vector in enumerate(transpose(vectors)):
            emit.create("vector.store", [vector, *self.target(buffer, shifted(i, step), j, origin)])

    def each(
        self,
        number: int,
        buffer: mlir.Value | None,
        rows: tuple[mlir.Value, mlir.Value],
        columns: tuple[mlir.Value, mlir.Value],
        origin: tuple[mlir.Value, mlir.Value],
    ) -> None:
        """The elements of a tile that is smaller than a square."""

        def element(i: mlir.Value, j: mlir.Value) -> None:
            self.loops.indices[self.plan.a], self.loops.indices[self.plan.b] = i, j
            emit.create("memref.store", [self.loops.load(number), *self.target(buffer, i, j, origin)])

        one = self.loops.one
        emit.for_loop(*rows, one, lambda i, _: emit.for_loop(*columns, one, lambda j, _: element(i, j)) and None)

    def target(
        self, buffer: mlir.Value | None, i: mlir.Value, j: mlir.Value, origin: tuple[mlir.Value, mlir.Value]
    ) -> list[mlir.Value]:
        """Memory and subscripts of an element of the buffer, or of the output."""
        if buffer is not None:
            return [buffer, *(emit.same_type("arith.subi", x, first) for x, first in zip((i, j), origin, strict=True))]
        loops, out = self.loops, self.loops.first_out
        loops.indices[self.plan.a], loops.indices[self.plan.b] = i, j
        return [loops.operands[out], *loops.subscripts(out)]
