"""Loops for operations without reductions: the dimension that most operands access with stride 1 is innermost."""

from __future__ import annotations

import math
from collections.abc import Callable

from mlirml.codegen.cpu import cost
from mlirml.codegen.cpu.frame import Cursor, Frame
from mlirml.codegen.cpu.nest import Body, Nest
from mlirml.ir import emit
from mlirml.ir.bindings import mlir

SHORT = 8
_FEW = 4
"""Elements that are unrolled completely: LLVM takes longer for a loop than for these."""
_SOME, _SHORT_BODIES = 16, 96
"""The limit of elements to unroll for a total of operations: values stay in registers from one to the next."""
_SCATTER, _GATHER = 8, 4
_PAIRS = 2  # the stride of the parts of complex numbers, which are loaded and stored in pairs


def stride_penalty(nest: Nest, d: int) -> int:
    """The penalty for loop `d` as the innermost one, by the strides of the operands."""
    first_out = len(nest.accesses) - nest.num_outputs
    penalty = 0
    for position, access in enumerate(nest.accesses):
        if access is not None and abs(access.strides[d]) == _PAIRS:
            penalty += 1
        elif access is not None and abs(access.strides[d]) > 1:
            penalty += _SCATTER if position >= first_out else _GATHER
        elif access is not None and position >= first_out and access.strides[d] == 0:
            penalty += 1
    return penalty


def outer_order(nest: Nest, dims: list[int]) -> list[int]:
    """The dims sorted by decreasing strides."""
    weight = {d: sum(abs(access.strides[d]) * access.bytes for access in nest.memory) for d in dims}
    return sorted(dims, key=lambda d: (-weight[d], d))


def innermost_dim(nest: Nest) -> int:
    """The loop that should be vectorised; among equals a long one."""
    return min(range(nest.rank), key=lambda d: (stride_penalty(nest, d), nest.sizes[d] < SHORT, -d))


def ordered(nest: Nest) -> Nest:
    """The nest with loops in the order of the best memory access, adjacent ones merged."""
    nest = nest.without_unit_dims()
    if nest.rank == 0:
        return nest
    inner = innermost_dim(nest)
    return nest.permuted([*outer_order(nest, [d for d in range(nest.rank) if d != inner]), inner]).collapsed()


def loop(
    frame: Frame, size: int, body: Callable[[mlir.Value], None], *, lower: int = 0, step: int = 1, grain: int = 0
) -> None:
    """`for i in range(lower, size, step)`, in parallel when `grain` is not 0."""
    first, upper, stride = frame.index(lower), frame.index(size), frame.index(step)
    if grain:
        parallel = emit.parallel_loop(first, upper, stride, body)
        parallel.attributes["mlirml.grain"] = emit.i64(grain)
        return

    def without_arguments(i: mlir.Value, _: list[mlir.Value]) -> None:
        body(i)

    emit.for_loop(first, upper, stride, without_arguments)


def outer_grain(nest: Nest, each_ns: float) -> int:
    """The grain of the outermost loop, if one point of the whole nest takes `each_ns`; 0 for a serial loop."""
    if not nest.rank or nest.reduction[0]:
        return 0
    return cost.grain(nest.sizes[0], each_ns * math.prod(nest.sizes[1:]))


def nested(cursor: Cursor, first: int, last: int, inner: Callable[[Cursor], None], *, grain: int = 0) -> None:
    """Build loops `first` to `last - 1` around `inner`; `grain` is that of the outermost."""
    if first == last:
        inner(cursor)
        return
    size = cursor.nest.sizes[first]
    loop(
        cursor.frame,
        size,
        lambda i: nested(cursor.enter(first, i), first + 1, last, inner),
        grain=grain,
    )


def most_written_out(body: Body) -> int:
    """The maximal number of elements that are computed without a loop."""
    return max(_FEW, min(_SOME, _SHORT_BODIES // max(1, len(body.ops))))


def lower_elementwise(frame: Frame, nest: Nest, body: Body, inits: dict[mlir.Value, mlir.Value]) -> None:
    """Lower an ordered nest whose loops are all parallel. `inits` are the known scalar inits of outputs."""

    def inner(cursor: Cursor) -> None:
        environment = cursor.run(body, cursor.arguments(body, inits))
        for number, value in enumerate(body.yields):
            cursor.store(environment.get(value, value), nest.out(number))

    if nest.rank == 1 and 0 < nest.sizes[0] <= most_written_out(body):
        start = Cursor.start(frame, nest)
        for number in range(nest.sizes[0]):
            inner(start.enter(0, frame.index(number)))
        return
    grain = outer_grain(nest, cost.iteration_ns(nest, body.ops))
    nested(Cursor.start(frame, nest), 0, nest.rank, inner, grain=grain)
