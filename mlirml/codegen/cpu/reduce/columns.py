"""Column reductions: the innermost loop is parallel; rows are added to a part of the output row that stays in cache."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import reduce

from mlirml.analysis.cost import element_bytes
from mlirml.analysis.costs import costs
from mlirml.codegen.cpu import cost
from mlirml.codegen.cpu.elementwise.loops import loop, nested
from mlirml.codegen.cpu.frame import Cursor
from mlirml.codegen.cpu.loop_schedule import current
from mlirml.codegen.cpu.nest import Access, Nest
from mlirml.codegen.cpu.prefetch import LINE_BYTES, comes_from_memory, prefetch_lines
from mlirml.codegen.cpu.reduce.combiners import Reducer
from mlirml.codegen.cpu.reduce.task import Reduction, parallel_rank, start
from mlirml.ir import emit
from mlirml.ir.bindings import defining_op, mlir

COLUMNS_BYTES = 16384
"""The part of an output row that a column reduction keeps in cache."""
ROWS = 8
"""Rows that a column reduction adds at a time, to load and store the output less often."""
STREAMS = 16
"""The number of memory streams that are read at the same time. With more, the output is a small part of the traffic,
hardware prefetchers lose track, and LLVM's address computations dominate compile time.
"""
SHORT_ROW_BYTES, LONG_ROW_BYTES = 64, 8192
"""Rows between these lengths are read sequentially when they come from memory: hardware prefetchers lose track of many
short streams, while the shortest rows are one stream together and longer ones are long enough.
"""


def reduce_columns(task: Reduction) -> None:
    """Add rows into a part of the output row."""
    nest, frame = task.nest, task.frame
    rank, width = parallel_rank(nest), nest.sizes[-1]
    tile = max(1, COLUMNS_BYTES // sum(element_bytes(reducer.type) for reducer in task.reducers))
    count = math.ceil(width / tile)
    inner_ns = task.each_ns * math.prod(nest.sizes[rank:-1])
    outer_parallel = rank > 0 and nest.sizes[0] >= count
    outer_grain = cost.grain(nest.sizes[0], inner_ns * width * math.prod(nest.sizes[1:rank])) if outer_parallel else 0
    tile_grain = 0 if outer_grain else cost.grain(count, inner_ns * min(tile, width))

    def tiles(cursor: Cursor) -> None:
        if count == 1:
            columns(cursor, frame.index(0), frame.index(width))
        else:
            loop(frame, width, lambda j: columns(cursor, j, tile_end(j)), step=tile, grain=tile_grain)

    def tile_end(j: mlir.Value) -> mlir.Value:
        end = frame.add(j, frame.index(tile))
        return end if width % tile == 0 else emit.same_type("arith.minsi", end, frame.index(width))

    def columns(cursor: Cursor, lower: mlir.Value, upper: mlir.Value) -> None:
        def init(j: mlir.Value, _: list[mlir.Value]) -> None:
            for value, out in zip(task.inits, task.outputs, strict=True):
                if value is not None:
                    cursor.enter(nest.rank - 1, j).store(value, out)

        if any(value is not None for value in task.inits):
            emit.for_loop(lower, upper, frame.index(1), init)
        rows(cursor, rank, lower, upper)

    def rows(cursor: Cursor, d: int, lower: mlir.Value, upper: mlir.Value) -> None:
        if d < nest.rank - 2:
            loop(frame, nest.sizes[d], lambda i: rows(cursor.enter(d, i), d + 1, lower, upper))
            return
        size, together = nest.sizes[d], rows_together(task)
        whole = size // together * together
        if whole:
            loop(frame, whole, lambda i: add_rows(task, cursor.enter(d, i), together, lower, upper), step=together)
        if whole < size:
            add_rows(task, cursor.enter(d, frame.index(whole)), size - whole, lower, upper)

    nested(start(task), 0, rank, tiles, grain=outer_grain)


def rows_together(task: Reduction) -> int:
    """The number of rows that a column reduction adds at a time."""
    nest = task.nest
    if current().together:
        return current().together
    widths = [access.bytes * nest.sizes[-1] for access in nest.memory if access.strides[-1]]
    footprint = sum(cost.extent(nest, access) for access in nest.memory)
    short = SHORT_ROW_BYTES <= max(widths, default=0) < LONG_ROW_BYTES
    # In a loop over rows that share it, the nest is only a part of the memory traffic.
    if short and (task.frame.in_parallel or footprint > costs().cache_bytes):
        return 1
    streams = sum(1 for access in nest.memory if access.strides[-1] and access.strides[-2])
    return min(ROWS, 1 << (STREAMS // max(1, streams) or 1).bit_length() - 1)


def add_rows(task: Reduction, cursor: Cursor, count: int, lower: mlir.Value, upper: mlir.Value) -> None:
    """Combine `count` rows with the output.

    Long rows from memory are prefetched for the next call: hardware prefetchers stop at the end of each page.
    """
    d = task.nest.rank - 2
    frame = task.frame

    def inner(j: mlir.Value, _: list[mlir.Value]) -> None:
        here = cursor.enter(task.nest.rank - 1, j)
        rows = [task.values(here.shifted(d, step) if step else here) for step in range(count)]
        for number, (reducer, out) in enumerate(zip(task.reducers, task.outputs, strict=True)):
            values = part_of(reducer, [row[number] for row in rows])
            here.store(reduce(reducer.combine, values, here.load(out)), out)

    def block(j: mlir.Value, _: list[mlir.Value]) -> None:
        for row in range(count, 2 * count):
            prefetch_lines(cursor.enter(task.nest.rank - 1, j).shifted(d, row), streams, step)
        emit.for_loop(j, frame.add(j, frame.index(step)), frame.index(1), inner)

    streams = prefetched(task.nest) if count > 1 else []
    if streams:
        step = LINE_BYTES // min(access.bytes for access in streams)
        blocks = emit.same_type("arith.divui", emit.same_type("arith.subi", upper, lower), frame.index(step))
        last = frame.add(lower, frame.multiply(blocks, step))
        emit.for_loop(lower, last, frame.index(step), block)
        lower = last
    emit.for_loop(lower, upper, frame.index(1), inner)


def prefetched(nest: Nest) -> list[Access]:
    """The operands whose rows are long and come from memory."""
    if not comes_from_memory(nest):
        return []
    rows = [access for access in nest.accesses[: -nest.num_outputs] if access and access.strides[-1] == 1]
    return [each for each in dict.fromkeys(rows) if each.strides[-2] and nest.sizes[-1] * each.bytes >= LONG_ROW_BYTES]


def part_of(reducer: Reducer, values: Sequence[mlir.Value]) -> list[mlir.Value]:
    """The values combined as a tree, to one.

    Extremes of widened floats are left to be combined with the output one by one: LLVM would take the extreme of two of
    them in the narrow type, which it does not vectorise.
    """
    left = list(values)
    if reducer.combiner.is_extreme and all(is_widened(value) for value in values):
        return left
    while len(left) > 1:
        pairs = [reducer.combine(a, b) for a, b in zip(left[::2], left[1::2], strict=False)]
        left = [*pairs, *left[len(pairs) * 2 :]]
    return left


def is_widened(value: mlir.Value) -> bool:
    """True for a float that was narrow in memory."""
    op = defining_op(value)
    return op is not None and op.name == "arith.extf"
