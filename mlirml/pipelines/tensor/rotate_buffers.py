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

from mlirml.analysis.trip_counts import trip_count
from mlirml.core.no_match import matched
from mlirml.ir.bindings import block_ops, defining_op, mlir, named_operations, operations
from mlirml.passes import NoMatch, Pass, register
from mlirml.passes.presence import PROGRAM_LOOP
from mlirml.pipelines.bufferize.destinations import grows_from
from mlirml.pipelines.unroll import unroll


@register(when=PROGRAM_LOOP, optional=True)
class RotateBuffersPass(Pass):
    """Unroll loops that permute arrays, up to `max_factor` times if the result has at most `max_ops` operations."""

    max_factor: int = 6
    max_ops: int = 2400

    def run(self, module: mlir.Operation) -> None:
        inner_first = named_operations(module, ("scf.for",))[::-1]
        for loop, period in matched(match_rotation, inner_first):
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
