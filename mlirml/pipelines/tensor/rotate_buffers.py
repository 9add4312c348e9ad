"""Rotate buffers: a loop that swaps arrays at the end of each round is unrolled until each is back in its place.

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

A loop carries each array in one buffer, so that a swap would copy both. What is left of a number of rounds that the
period does not divide runs behind the loop; where the number is known at run time only, in a second loop, which copies.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from mlirml.analysis.trip_counts import constant_of, round_count
from mlirml.core.dataclass import dataclass
from mlirml.ir import emit
from mlirml.ir.bindings import block_ops, clone_with, defining_op, mlir, named_operations, operations
from mlirml.passes import NoMatch, Pass, register
from mlirml.passes.presence import ANY_LOOP
from mlirml.pipelines.bufferize.destinations import grows_from


@register(when=ANY_LOOP)
@dataclass(frozen=True)
class RotateBuffersPass(Pass):
    """Unroll loops whose arrays change places, up to `max_rounds` times where that gives up to `max_ops` operations."""

    name = "mlirml-rotate-buffers"
    max_rounds: int = 6
    max_ops: int = 2400

    def run(self, module: mlir.Operation) -> None:
        for loop in named_operations(module, ("scf.for",))[::-1]:  # inner loops first
            try:
                rounds = match_rotation(loop)
            except NoMatch:
                continue
            if rounds <= self.max_rounds and rounds * sum(1 for _ in operations(loop)) <= self.max_ops:
                unroll(loop, rounds)


def match_rotation(loop: mlir.Operation) -> int:
    """After how many rounds all arrays are back in the buffers in which they came; NoMatch where they always are."""
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
        raise NoMatch("every array stays in its place")
    free = [number for number in tensors if number not in homes.values()]
    for number in sorted((n for n in tensors if n not in homes), key=lambda n: n not in free):
        choice = [place for place in free if carried[place].type == carried[number].type]
        if not choice:
            raise NoMatch("an array has no place")
        homes[number] = number if number in choice else choice[0]
        free.remove(homes[number])
    rounds = math.lcm(*(cycle_length(homes, number) for number in tensors))
    count = round_count(loop)
    if count is not None and count < rounds:
        raise NoMatch("there are few rounds")
    return rounds


def home(value: mlir.Value, carried: Sequence[mlir.Value]) -> int | None:
    """The number of the carried tensor in whose buffer a value comes to lie by itself."""
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


def unroll(loop: mlir.Operation, rounds: int) -> None:
    """Replace a loop by one of `rounds` bodies, and what is left of its rounds."""
    block = loop.regions[0].blocks[0]
    lower, upper, step = list(loop.operands)[:3]
    count = round_count(loop)
    with loop.location, mlir.InsertionPoint(loop):
        whole = number_of_whole(loop, count, rounds)
        stride = times(step, rounds)
        middle = emit.same_type("arith.addi", lower, times_value(whole, step))
        if count is not None and count % rounds == 0:
            middle = upper
        attributes = {name: loop.attributes[name] for name in loop.attributes}
        inits = list(loop.operands)[3:]
        main = emit.create("scf.for", [lower, middle, stride, *inits], [v.type for v in inits], attributes, regions=1)
        inner = emit.block(main, [argument.type for argument in block.arguments])
        with mlir.InsertionPoint(inner):
            variable, *values = inner.arguments
            for number in range(rounds):
                values = round_of(block, after(variable, step, number), values)
            emit.create("scf.yield", values)
        if count is None:
            loop.operands[0] = middle
            for position, result in enumerate(main.results):
                loop.operands[3 + position] = result
            return
        values = list(main.results)
        for number in range(count % rounds):
            values = round_of(block, after(middle, step, number), values)
    for old, new in zip(loop.results, values, strict=True):
        old.replace_all_uses_with(new)
    loop.erase()


def number_of_whole(loop: mlir.Operation, count: int | None, rounds: int) -> mlir.Value:
    """How many rounds of a loop go into the unrolled one."""
    lower, upper, step = list(loop.operands)[:3]
    if count is not None:
        return emit.number(lower.type, count - count % rounds)
    span = emit.same_type("arith.ceildivsi", emit.same_type("arith.subi", upper, lower), step)
    span = emit.same_type("arith.maxsi", span, emit.number(lower.type, 0))
    rest = emit.same_type("arith.remsi", span, emit.number(lower.type, rounds))
    return emit.same_type("arith.subi", span, rest)


def times(value: mlir.Value, factor: int) -> mlir.Value:
    known = constant_of(value)
    if known is not None:
        return emit.number(value.type, known * factor)
    return emit.same_type("arith.muli", value, emit.number(value.type, factor))


def times_value(value: mlir.Value, step: mlir.Value) -> mlir.Value:
    return value if constant_of(step) == 1 else emit.same_type("arith.muli", value, step)


def after(start: mlir.Value, step: mlir.Value, rounds: int) -> mlir.Value:
    """The loop variable some rounds later."""
    return emit.same_type("arith.addi", start, times(step, rounds)) if rounds else start


def round_of(block: mlir.Block, variable: mlir.Value, values: Sequence[mlir.Value]) -> list[mlir.Value]:
    """Clone the body of a loop here; what it carries on."""
    known = dict(zip(block.arguments, [variable, *values], strict=True))
    *ops, final = block_ops(block)
    for op in ops:
        clone_with(op, known)
    return [known.get(value, value) for value in final.operands]
