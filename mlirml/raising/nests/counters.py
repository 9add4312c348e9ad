"""Compute loop-carried counters from the induction variables of the loops.

    scf.for %i = %lb to %ub step %c1 iter_args(%n = %n0) {       scf.for %i = %lb to %ub step %c1 {
      ... %n ...                                                    ... %n0 + 2 * (%i - %lb) ...
      %n1 = arith.addi %n, %c2                                    }
      scf.yield %n1                                               ... %n0 + 2 * (%ub - %lb) ...
    }

So a flat index that is incremented in each iteration of a nest becomes an index by its loops. 64-bit arithmetic wraps
in the same way in both.
"""

from __future__ import annotations

from mlirml.analysis.affine import Reader
from mlirml.analysis.ranges import Ranges
from mlirml.ir import emit
from mlirml.ir.bindings import block_ops, mlir, operations
from mlirml.ir.rank_zero import insertion_point_after


def close_counters(function: mlir.Operation) -> None:
    """Compute the counters of all loops of a function, those of inner loops first."""
    ranges = Ranges()
    for loop in reversed([op for op in operations(function) if op.name == "scf.for"]):
        for number in range(len(loop.results)):
            if str(loop.results[number].type) in ("index", "i64"):
                close_counter(loop, number, ranges)


def close_counter(loop: mlir.Operation, number: int, ranges: Ranges) -> None:
    """Compute one loop-carried value from the induction variable, if each iteration adds the same to it."""
    reader = Reader(lambda _: True)
    body = loop.regions[0].blocks[0]
    count, final = body.arguments[1 + number], block_ops(body)[-1]
    after, step = reader.read(final.operands[number]), reader.read(loop.operands[2])
    before = reader.read(count)
    if after is None or before is None or step is None or not step.is_constant or step.constant < 1:
        return
    added = after - before
    if not added.is_constant or added.constant % step.constant:
        return
    factor = added.constant // step.constant
    lower, upper = list(loop.operands)[:2]
    with loop.location:
        with mlir.InsertionPoint.at_block_begin(body):
            here = _counted(loop, number, body.arguments[0], factor)
        with insertion_point_after(loop.results[number]):
            last = end_value(lower, upper, step.constant, ranges)
            there = _counted(loop, number, last, factor)
    loop.results[number].replace_all_uses_with(there)
    final.operands[number] = count
    for use in list(count.uses):
        if use.owner.operation != final or use.operand_number != number:
            use.owner.operands[use.operand_number] = here


def _counted(loop: mlir.Operation, number: int, variable: mlir.Value, factor: int) -> mlir.Value:
    """Build `init + factor * (variable - lower)`."""
    start = loop.operands[3 + number]
    moved = emit.same_type("arith.subi", variable, loop.operands[0])
    total = emit.same_type("arith.muli", moved, emit.index(factor))
    if start.type != total.type:
        total = emit.value("arith.index_cast", [total], start.type)
    return emit.same_type("arith.addi", total, start)


def end_value(lower: mlir.Value, upper: mlir.Value, step: int, ranges: Ranges) -> mlir.Value:
    """Build the first value past the last one of a loop's induction variable."""
    if ranges.of(lower)[1] > ranges.of(upper)[0]:
        upper = emit.same_type("arith.maxsi", lower, upper)
    if step == 1:
        return upper
    length = emit.same_type("arith.subi", upper, lower)
    trip_count = emit.same_type("arith.ceildivsi", length, emit.index(step))
    return emit.same_type("arith.addi", lower, emit.same_type("arith.muli", trip_count, emit.index(step)))
