"""Loops for reductions: by rows or by columns, in one stage or in two.

If few parallel iterations have much work, a reduction is split into chunks of fixed size, whose partial results are
reduced by a second nest: results never depend on the number of threads.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from mlirml.analysis.cost import element_bytes
from mlirml.analysis.costs import costs
from mlirml.codegen.cpu import cost
from mlirml.codegen.cpu.elementwise.loops import innermost_dim, outer_order
from mlirml.codegen.cpu.frame import Cursor, Frame
from mlirml.codegen.cpu.nest import Access, Body, Nest
from mlirml.codegen.cpu.reduce import columns as reduce_columns
from mlirml.codegen.cpu.reduce.combiners import Reducer
from mlirml.codegen.cpu.reduce.rows import reduce_rows
from mlirml.codegen.cpu.reduce.sums import sum_lanes
from mlirml.codegen.cpu.reduce.task import Reduction, at, parallel_rank, store_inits
from mlirml.core.dataclass import replace
from mlirml.ir import emit
from mlirml.ir.bindings import mlir

CHUNK, CHUNK_ROWS = 65536, 64
"""Elements of a chunk of a reduction by columns in two stages; at least this number of rows, if there are enough."""
ROW_CHUNK = 16384
"""Elements of a chunk of a reduction by rows in two stages; several chunks are read at the same time."""
PARALLEL = 2
"""The work of a reduction in two stages, relative to that of other parallel loops."""
FEW = 32
"""With fewer parallel iterations, threads would wait for the last one too long."""


def lower_reduction(
    frame: Frame,
    nest: Nest,
    body: Body,
    reducers: Sequence[Reducer],
    inits: dict[mlir.Value, mlir.Value],
    vector_bits: int,
) -> None:
    """Lower an operation whose accumulations are all known combiners."""
    if any(size == 0 and not reduced for size, reduced in zip(nest.sizes, nest.reduction, strict=True)):
        return
    nest = order(nest.without_unit_dims())
    skip = [op for reducer in reducers for op in reducer.ops]
    accumulated = {reducer.out for reducer in reducers}

    def values(cursor: Cursor) -> list[mlir.Value]:
        environment = cursor.run(body, cursor.arguments(body, hidden), skip)
        for number, value in enumerate(body.yields):
            if number not in accumulated:
                cursor.store(environment.get(value, value), cursor.nest.out(number))
        return [environment.get(reducer.value, reducer.value) for reducer in reducers]

    arguments = body.arguments[len(body.arguments) - nest.num_outputs :]
    hidden = {arguments[reducer.out]: arguments[reducer.out] for reducer in reducers}
    each = cost.iteration_ns(nest, body.ops)
    outputs = tuple(nest.out(reducer.out) for reducer in reducers)
    known = tuple(inits.get(arguments[reducer.out]) for reducer in reducers)
    vectors = sum_lanes(nest, body, reducers, vector_bits)
    emit_reduction(Reduction(frame, nest, tuple(reducers), outputs, known, values, each, vectors))


def order(nest: Nest) -> Nest:
    """Row reductions: parallel loops, then reduced ones. Column reductions: the innermost loop is parallel."""
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
        store_inits(task.with_nest(nest.permuted(parallel), [at(out, parallel) for out in task.outputs]))
    elif should_split(task):
        split_reduction(task)
    elif nest.rank and not nest.reduction[-1]:
        reduce_columns.reduce_columns(task)
    else:
        reduce_rows(task)


def should_split(task: Reduction) -> bool:
    """True if there is work for several threads, but not enough parallel iterations."""
    nest = task.nest
    rank = parallel_rank(nest)
    if task.frame.in_parallel or rank == nest.rank or nest.origin[rank] in nest.pinned:
        return False
    points = math.prod(nest.sizes)
    iterations = nest.sizes[0] if rank else 1
    if not nest.reduction[-1]:
        row_bytes = nest.sizes[-1] * sum(element_bytes(reducer.type) for reducer in task.reducers)
        iterations = max(iterations, row_bytes // reduce_columns.COLUMNS_BYTES)
    return iterations < FEW and points * task.each_ns >= PARALLEL * costs().parallel_ns


def split_reduction(task: Reduction) -> None:
    """Reduce chunks of the outermost reduced loop to partial results, and then those."""
    nest, frame = task.nest, task.frame
    d = parallel_rank(nest)
    size = nest.sizes[d]
    inner_size = math.prod(nest.sizes[d + 1 :])
    if nest.reduction[-1]:
        chunk = min(ROW_CHUNK, math.ceil(costs().chunk_ns / 2 / task.each_ns))
        length = even_length(size, max(1, chunk // inner_size), 1)
    else:
        length = max(1, CHUNK // inner_size, min(CHUNK_ROWS, size // FEW))
        length = even_length(size, length, reduce_columns.rows_together(task))
    count, rest = divmod(size, length)
    parallel = [p for p in range(nest.rank) if not nest.reduction[p]]
    shape = [nest.sizes[p] for p in parallel]
    total = count + (rest > 0)
    partials = []
    for reducer in task.reducers:
        buffer = allocate(frame, math.prod(shape) * total, reducer.type)
        partials.append(partial_access(nest, buffer, reducer.type, total, parallel, d))
    first = [reducer.identity() for reducer in task.reducers]
    task = replace(task, inits=tuple(task.inits))
    stage = replace(task, inits=tuple(first))
    emit_single(chunked(stage, partials, d, count, length, 0))
    if rest:
        emit_single(chunked(stage, partials, d, 1, rest, count))
    combine_partials(task, partials, d, total)


def even_length(size: int, length: int, together: int) -> int:
    """A similar length of which `size` is a multiple, if there is one: another nest for the rest is as much code.

    It is a multiple of the rows that are added together, so that no rows remain in each chunk.
    """
    about = range(max(1, length * 3 // 4), length * 3 // 2)
    lengths = [each for each in about if size % each == 0 and each % together == 0]
    return min(lengths, key=lambda each: abs(each - length), default=length)


def emit_single(task: Reduction) -> None:
    """Build one stage."""
    if task.nest.reduction[-1]:
        reduce_rows(task)
    else:
        reduce_columns.reduce_columns(task)


def allocate(frame: Frame, size: int, type_: mlir.Type) -> mlir.Value:
    """Allocate a temporary buffer, before the loops."""
    with frame.front:
        attributes = {"alignment": emit.i64(64), "operandSegmentSizes": emit.segments(0, 0)}
        return emit.create("memref.alloc", (), [mlir.MemRefType.get([size], type_)], attributes).results[0]


def partial_access(
    nest: Nest, buffer: mlir.Value, type_: mlir.Type, total: int, parallel: Sequence[int], d: int
) -> Access:
    """Partial results are [outer parallel loops, chunk, inner parallel loops] in the order of the nest."""
    strides = [0] * nest.rank
    step = 1
    for p in sorted([*parallel, d], reverse=True):
        strides[p] = step
        step *= total if p == d else nest.sizes[p]
    return Access(buffer, 0, tuple(strides), element_bytes(type_))


def chunked(task: Reduction, partials: Sequence[Access], d: int, count: int, length: int, first: int) -> Reduction:
    """Split loop `d` into a parallel loop over `count` chunks and a reduced one over `length`, from chunk `first` on.

    All chunks before `first` have the length of `split_reduction`, so that they end where the longest possible ones do.
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
    """Build the second stage."""
    nest = task.nest
    dims = [p for p in range(nest.rank) if not nest.reduction[p] or p == d]
    sizes = tuple(total if p == d else nest.sizes[p] for p in dims)
    reduction = tuple(p == d for p in dims)
    accesses = tuple(at(partial, dims) for partial in partials)
    second = Nest(sizes, reduction, accesses, 0, tuple(nest.origin[p] for p in dims), frozenset())

    def values(cursor: Cursor) -> list[mlir.Value]:
        return [cursor.load(access) for access in accesses]

    outputs = tuple(at(out, dims) for out in task.outputs)
    emit_single(replace(task, nest=second, outputs=outputs, values=values, each_ns=0.1, vectors=None))
