"""Loops for accumulations without a known combiner: reduced loops keep their order."""

from __future__ import annotations

from mlirml.codegen.cpu import cost
from mlirml.codegen.cpu.elementwise.loops import innermost_dim, nested, outer_grain, outer_order
from mlirml.codegen.cpu.frame import Cursor, Frame
from mlirml.codegen.cpu.nest import Access, Body, Nest
from mlirml.ir import emit
from mlirml.ir.bindings import mlir


def lower_sequential(frame: Frame, nest: Nest, body: Body) -> None:
    """Lower an operation with arbitrary reductions, in the order of its points."""
    if 0 in nest.sizes:
        return
    nest = nest.without_unit_dims()
    if nest.rank == 0 or not nest.reduction[innermost_dim(nest)]:
        walk_memory(frame, nest, body)
    else:
        walk_rows(frame, nest, body)


def reduced_dims(nest: Nest) -> list[int]:
    return [d for d in range(nest.rank) if nest.reduction[d]]


def parallel_dims(nest: Nest) -> list[int]:
    return [d for d in range(nest.rank) if not nest.reduction[d]]


def walk_memory(frame: Frame, nest: Nest, body: Body) -> None:
    """The innermost loop is parallel: the outputs are loaded and stored at every point."""
    parallel = parallel_dims(nest)
    inner = [innermost_dim(nest)] if parallel else []
    outer = outer_order(nest, [d for d in parallel if d not in inner])
    nest = nest.permuted([*outer, *reduced_dims(nest), *inner]).collapsed()

    def point(cursor: Cursor) -> None:
        environment = cursor.run(body, cursor.arguments(body, {}))
        for number, value in enumerate(body.yields):
            cursor.store(environment.get(value, value), nest.out(number))

    grain = outer_grain(nest, cost.iteration_ns(nest, body.ops))
    nested(Cursor.start(frame, nest), 0, nest.rank, point, grain=grain)


def walk_rows(frame: Frame, nest: Nest, body: Body) -> None:
    """The innermost loop is reduced: the outputs that it does not index are loop-carried values."""
    nest = nest.permuted([*outer_order(nest, parallel_dims(nest)), *reduced_dims(nest)]).collapsed()
    rank = nest.reduction.index(True)
    arguments = body.arguments[len(body.arguments) - nest.num_outputs :]
    carried = [number for number in range(nest.num_outputs) if is_carried(nest, nest.out(number))]

    def row(cursor: Cursor) -> None:
        inits = [cursor.load(nest.out(number)) for number in carried]
        final = reduce_from(cursor, rank, inits)
        for number, value in zip(carried, final, strict=True):
            cursor.store(value, nest.out(number))

    def reduce_from(cursor: Cursor, d: int, values: list[mlir.Value]) -> list[mlir.Value]:
        if d == nest.rank:
            return point(cursor, values)
        return emit.for_loop(
            frame.index(0),
            frame.index(nest.sizes[d]),
            frame.index(1),
            lambda i, inner: reduce_from(cursor.enter(d, i), d + 1, inner),
            values,
        )

    def point(cursor: Cursor, values: list[mlir.Value]) -> list[mlir.Value]:
        given = {arguments[number]: value for number, value in zip(carried, values, strict=True)}
        environment = cursor.run(body, cursor.arguments(body, given))
        yields = [environment.get(value, value) for value in body.yields]
        for number, value in enumerate(yields):
            if number not in carried:
                cursor.store(value, nest.out(number))
        return [yields[number] for number in carried]

    grain = outer_grain(nest, cost.iteration_ns(nest, body.ops)) if rank else 0
    nested(Cursor.start(frame, nest), 0, rank, row, grain=grain)


def is_carried(nest: Nest, access: Access) -> bool:
    """True if no reduced loop indexes an output."""
    return all(not stride for stride, reduced in zip(access.strides, nest.reduction, strict=True) if reduced)
