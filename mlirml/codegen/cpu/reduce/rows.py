"""Row reductions: the innermost loop is reduced, and its accumulators are loop-carried values.

LLVM vectorises them. Float sums are split into blocks, whose sums are added with compensation: the error does not grow
with the length. In long rows from memory each lane has sums of its own (`sums.py`). Rows are read in order:
prefetchers follow one stream best.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from mlirml.analysis.costs import costs
from mlirml.codegen.cpu import cost
from mlirml.codegen.cpu.elementwise.loops import loop, nested
from mlirml.codegen.cpu.frame import Cursor
from mlirml.codegen.cpu.reduce.combiners import corrected, is_nan, two_sum
from mlirml.codegen.cpu.reduce.lanes import Lanes
from mlirml.codegen.cpu.reduce.sums import block_length, shortest, sum_row
from mlirml.codegen.cpu.reduce.task import Reduction, parallel_rank, start
from mlirml.ir import emit
from mlirml.ir.bindings import mlir

BLOCK = 512
"""Elements that one set of accumulators sums up."""
SHORT_BYTES, BLOCK_BYTES = 4096, 65536
"""Rows shorter than this are read in memory order, in blocks of rows of this size."""


def reduce_rows(task: Reduction) -> None:
    """Build parallel loops around accumulators."""
    rank = parallel_rank(task.nest)
    if jumps_between_rows(task, rank):
        reduce_row_blocks(task, rank)
        return
    sizes = task.nest.sizes
    grain = cost.grain(sizes[0], task.each_ns * math.prod(sizes[1:])) if rank else 0
    nested(start(task), 0, rank, lambda cursor: finish_row(task, cursor, rank, task.inits), grain=grain)


def finish_row(task: Reduction, cursor: Cursor, first: int, inits: Sequence[mlir.Value | None]) -> None:
    """Reduce loops `first` to the innermost one, and combine the totals with the inits."""
    totals = reduce_from(task, cursor, first)
    for reducer, total, init, out in zip(task.reducers, totals, inits, task.outputs, strict=True):
        cursor.store(reducer.combine(cursor.load(out) if init is None else init, total), out)


def jumps_between_rows(task: Reduction, rank: int) -> bool:
    """True if short rows that are reduced together are far apart, with rows of other results between them."""
    nest = task.nest
    if not 0 < rank < nest.rank - 1:
        return False
    biggest = max(nest.memory, key=lambda access: cost.extent(nest, access))
    short = nest.sizes[-1] * biggest.bytes < SHORT_BYTES and cost.extent(nest, biggest) > costs().cache_bytes
    return short and abs(biggest.strides[rank]) > abs(biggest.strides[rank - 1])


def reduce_row_blocks(task: Reduction, rank: int) -> None:
    """Read memory in order: the outer reduced loop encloses a block of the innermost parallel one.

    The outputs of a block are accumulated in memory, which stays in cache.
    """
    nest, frame = task.nest, task.frame
    size = nest.sizes[rank - 1]
    length = max(1, BLOCK_BYTES // (nest.sizes[-1] * max(access.bytes for access in nest.memory)))
    count = math.ceil(size / length)
    inner_ns = task.each_ns * math.prod(nest.sizes[rank:])
    grain = cost.grain(count, inner_ns * min(length, size)) if rank == 1 else 0
    outer = cost.grain(nest.sizes[0], inner_ns * math.prod(nest.sizes[1:rank])) if rank > 1 else 0

    def block(cursor: Cursor, lower: mlir.Value) -> None:
        upper = frame.add(lower, frame.index(length))
        if size % length:
            upper = emit.same_type("arith.minsi", upper, frame.index(size))

        def init(i: mlir.Value, _: list[mlir.Value]) -> None:
            for value, out in zip(task.inits, task.outputs, strict=True):
                if value is not None:
                    cursor.enter(rank - 1, i).store(value, out)

        if any(value is not None for value in task.inits):
            emit.for_loop(lower, upper, frame.index(1), init)

        def row(r: mlir.Value, i: mlir.Value) -> None:
            finish_row(task, cursor.enter(rank - 1, i).enter(rank, r), rank + 1, [None] * len(task.outputs))

        def rows(r: mlir.Value) -> None:
            emit.for_loop(lower, upper, frame.index(1), lambda i, _: row(r, i))

        loop(frame, nest.sizes[rank], rows)

    def blocks(cursor: Cursor) -> None:
        loop(frame, size, lambda lower: block(cursor, lower), step=length, grain=grain)

    nested(start(task), 0, rank - 1, blocks, grain=outer)


def reduce_from(task: Reduction, cursor: Cursor, first: int) -> list[mlir.Value]:
    """Reduce loops `first` to the innermost one; returns the totals, without the inits."""
    if first == task.nest.rank:
        return task.values(cursor)
    length = math.prod(task.nest.sizes[first:])
    compensated = [reducer.is_float_sum and length > 2 * BLOCK for reducer in task.reducers]
    state: list[mlir.Value] = []
    for reducer, twice in zip(task.reducers, compensated, strict=True):
        state += [reducer.identity()] * (2 if twice else 1)
    state = reduce_loop(task, cursor, first, state, compensated)
    return totals_of(state, compensated)


def totals_of(state: Sequence[mlir.Value], compensated: Sequence[bool]) -> list[mlir.Value]:
    """The values of a loop-carried state: compensated sums are (total, error) pairs."""
    totals, rest = [], list(state)
    for twice in compensated:
        total = rest.pop(0)
        totals.append(corrected(total, rest.pop(0)) if twice else total)
    return totals


def reduce_loop(
    task: Reduction, cursor: Cursor, d: int, state: list[mlir.Value], compensated: Sequence[bool]
) -> list[mlir.Value]:
    """Build loops `d` to the innermost one, which carry the state."""
    frame, size = task.frame, task.nest.sizes[d]
    one = frame.index(1)
    if d < task.nest.rank - 1:
        return emit.for_loop(
            frame.index(0),
            frame.index(size),
            one,
            lambda i, carried: reduce_loop(task, cursor.enter(d, i), d + 1, carried, compensated),
            state,
        )
    if task.vectors is not None and all(compensated) and size >= shortest(task.vectors):
        return absorb_lanes(task, task.vectors, cursor, state)
    if not any(compensated) or size <= 2 * BLOCK:
        return absorb(task, block_of(task, cursor, frame.index(0), frame.index(size)), state, compensated)
    whole = size // BLOCK * BLOCK

    def block(i: mlir.Value, carried: list[mlir.Value]) -> list[mlir.Value]:
        return absorb(task, block_of(task, cursor, i, frame.add(i, frame.index(BLOCK))), carried, compensated)

    state = emit.for_loop(frame.index(0), frame.index(whole), frame.index(BLOCK), block, state)
    if whole < size:
        state = absorb(task, block_of(task, cursor, frame.index(whole), frame.index(size)), state, compensated)
    return state


def absorb_lanes(task: Reduction, vectors: Lanes, cursor: Cursor, state: list[mlir.Value]) -> list[mlir.Value]:
    """The state of compensated sums with a row: whole blocks of it in lanes, and the elements after the last one."""
    size, flags = task.nest.sizes[-1], [True] * len(task.reducers)
    whole = size // block_length(vectors) * block_length(vectors)
    state = absorb(task, sum_row(task, vectors, cursor, whole), state, flags)
    if whole < size:
        rest = block_of(task, cursor, task.frame.index(whole), task.frame.index(size))
        state = absorb(task, rest, state, flags)
    return state


def absorb(
    task: Reduction, totals: Sequence[mlir.Value], state: Sequence[mlir.Value], compensated: Sequence[bool]
) -> list[mlir.Value]:
    """The state with the totals of one more block."""
    new: list[mlir.Value] = []
    rest = list(state)
    for reducer, total, twice in zip(task.reducers, totals, compensated, strict=True):
        before = rest.pop(0)
        new += two_sum(before, rest.pop(0), total) if twice else [reducer.combine(before, total)]
    return new


def block_of(task: Reduction, cursor: Cursor, lower: mlir.Value, upper: mlir.Value) -> list[mlir.Value]:
    """The innermost loop, which LLVM vectorises."""
    state: list[mlir.Value] = []
    for reducer in task.reducers:
        state.append(reducer.identity())
        if reducer.is_nan_aware:
            state.append(emit.number(mlir.IntegerType.get_signless(1), 0))

    def inner(i: mlir.Value, carried: list[mlir.Value]) -> list[mlir.Value]:
        new, rest = [], list(carried)
        for reducer, value in zip(task.reducers, task.values(cursor.enter(task.nest.rank - 1, i)), strict=True):
            before = rest.pop(0)
            if reducer.is_nan_aware:
                new += [reducer.combine_numbers(value, before), emit.same_type("arith.ori", rest.pop(0), is_nan(value))]
            else:
                new.append(reducer.combine(before, value, fast=True))
        return new

    final = emit.for_loop(lower, upper, task.frame.index(1), inner, state)
    totals = []
    for reducer in task.reducers:
        total = final.pop(0)
        if reducer.is_nan_aware:
            nan = emit.number(reducer.type, math.nan)
            total = emit.same_type("arith.select", final.pop(0), nan, total)
        totals.append(total)
    return totals
