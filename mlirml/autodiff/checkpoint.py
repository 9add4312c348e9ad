"""Checkpoint: rematerialized loops store their carried values at the square root of their iterations.

Before:
    %0 = mlirml.again_input %x {group = 0, policy = "nothing"}
    %1 = scf.for %i = 0 to 1000 step 1 iter_args(%c = %0) { ... }
    %2 = mlirml.again_output %1 {group = 0, policy = "nothing"}
After:
    %0 = mlirml.again_input %x {group = 0, policy = "nothing"}
    %1 = scf.for %s = 0 to 1000 step 32 iter_args(%c = %0) {
      %e = arith.minsi 1000, %s + 32
      %3 = scf.for %i = %s to %e step 1 iter_args(%d = %c) { ... } {mlirml.max_trip_count = 32, mlirml.levels = 1}
      scf.yield %3
    } {mlirml.max_trip_count = 32, mlirml.levels = 1}
    %2 = mlirml.again_output %1 {group = 0, policy = "nothing"}

The reverse pass stores the carried values at the start of each segment, and those of each iteration for one segment at
a time (Griewank and Walther, Evaluating Derivatives, section 12.1). Loops outside of such functions are split the same
way while derivatives are expanded, if the values that they must store are known to take too much memory.
"""

from __future__ import annotations

from mlirml.analysis.constants import constant_of
from mlirml.analysis.ranges import Ranges
from mlirml.autodiff.copies import copied
from mlirml.autodiff.reverse import group_of
from mlirml.ir import emit
from mlirml.ir.bindings import block_ops, has_op, mlir, named_operations, operations
from mlirml.passes import Pass, register
from mlirml.passes.presence import ANY_REQUEST

MAX_TRIP_COUNT = "mlirml.max_trip_count"
"""The maximal trip count of a loop over a segment of another one."""
LEVELS = "mlirml.levels"
"""The depth of the nest that such a loop is to be split into, 1 for a loop that is not split."""
UNBOUNDED = 1 << 34
"""The assumed maximal trip count of a loop without a known bound."""
FEW = 8
MOST_LEVELS = 5


@register(when=ANY_REQUEST)
class CheckpointPass(Pass):
    """Split the loops of rematerialized functions into segments."""

    def run(self, module: mlir.Operation) -> None:
        for function in block_ops(module.regions[0].blocks[0]):
            if function.name == "func.func" and has_op(function, ("mlirml.again_output",)):
                for op in rematerialized_loops(function):
                    _split_loop(op)


def rematerialized_loops(function: mlir.Operation) -> list[mlir.Operation]:
    """The loops in rematerialized functions that store nothing (policy "nothing"), inner ones first."""
    found: list[mlir.Operation] = []
    ends = [op for op in named_operations(function, ("mlirml.again_output",)) if _stores_nothing(op)]
    for group, end in {group_of(op): op for op in reversed(ends)}.items():
        ops = block_ops(end.block)
        starts = [n for n, op in enumerate(ops) if op.name == "mlirml.again_input" and group_of(op) == group]
        for op in ops[min(starts, default=len(ops)) : ops.index(end)]:
            found += [
                x for x in operations(op) if x.name == "scf.for" and LEVELS not in x.attributes and x not in found
            ]
    return found[::-1]


def _stores_nothing(op: mlir.Operation) -> bool:
    return bool(mlir.StringAttr(op.attributes["policy"]).value == "nothing")


def _split_loop(op: mlir.Operation) -> None:
    with op.location, mlir.InsertionPoint(op):
        most = max_trip_count(op, trip_count_of(*list(op.operands)[:3]))
    if most > FEW and len(op.results):
        cut(op, most, MOST_LEVELS if most == UNBOUNDED else 2)
        op.erase()


def max_trip_count(op: mlir.Operation, count: mlir.Value) -> int:
    """An upper bound of the trip count of a loop, `count` being its value."""
    if MAX_TRIP_COUNT in op.attributes:
        return attribute(op, MAX_TRIP_COUNT)
    _, most = Ranges().of(count)
    return min(most, UNBOUNDED)


def attribute(op: mlir.Operation, name: str) -> int:
    """The value of an integer attribute."""
    return int(mlir.IntegerAttr(op.attributes[name]).value)


def keep_bounds(op: mlir.Operation, results: list[mlir.Value]) -> None:
    """Copy the trip count bound of `op` to the loop that has `results`, and the same trip count."""
    for name in (MAX_TRIP_COUNT, LEVELS):
        if name in op.attributes and results:
            results[0].owner.attributes[name] = op.attributes[name]


def root(number: int, degree: int) -> int:
    """The least integer whose power of this degree is not less than a number."""
    found: int = round(float(number) ** (1 / degree))
    return found if found**degree >= number else found + 1


def trip_count_of(lower: mlir.Value, upper: mlir.Value, step: mlir.Value) -> mlir.Value:
    """The trip count of a loop as a value."""
    known = [constant_of(x) for x in (lower, upper, step)]
    if None not in known:
        return emit.index(len(range(*known)))  # type: ignore[arg-type]
    span = emit.same_type("arith.maxsi", emit.same_type("arith.subi", upper, lower), emit.index(0))
    return emit.same_type("arith.ceildivsi", span, step)


def cut(op: mlir.Operation, most: int, levels: int) -> mlir.Operation:
    """Build a loop over segments of the iterations of a loop, before it, and replace its uses.

    The inner loop, over the iterations of a segment, is to be split into the rest of `levels`.
    """
    lower, upper, step, *inits = op.operands
    block = op.regions[0].blocks[0]
    count = root(most, levels)
    length = -(-most // count)
    with op.location, mlir.InsertionPoint(op):
        stride = emit.same_type("arith.muli", step, emit.index(length))

        def segment(start: mlir.Value, values: list[mlir.Value]) -> list[mlir.Value]:
            end = emit.same_type("arith.minsi", upper, emit.same_type("arith.addi", start, stride))

            def iteration(i: mlir.Value, inner: list[mlir.Value]) -> list[mlir.Value]:
                environment = dict(zip(block.arguments, [i, *inner]))
                copied(block, environment)
                return [environment.get(y, y) for y in block_ops(block)[-1].operands]

            found = emit.for_loop(start, end, step, iteration, values)
            _bound(found[0].owner.operation, length, levels - 1)
            return found

        results = emit.for_loop(lower, upper, stride, segment, inits)
    new = results[0].owner.operation
    _bound(new, count, 1)
    for old, result in zip(op.results, results):
        old.replace_all_uses_with(result)
    return new


def _bound(op: mlir.Operation, most: int, levels: int) -> None:
    """Note the maximal trip count of a loop, and the depth of the nest that it is to be split into."""
    op.attributes[MAX_TRIP_COUNT], op.attributes[LEVELS] = emit.i64(most), emit.i64(levels)
