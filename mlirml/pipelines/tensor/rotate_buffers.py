"""Rotate buffers: a loop that swaps arrays at the end of each iteration is unrolled by the period of the permutation.

Before:
    %r:2 = scf.for %t = %c0 to %c100 step %c1 iter_args(%a = %x, %b = %y) -> (tensor<8xf32>, tensor<8xf32>) {
      %new = tensor.insert_slice %f into %b[1] [6] [1]    // %f is computed from %a
      scf.yield %new, %a
    }
After:
    %r:2 = scf.for %t = %c0 to %c100 step %c2 iter_args(%a = %x, %b = %y) -> (tensor<8xf32>, tensor<8xf32>) {
      %new = tensor.insert_slice %f into %b[1] [6] [1]    // %f is computed from %a
      %newer = tensor.insert_slice %g into %a[1] [6] [1]  // %g is computed from %new
      scf.yield %newer, %new
    }

A loop carries each array in one buffer, so that a swap would copy both. The remaining iterations, if the period does
not divide the trip count, run after the loop; for a dynamic trip count in a second loop, which copies.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from mlirml.analysis.constants import constant_of
from mlirml.analysis.trip_counts import trip_count
from mlirml.core.dataclass import dataclass
from mlirml.ir import emit
from mlirml.ir.bindings import block_ops, clone_with, defining_op, mlir, named_operations, operations
from mlirml.passes import NoMatch, Pass, register
from mlirml.passes.presence import ANY_LOOP
from mlirml.pipelines.bufferize.destinations import grows_from


@register(when=ANY_LOOP)
@dataclass(frozen=True)
class RotateBuffersPass(Pass):
    """Unroll loops that permute arrays, up to `max_factor` times if the result has at most `max_ops` operations."""

    name = "mlirml-rotate-buffers"
    max_factor: int = 6
    max_ops: int = 2400

    def run(self, module: mlir.Operation) -> None:
        for loop in named_operations(module, ("scf.for",))[::-1]:  # inner loops first
            try:
                period = match_rotation(loop)
            except NoMatch:
                continue
            if period <= self.max_factor and period * sum(1 for _ in operations(loop)) <= self.max_ops:
                unroll(loop, period)


def match_rotation(loop: mlir.Operation) -> int:
    """The number of iterations after which all arrays are in their initial buffers; raises NoMatch if it is one."""
    block = loop.regions[0].blocks[0]
    carried, final = list(block.arguments)[1:], list(block_ops(block)[-1].operands)
    tensors = [n for n, value in enumerate(carried) if isinstance(value.type, mlir.RankedTensorType)]
    homes: dict[int, int] = {}
    for number in tensors:
        found = home(final[number], carried)
        if found is not None and carried[found].type == carried[number].type:
            if found in homes.values():
                raise NoMatch("two arrays come from one")
            homes[number] = found
    if all(number == found for number, found in homes.items()):
        raise NoMatch("every array stays in its buffer")
    free = [number for number in tensors if number not in homes.values()]
    for number in sorted((n for n in tensors if n not in homes), key=lambda n: n not in free):
        choice = [candidate for candidate in free if carried[candidate].type == carried[number].type]
        if not choice:
            raise NoMatch("an array has no buffer")
        homes[number] = number if number in choice else choice[0]
        free.remove(homes[number])
    period = math.lcm(*(cycle_length(homes, number) for number in tensors))
    count = trip_count(loop)
    if count is not None and count < period:
        raise NoMatch("the trip count is less than the period")
    return period


def home(value: mlir.Value, carried: Sequence[mlir.Value]) -> int | None:
    """The index of the carried tensor in whose buffer a value is computed without copies."""
    while value not in carried:
        op = defining_op(value)
        grown = grows_from(op, value) if op is not None else None
        if grown is None:
            return None
        value = grown
    return carried.index(value)


def cycle_length(homes: dict[int, int], start: int) -> int:
    length, at = 1, homes[start]
    while at != start:
        length, at = length + 1, homes[at]
    return length


def unroll(loop: mlir.Operation, factor: int) -> None:
    """Replace a loop by one with `factor` bodies, followed by the remaining iterations."""
    block = loop.regions[0].blocks[0]
    lower, upper, step = list(loop.operands)[:3]
    count = trip_count(loop)
    with loop.location, mlir.InsertionPoint(loop):
        whole = unrolled_iterations(loop, count, factor)
        stride = times(step, factor)
        middle = emit.same_type("arith.addi", lower, times_value(whole, step))
        if count is not None and count % factor == 0:
            middle = upper
        attributes = {name: loop.attributes[name] for name in loop.attributes}
        inits = list(loop.operands)[3:]
        main = emit.create("scf.for", [lower, middle, stride, *inits], [v.type for v in inits], attributes, regions=1)
        inner = emit.block(main, [argument.type for argument in block.arguments])
        with mlir.InsertionPoint(inner):
            variable, *values = inner.arguments
            for number in range(factor):
                values = clone_iteration(block, after(variable, step, number), values)
            emit.create("scf.yield", values)
        if count is None:
            loop.operands[0] = middle
            for position, result in enumerate(main.results):
                loop.operands[3 + position] = result
            return
        values = list(main.results)
        for number in range(count % factor):
            values = clone_iteration(block, after(middle, step, number), values)
    for old, new in zip(loop.results, values, strict=True):
        old.replace_all_uses_with(new)
    loop.erase()


def unrolled_iterations(loop: mlir.Operation, count: int | None, factor: int) -> mlir.Value:
    """The number of iterations of a loop that the unrolled one executes."""
    lower, upper, step = list(loop.operands)[:3]
    if count is not None:
        return emit.number(lower.type, count - count % factor)
    span = emit.same_type("arith.ceildivsi", emit.same_type("arith.subi", upper, lower), step)
    span = emit.same_type("arith.maxsi", span, emit.number(lower.type, 0))
    rest = emit.same_type("arith.remsi", span, emit.number(lower.type, factor))
    return emit.same_type("arith.subi", span, rest)


def times(value: mlir.Value, factor: int) -> mlir.Value:
    known = constant_of(value)
    if known is not None:
        return emit.number(value.type, known * factor)
    return emit.same_type("arith.muli", value, emit.number(value.type, factor))


def times_value(value: mlir.Value, step: mlir.Value) -> mlir.Value:
    return value if constant_of(step) == 1 else emit.same_type("arith.muli", value, step)


def after(start: mlir.Value, step: mlir.Value, iterations: int) -> mlir.Value:
    """The loop variable some iterations later."""
    return emit.same_type("arith.addi", start, times(step, iterations)) if iterations else start


def clone_iteration(block: mlir.Block, variable: mlir.Value, values: Sequence[mlir.Value]) -> list[mlir.Value]:
    """Clone the body of a loop at the insertion point; returns the yielded values."""
    known = dict(zip(block.arguments, [variable, *values], strict=True))
    *ops, final = block_ops(block)
    for op in ops:
        clone_with(op, known)
    return [known.get(value, value) for value in final.operands]
