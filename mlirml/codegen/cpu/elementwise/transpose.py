"""Loops for operations that read an operand transposed: two loops are tiled, and square tiles transposed in registers.

A tile of a transposed operand is read by rows (vectors along its own unit stride), transposed by shuffles, and written
by rows: directly to the output if the operation only copies, else to a buffer in the L1 cache from which the body is
computed. The last tile of a loop starts earlier instead of being shorter.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TypeVar

from mlirml.codegen.cpu import cost
from mlirml.codegen.cpu.elementwise.loops import loop, nested
from mlirml.codegen.cpu.frame import Cursor, Frame
from mlirml.codegen.cpu.nest import Access, Body, Nest, root
from mlirml.core.dataclass import dataclass
from mlirml.ir import emit
from mlirml.ir.bindings import mlir
from mlirml.passes import NoMatch

ROWS, COLUMNS = 256, 64
"""The rows and columns of a tile; its columns are contiguous in the output."""
BUFFER_BYTES = 65536
"""The maximal size of the buffers of a tile."""


@dataclass(frozen=True)
class Transposition:
    """`nest` ends in loops `a`, the unit stride of the `across` operands, and `b`, that of the others."""

    nest: Nest
    across: tuple[int, ...]
    lanes: int
    rows: int
    columns: int

    @property
    def a(self) -> int:
        return self.nest.rank - 2

    @property
    def b(self) -> int:
        return self.nest.rank - 1


def match_transposition(nest: Nest, body: Body, vector_bits: int) -> Transposition:
    """The transposition of an ordered nest, whose innermost loop is the unit stride of the outputs; else NoMatch."""
    if nest.rank < 2:
        raise NoMatch("there are no two loops")
    b = nest.rank - 1
    inputs = range(len(nest.accesses) - nest.num_outputs)
    across = [n for n in inputs if nest.accesses[n] is not None and body.reads(body.arguments[n]) and jumps(nest, n)]
    if not across:
        raise NoMatch("no operand is read across")
    accesses = [nest.accesses[n] for n in across]
    units = {d for access in accesses if access is not None for d in range(b) if access.strides[d] == 1}
    if len(units) != 1 or not all(access is not None and access.strides[min(units)] == 1 for access in accesses):
        raise NoMatch("the operands that are read across have no common unit stride")
    (a,) = units
    width = max(access.bytes for access in accesses if access is not None)
    lanes = min(16, vector_bits // 8 // width)
    if lanes < 2:
        raise NoMatch("the processor has no vectors of these elements")
    if min(nest.sizes[a], nest.sizes[b]) < lanes:
        raise NoMatch("the loops are shorter than a vector")
    if any(nest.out(n).strides[b] != 1 for n in range(nest.num_outputs)) or writes_inputs(nest, body):
        raise NoMatch("the outputs are not written by rows, or written in place")
    others = [d for d in range(nest.rank) if d not in (a, b)]
    columns = min(COLUMNS, nest.sizes[b])
    rows = max(lanes, min(ROWS, nest.sizes[a], BUFFER_BYTES // (columns * width * len(across))))
    return Transposition(nest.permuted([*others, a, b]), tuple(across), lanes, rows, columns)


def jumps(nest: Nest, number: int) -> bool:
    """True if the innermost loop does not access an operand with unit stride."""
    access = nest.accesses[number]
    return access is not None and abs(access.strides[-1]) > 1 and 1 in access.strides


def writes_inputs(nest: Nest, body: Body) -> bool:
    """True if an output may alias an input, so that no element can be recomputed."""
    first = len(nest.accesses) - nest.num_outputs
    outputs = {root(nest.out(n).operand) for n in range(nest.num_outputs)}
    read = any(body.reads(argument) for argument in body.arguments[first:])
    return read or any(access is not None and root(access.operand) in outputs for access in nest.accesses[:first])


def lower_transposition(frame: Frame, plan: Transposition, body: Body) -> None:
    """Build the loops."""
    nest = plan.nest
    copied = copied_input(plan, body)
    each = max(cost.iteration_ns(nest, body.ops), 0.2)
    counts = [math.ceil(nest.sizes[plan.a] / plan.rows), math.ceil(nest.sizes[plan.b] / plan.columns)]
    outer = nest.sizes[: plan.a]
    first_outer = bool(outer) and outer[0] >= counts[0]
    total = each * math.prod(nest.sizes)
    grain = cost.grain(outer[0], total / outer[0]) if first_outer else cost.grain(counts[0], total / counts[0])

    def tiles(cursor: Cursor, buffers: Sequence[mlir.Value]) -> Callable[[mlir.Value], None]:
        def strip(i: mlir.Value) -> None:
            row = tile_start(frame, i, plan.rows, nest.sizes[plan.a])
            made = buffers or make_buffers()

            def tile(j: mlir.Value) -> None:
                column = tile_start(frame, j, plan.columns, nest.sizes[plan.b])
                emit_tile(frame, plan, body, cursor, row, column, made, copied)

            loop(frame, counts[1], tile)

        return strip

    def make_buffers() -> list[mlir.Value]:
        return [] if copied is not None else [stack_buffer(plan, number) for number in plan.across]

    def build_tiles(cursor: Cursor) -> None:
        loop(frame, counts[0], tiles(cursor, ()))

    start = Cursor.start(frame, nest)
    if first_outer:
        nested(start, 0, plan.a, build_tiles, grain=grain)
        return

    def strips(i: mlir.Value) -> None:
        made = make_buffers()
        nested(start, 0, plan.a, lambda cursor: tiles(cursor, made)(i))

    loop(frame, counts[0], strips, grain=grain)


def copied_input(plan: Transposition, body: Body) -> int | None:
    """The one input that the operation copies to its one output; None for any other body."""
    for number in plan.across:
        if plan.nest.num_outputs == 1 and body.yields[0] == body.arguments[number]:
            return number
    return None


def stack_buffer(plan: Transposition, number: int) -> mlir.Value:
    """A tile on the stack."""
    access = plan.nest.accesses[number]
    assert access is not None
    type_ = mlir.MemRefType.get([plan.rows * plan.columns], access.operand.type.element_type)
    attributes = {"alignment": emit.i64(64), "operandSegmentSizes": emit.segments(0, 0)}
    return emit.create("memref.alloca", (), [type_], attributes).results[0]


def tile_start(frame: Frame, number: mlir.Value, tile: int, size: int) -> mlir.Value:
    """The start of a tile; the last one ends at `size`."""
    offset = frame.multiply(number, tile)
    return offset if size % tile == 0 else emit.same_type("arith.minsi", offset, frame.index(size - tile))


def emit_tile(
    frame: Frame,
    plan: Transposition,
    body: Body,
    cursor: Cursor,
    row: mlir.Value,
    column: mlir.Value,
    buffers: Sequence[mlir.Value],
    copied: int | None,
) -> None:
    """Build one tile."""
    if copied is not None:
        transpose_tile(frame, plan, cursor, row, column, copied, None)
        return
    for number, buffer in zip(plan.across, buffers, strict=True):
        transpose_tile(frame, plan, cursor, row, column, number, buffer)

    def point(i: mlir.Value, j: mlir.Value) -> None:
        here = cursor.enter(plan.a, frame.add(row, i)).enter(plan.b, frame.add(column, j))
        offset = frame.add(frame.multiply(i, plan.columns), j)
        given = {}
        for number, buffer in zip(plan.across, buffers, strict=True):
            given[body.arguments[number]] = emit.value("memref.load", [buffer, offset], buffer.type.element_type)
        environment = here.run(body, here.arguments(body, given))
        for number, value in enumerate(body.yields):
            here.store(environment.get(value, value), plan.nest.out(number))

    loop(frame, plan.rows, lambda i: loop(frame, plan.columns, lambda j: point(i, j)))


def transpose_tile(
    frame: Frame,
    plan: Transposition,
    cursor: Cursor,
    row: mlir.Value,
    column: mlir.Value,
    number: int,
    buffer: mlir.Value | None,
) -> None:
    """Transpose a tile of an input into a buffer, or into the output."""
    source = plan.nest.accesses[number]
    assert source is not None

    def square(i: mlir.Value, j: mlir.Value) -> None:
        i, j = (tile_start(frame, x, plan.lanes, n) for x, n in ((i, plan.rows), (j, plan.columns)))
        here = cursor.enter(plan.a, frame.add(row, i)).enter(plan.b, frame.add(column, j))
        type_ = mlir.VectorType.get([plan.lanes], source.operand.type.element_type)
        vectors = transpose(load_vectors(here, source, plan.b, type_, plan.lanes))
        if buffer is None:
            store_vectors(here, plan.nest.out(0), plan.a, vectors)
            return
        first = frame.add(frame.multiply(i, plan.columns), j)
        for step, vector in enumerate(vectors):
            offset = first if not step else frame.add(first, frame.index(step * plan.columns))
            emit.create("vector.store", [vector, buffer, offset])

    squares = [math.ceil(n / plan.lanes) for n in (plan.rows, plan.columns)]
    loop(frame, squares[0], lambda i: loop(frame, squares[1], lambda j: square(i, j)))


def load_vectors(here: Cursor, access: Access, d: int, type_: mlir.Type, count: int) -> list[mlir.Value]:
    """`count` vectors, one for each step of loop `d`."""
    flat = here.frame.flat(access.operand)
    cursors = [here.shifted(d, step) if step else here for step in range(count)]
    return [emit.value("vector.load", [flat, cursor.address(access)], type_) for cursor in cursors]


def store_vectors(here: Cursor, access: Access, d: int, vectors: Sequence[mlir.Value]) -> None:
    """Store vectors, one for each step of loop `d`."""
    flat = here.frame.flat(access.operand)
    for step, vector in enumerate(vectors):
        cursor = here.shifted(d, step) if step else here
        emit.create("vector.store", [vector, flat, cursor.address(access)])


def transpose(rows: Sequence[mlir.Value]) -> list[mlir.Value]:
    """Transpose a square of vectors."""
    return exchange(rows, len(rows), shuffle)


Vector = TypeVar("Vector", mlir.Value, str)


def exchange(
    rows: Sequence[Vector], lanes: int, shuffled: Callable[[Vector, Vector, Sequence[int]], Vector]
) -> list[Vector]:
    """Vectors of `lanes` elements, as many as a power of two, with each square of as many columns transposed.

    Ever larger blocks off the diagonal are swapped (Eklundh, IEEE Trans. Comput. 1972).
    """
    rows = list(rows)
    distance = 1
    while distance < len(rows):
        upper = [lane + lanes - distance if lane & distance else lane for lane in range(lanes)]
        lower = [lane + lanes if lane & distance else lane + distance for lane in range(lanes)]
        for first in range(len(rows)):
            if not first & distance:
                a, b = rows[first], rows[first + distance]
                rows[first], rows[first + distance] = shuffled(a, b, upper), shuffled(a, b, lower)
        distance *= 2
    return rows


def shuffle(a: mlir.Value, b: mlir.Value, lanes: Sequence[int]) -> mlir.Value:
    return emit.value("vector.shuffle", [a, b], a.type, mask=mlir.DenseI64ArrayAttr.get(list(lanes)))
