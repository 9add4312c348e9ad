"""The rows of argmax and argmin: sequential, or several at a time if they have several blocks.

Several at a time, in blocks of the rows:
    for each block:                                      several rows are read at the same time
        m = max(block)
        best, start = m > best ? (m, block) : (best, start)
    for each row:
        index = first i in the block at start with row[i] == best
"""  # fmt: skip

from __future__ import annotations

import math

from mlirml.codegen.cpu import cost
from mlirml.codegen.cpu.elementwise.loops import innermost_dim, loop, nested, outer_grain, outer_order
from mlirml.codegen.cpu.frame import Cursor, Frame
from mlirml.codegen.cpu.nest import Body, Nest
from mlirml.codegen.cpu.reduce.argmax import Position, Search
from mlirml.core.dataclass import dataclass
from mlirml.ir import emit
from mlirml.ir.bindings import mlir
from mlirml.passes import NoMatch

ROWS, APART_BYTES = 4, 4096
"""The number of rows that are read at the same time, and their minimal distance."""


def check_rows(nest: Nest) -> None:
    """Raises NoMatch if the reduced loop is not the one to vectorise."""
    if 0 in nest.sizes:
        raise NoMatch("there is nothing to search")
    nest = nest.without_unit_dims()
    if nest.rank == 0 or not nest.reduction[innermost_dim(nest)]:
        raise NoMatch("the innermost loop is parallel")


def lower_position(frame: Frame, nest: Nest, body: Body, plan: Position, inits: dict[mlir.Value, mlir.Value]) -> None:
    """Build the loops of a nest that passed `check_rows`; `inits` are the known scalar inits of outputs."""
    nest = nest.without_unit_dims()
    parallel = [d for d in range(nest.rank) if not nest.reduction[d]]
    nest = nest.permuted([*outer_order(nest, parallel), nest.reduction.index(True)])
    search = Search(frame, nest, body, plan, inits)
    each_ns = cost.iteration_ns(nest, body.ops)
    if len(inits) == 2 and is_read_apart(search):
        Rows(search, each_ns).build()
        return
    grain = outer_grain(nest, each_ns) if nest.rank > 1 else 0
    nested(Cursor.start(frame, nest), 0, nest.rank - 1, search.row, grain=grain)


def is_read_apart(search: Search) -> bool:
    """True if there are rows of several blocks to be read at the same time, and the nest is memory bound."""
    nest, frame = search.nest, search.frame
    if frame.in_parallel or nest.rank < 2 or nest.sizes[-2] < ROWS or nest.sizes[-1] < 2 * search.block_length:
        return False
    streams = [access for access in nest.memory if access.strides[-1]]
    return len(search.needed()) <= 1 and len(streams) == 1


@dataclass(frozen=True)
class Rows:
    """Builds the loops over all rows. In between, the outputs are the best value and its block's start or -1."""

    search: Search
    each_ns: float

    def build(self) -> None:
        """Build the blocks of rows, and the remaining rows."""
        nest, frame = self.search.nest, self.search.frame
        last = nest.rank - 2
        rows, row_ns = nest.sizes[last], self.each_ns * nest.sizes[-1]
        access = next(access for access in nest.memory if access.strides[-1])
        apart = max(1, min(APART_BYTES // (abs(access.strides[-1]) * access.bytes * nest.sizes[-1]), rows // ROWS))
        step = ROWS * apart
        whole = rows // step * step

        def block(cursor: Cursor, i: mlir.Value) -> None:
            loop(frame, apart, lambda j: self.maxima(cursor.enter(last, frame.add(i, j)), apart))
            loop(frame, step, lambda j: self.find(cursor.enter(last, frame.add(i, j))))

        def blocks(cursor: Cursor) -> None:
            grain = cost.grain(whole // step, row_ns * step) if last == 0 else 0
            loop(frame, whole, lambda i: block(cursor, i), step=step, grain=grain)
            if whole < rows:
                loop(frame, rows, lambda i: self.search.row(cursor.enter(last, i)), lower=whole)

        outer = cost.grain(nest.sizes[0], row_ns * math.prod(nest.sizes[1:-1])) if last else 0
        nested(Cursor.start(frame, nest), 0, last, blocks, grain=outer)

    def maxima(self, cursor: Cursor, apart: int) -> None:
        """The best values of rows with distance `apart`, and the blocks that contain them."""
        search, frame = self.search, self.search.frame
        nest, length = search.nest, search.block_length
        value, index = search.outputs
        cursors = [cursor.shifted(nest.rank - 2, row * apart) if row else cursor for row in range(ROWS)]
        type_ = frame.flat(index.operand).type.element_type
        none = emit.number(type_, -1) if not isinstance(type_, mlir.IndexType) else frame.index(-1)

        def step(i: mlir.Value, carried: list[mlir.Value]) -> list[mlir.Value]:
            start = as_type(i, type_)
            best, starts = [], []
            extrema = search.extrema(cursors, i, frame.add(i, frame.index(length)))
            for new, old, before in zip(extrema, carried[:ROWS], carried[ROWS:], strict=True):
                better = search.is_better(new, old)
                best.append(emit.same_type("arith.select", better, new, old))
                starts.append(emit.same_type("arith.select", better, start, before))
            return best + starts

        state = [*[search.first(row)[0] for row in cursors], *[none] * ROWS]
        whole = nest.sizes[-1] // length * length
        state = emit.for_loop(frame.index(0), frame.index(whole), frame.index(length), step, state)
        for row, best, start in zip(cursors, state[:ROWS], state[ROWS:], strict=True):
            row.store(best, value)
            row.store(start, index)

    def find(self, cursor: Cursor) -> None:
        """The index of the best value of a row."""
        search, frame = self.search, self.search.frame
        nest, length = search.nest, search.block_length
        best, start = [cursor.load(out) for out in search.outputs]
        at = as_type(start, mlir.IndexType.get())
        index = emit.conditional(
            emit.compare("sge", at, frame.index(0)),
            lambda: [search.find(cursor, at, frame.add(at, frame.index(length)), best, start.type)],
            lambda: [search.first(cursor)[1]],
            [start.type],
        )[0]
        state = [best, index]
        whole = nest.sizes[-1] // length * length
        if whole < nest.sizes[-1]:
            state = search.block(cursor, frame.index(whole), frame.index(nest.sizes[-1]), state)
        for new, out in zip(state, search.outputs, strict=True):
            cursor.store(new, out)


def as_type(value: mlir.Value, type_: mlir.Type) -> mlir.Value:
    """An integer or index value as one of another type."""
    return value if value.type == type_ else emit.value("arith.index_cast", [value], type_)
