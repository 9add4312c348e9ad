"""Loops for reductions.

Row reductions: the innermost loop is reduced, and its accumulators are loop-carried values that LLVM makes vectors of.
Float sums go in blocks, whose sums are added with compensation: the error does not grow with the length.
Column reductions: the innermost loop is parallel; rows are added, several at a time, to a piece of the out that stays
in the first-level cache. Where few parallel iterations carry much work, a reduction is cut into chunks of fixed size,
whose partial results are reduced by a second nest: results never depend on the number of threads.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from mlirml.dialects import emit
from mlirml.ir import mlir
from mlirml.pipelines.schedules import cost
from mlirml.pipelines.schedules.elementwise import innermost_dim, loop, nested, outer_order
from mlirml.pipelines.schedules.frame import Cursor, Frame
from mlirml.pipelines.schedules.nest import Access, Body, Nest, element_bytes
from mlirml.pipelines.schedules.reducers import Reducer, corrected, is_nan, two_sum

BLOCK = 1024
"""Elements that one set of accumulators sums up."""
COLUMNS_BYTES = 16384
"""The piece of an out row that a column reduction keeps in cache."""
ROWS = 8
"""Rows that a column reduction adds at a time, to read and write the out less often."""
SHORT_ROW_BYTES, LONG_ROW_BYTES = 512, 4096
"""Rows between these lengths are read one after the other when they come from memory: the prefetchers lose track of
many short pieces, while shorter rows are one piece together and longer ones are long enough."""
CHUNK = 65536
"""Elements of a chunk of a reduction that is cut in two stages."""
FEW = 32
"""Parallel loops with fewer iterations are not worth keeping all threads waiting for the last one."""


@dataclass(frozen=True)
class Reduction:
    """A reduction to emit.

    `values` builds the values to combine at a point; `inits[n]` is the scalar that an out starts from, None where the
    out holds it; `each_ns` is the cost of a point.
    """

    frame: Frame
    nest: Nest
    reducers: tuple[Reducer, ...]
    outs: tuple[Access, ...]
    inits: tuple[mlir.Value | None, ...]
    values: Callable[[Cursor], list[mlir.Value]]
    each_ns: float

    def with_nest(self, nest: Nest, outs: Sequence[Access] | None = None) -> Reduction:
        return replace(self, nest=nest, outs=tuple(outs or self.outs))


def lower_reduction(
    frame: Frame, nest: Nest, body: Body, reducers: Sequence[Reducer], inits: dict[mlir.Value, mlir.Value]
) -> None:
    """Lower an operation whose accumulations are all known combiners."""
    if any(size == 0 and not reduced for size, reduced in zip(nest.sizes, nest.reduction, strict=True)):
        return
    nest = order(nest.without_unit_dims())
    skip = [reducer.op for reducer in reducers]
    accumulated = {reducer.out for reducer in reducers}

    def values(cursor: Cursor) -> list[mlir.Value]:
        environment = cursor.run(body, cursor.arguments(body, hidden), skip)
        for number, value in enumerate(body.yields):
            if number not in accumulated:
                cursor.store(environment.get(value, value), cursor.nest.out(number))
        return [environment.get(reducer.value, reducer.value) for reducer in reducers]

    arguments = body.arguments[len(body.arguments) - nest.outs :]
    hidden = {arguments[reducer.out]: arguments[reducer.out] for reducer in reducers}
    each = cost.iteration_ns(nest, body.ops)
    outs = tuple(nest.out(reducer.out) for reducer in reducers)
    known = tuple(inits.get(arguments[reducer.out]) for reducer in reducers)
    emit_reduction(Reduction(frame, nest, tuple(reducers), outs, known, values, each))


def order(nest: Nest) -> Nest:
    """Row reductions: parallel loops, then reduced ones. Column reductions: the innermost is parallel."""
    if nest.rank == 0:
        return nest
    inner = innermost_dim(nest)
    rest = [d for d in range(nest.rank) if d != inner]
    parallel = outer_order(nest, [d for d in rest if not nest.reduction[d]])
    reduced = outer_order(nest, [d for d in rest if nest.reduction[d]])
    return nest.permuted([*parallel, *reduced, inner]).collapsed()


def emit_reduction(task: Reduction) -> None:
    """Choose between one stage and two, rows and columns."""
    nest = task.nest
    if 0 in nest.sizes:
        parallel = [d for d in range(nest.rank) if not nest.reduction[d]]
        store_inits(task.with_nest(nest.permuted(parallel), [at(out, parallel) for out in task.outs]))
    elif should_split(task):
        split_reduction(task)
    elif nest.rank and not nest.reduction[-1]:
        reduce_columns(task)
    else:
        reduce_rows(task)


def at(access: Access, dims: Sequence[int]) -> Access:
    """The access with only some of the loops."""
    return replace(access, strides=tuple(access.strides[d] for d in dims))


def parallel_rank(nest: Nest) -> int:
    """The number of parallel loops outside of the reduced ones."""
    return next((d for d, reduced in enumerate(nest.reduction) if reduced), nest.rank)


def start(task: Reduction) -> Cursor:
    """In front of all loops, with the outs among the accesses."""
    known = set(task.nest.memory)
    extra = tuple(out for out in task.outs if out not in known)
    nest = replace(task.nest, accesses=(*extra, *task.nest.accesses)) if extra else task.nest
    cursor = Cursor.start(task.frame, nest)
    return replace(cursor, nest=task.nest)


def store_inits(task: Reduction) -> None:
    """A reduction of nothing gives its init."""

    def inner(cursor: Cursor) -> None:
        for init, out in zip(task.inits, task.outs, strict=True):
            if init is not None:
                cursor.store(init, out)

    nested(start(task), 0, task.nest.rank, inner)


def reduce_rows(task: Reduction) -> None:
    """Parallel loops around accumulators."""
    rank = parallel_rank(task.nest)
    inside = task.each_ns * math.prod(task.nest.sizes[rank:])
    outer = math.prod(task.nest.sizes[1:rank])
    grain = cost.grain(task.nest.sizes[0], inside * outer) if rank else 0

    def inner(cursor: Cursor) -> None:
        totals = reduce_from(task, cursor, rank)
        for reducer, total, init, out in zip(task.reducers, totals, task.inits, task.outs, strict=True):
            cursor.store(reducer.combine(cursor.load(out) if init is None else init, total), out)

    nested(start(task), 0, rank, inner, grain=grain)


def reduce_from(task: Reduction, cursor: Cursor, first: int) -> list[mlir.Value]:
    """Reduce loops `first` to the innermost one; the totals, without the inits."""
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
    """Loops `d` to the innermost, the state carried through."""
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
    if not any(compensated) or size <= 2 * BLOCK:
        return absorb(task, block_of(task, cursor, frame.index(0), frame.index(size)), state, compensated)
    whole = size // BLOCK * BLOCK

    def block(i: mlir.Value, carried: list[mlir.Value]) -> list[mlir.Value]:
        return absorb(task, block_of(task, cursor, i, frame.add(i, frame.index(BLOCK))), carried, compensated)

    state = emit.for_loop(frame.index(0), frame.index(whole), frame.index(BLOCK), block, state)
    if whole < size:
        state = absorb(task, block_of(task, cursor, frame.index(whole), frame.index(size)), state, compensated)
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
    """The innermost loop, the one that LLVM vectorises."""
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
            nan = emit.number(reducer.kind, math.nan)
            total = emit.same_type("arith.select", final.pop(0), nan, total)
        totals.append(total)
    return totals


def reduce_columns(task: Reduction) -> None:
    """Rows added into a piece of the out row."""
    nest, frame = task.nest, task.frame
    rank, width = parallel_rank(nest), nest.sizes[-1]
    tile = max(1, COLUMNS_BYTES // sum(element_bytes(reducer.kind) for reducer in task.reducers))
    count = math.ceil(width / tile)
    inside = task.each_ns * math.prod(nest.sizes[rank:-1])
    outer_parallel = rank > 0 and nest.sizes[0] >= count
    outer_grain = cost.grain(nest.sizes[0], inside * width * math.prod(nest.sizes[1:rank])) if outer_parallel else 0
    tile_grain = 0 if outer_grain else cost.grain(count, inside * min(tile, width))

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
            for value, out in zip(task.inits, task.outs, strict=True):
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
    """How many rows a column reduction adds at a time."""
    nest = task.nest
    widths = [access.bytes * nest.sizes[-1] for access in nest.memory if access.strides[-1]]
    footprint = sum(cost.extent(nest, access) for access in nest.memory)
    short = SHORT_ROW_BYTES <= max(widths, default=0) < LONG_ROW_BYTES
    return 1 if short and footprint > cost.CACHE_BYTES else ROWS


def add_rows(task: Reduction, cursor: Cursor, count: int, lower: mlir.Value, upper: mlir.Value) -> None:
    """Combine `count` rows, as a tree, and then with the out."""
    d = task.nest.rank - 2

    def inner(j: mlir.Value, _: list[mlir.Value]) -> None:
        here = cursor.enter(task.nest.rank - 1, j)
        rows = [task.values(here.shifted(d, step) if step else here) for step in range(count)]
        for number, (reducer, out) in enumerate(zip(task.reducers, task.outs, strict=True)):
            values = [row[number] for row in rows]
            while len(values) > 1:
                pairs = [reducer.combine(a, b) for a, b in zip(values[::2], values[1::2], strict=False)]
                values = [*pairs, *values[len(pairs) * 2 :]]
            here.store(reducer.combine(here.load(out), values[0]), out)

    emit.for_loop(lower, upper, task.frame.index(1), inner)


def should_split(task: Reduction) -> bool:
    """Whether there is work for several threads, but not enough parallel iterations."""
    nest = task.nest
    rank = parallel_rank(nest)
    if task.frame.inside or rank == nest.rank or nest.origin[rank] in nest.pinned:
        return False
    points = math.prod(nest.sizes)
    iterations = nest.sizes[0] if rank else 1
    if not nest.reduction[-1]:
        row_bytes = nest.sizes[-1] * sum(element_bytes(reducer.kind) for reducer in task.reducers)
        iterations = max(iterations, row_bytes // COLUMNS_BYTES)
    return iterations < FEW and points >= 4 * CHUNK and points * task.each_ns > 4 * cost.PARALLEL_NS


def split_reduction(task: Reduction) -> None:
    """Reduce chunks of the outermost reduced loop to partial results, and then those."""
    nest, frame = task.nest, task.frame
    d = parallel_rank(nest)
    size = nest.sizes[d]
    inside = math.prod(nest.sizes[d + 1 :])
    length = max(1, CHUNK // inside) if inside < CHUNK else 1
    count, rest = divmod(size, length)
    parallel = [p for p in range(nest.rank) if not nest.reduction[p]]
    shape = [nest.sizes[p] for p in parallel]
    total = count + (rest > 0)
    partials = []
    for reducer in task.reducers:
        buffer = allocate(frame, math.prod(shape) * total, reducer.kind)
        partials.append(partial_access(nest, buffer, reducer.kind, total, parallel, d))
    first = [reducer.identity() for reducer in task.reducers]
    task = replace(task, inits=tuple(task.inits))
    stage = replace(task, inits=tuple(first))
    emit_single(chunked(stage, partials, d, count, length, 0))
    if rest:
        emit_single(chunked(stage, partials, d, 1, rest, count))
    combine_partials(task, partials, d, total)


def emit_single(task: Reduction) -> None:
    """One stage."""
    if task.nest.reduction[-1]:
        reduce_rows(task)
    else:
        reduce_columns(task)


def allocate(frame: Frame, size: int, kind: mlir.Type) -> mlir.Value:
    """A temporary buffer, in front of the loops."""
    with frame.front:
        attributes = {"alignment": emit.i64(64), "operandSegmentSizes": emit.segments(0, 0)}
        return emit.create("memref.alloc", (), [mlir.MemRefType.get([size], kind)], attributes).results[0]


def partial_access(
    nest: Nest, buffer: mlir.Value, kind: mlir.Type, total: int, parallel: Sequence[int], d: int
) -> Access:
    """Partial results lie as [parallel loops outside, chunk, parallel loops inside] in the order of the nest."""
    strides = [0] * nest.rank
    step = 1
    for p in sorted([*parallel, d], reverse=True):
        strides[p] = step
        step *= total if p == d else nest.sizes[p]
    return Access(buffer, 0, tuple(strides), element_bytes(kind))


def chunked(task: Reduction, partials: Sequence[Access], d: int, count: int, length: int, first: int) -> Reduction:
    """Loop `d` as a parallel loop over `count` chunks and a reduced one over `length`, from chunk `first` on.

    All chunks in front of `first` are as long as CHUNK says, so that they end where the longest possible ones do.
    """
    nest = task.nest
    whole = nest.sizes[d] - length if first else 0

    def split(access: Access | None) -> Access | None:
        if access is None:
            return None
        stride = access.strides[d]
        strides = (stride * length, *access.strides[:d], stride, *access.strides[d + 1 :])
        return replace(access, offset=access.offset + stride * whole, strides=strides)

    def split_partial(access: Access) -> Access:
        stride = access.strides[d]
        strides = (stride, *access.strides[:d], 0, *access.strides[d + 1 :])
        return replace(access, offset=access.offset + stride * first, strides=strides)

    sizes = (count, *nest.sizes[:d], length, *nest.sizes[d + 1 :])
    reduction = (False, *nest.reduction)
    origin = (-1, *nest.origin)
    accesses = tuple(map(split, nest.accesses))
    new = replace(nest, sizes=sizes, reduction=reduction, origin=origin, accesses=accesses)
    return task.with_nest(new, [split_partial(partial) for partial in partials])


def combine_partials(task: Reduction, partials: Sequence[Access], d: int, total: int) -> None:
    """The second stage."""
    nest = task.nest
    dims = [p for p in range(nest.rank) if not nest.reduction[p] or p == d]
    sizes = tuple(total if p == d else nest.sizes[p] for p in dims)
    reduction = tuple(p == d for p in dims)
    accesses = tuple(at(partial, dims) for partial in partials)
    second = Nest(sizes, reduction, accesses, 0, tuple(nest.origin[p] for p in dims), frozenset())

    def values(cursor: Cursor) -> list[mlir.Value]:
        return [cursor.load(access) for access in accesses]

    outs = tuple(at(out, dims) for out in task.outs)
    emit_single(replace(task, nest=second, outs=outs, values=values, each_ns=0.1))
