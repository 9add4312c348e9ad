"""Checkpoint: loops in functions that are computed again keep what they carry at the square root of their rounds.

Before:
    %0 = mlirml.again_input %x {group = 0, policy = "nothing"}
    %1 = scf.for %i = 0 to 1000 step 1 iter_args(%c = %0) { ... }
    %2 = mlirml.again_output %1 {group = 0, policy = "nothing"}
After:
    %0 = mlirml.again_input %x {group = 0, policy = "nothing"}
    %1 = scf.for %s = 0 to 1000 step 32 iter_args(%c = %0) {
      %e = arith.minsi 1000, %s + 32
      %3 = scf.for %i = %s to %e step 1 iter_args(%d = %c) { ... } {mlirml.rounds = 32, mlirml.levels = 1}
      scf.yield %3
    } {mlirml.rounds = 32, mlirml.levels = 1}
    %2 = mlirml.again_output %1 {group = 0, policy = "nothing"}

The way back keeps what segments begin with, and what their rounds begin with for one segment at a time (Griewank and
Walther, Evaluating Derivatives, section 12.1). Loops outside of such functions are cut the same way while derivatives
are expanded, where what they keep is known, and is too much.
"""

from __future__ import annotations

from mlirml.analysis.ranges import Ranges
from mlirml.autodiff.copies import copied
from mlirml.autodiff.reverse import group_of
from mlirml.core.dataclass import dataclass
from mlirml.ir import emit
from mlirml.ir.bindings import block_ops, defining_op, has_op, mlir, named_operations, operations
from mlirml.passes import Pass, register
from mlirml.passes.presence import ANY_REQUEST

ROUNDS = "mlirml.rounds"
"""The most rounds of a loop over a part of another one."""
LEVELS = "mlirml.levels"
"""How many nested loops such a loop is to be cut into, 1 for one that stays whole."""
UNBOUNDED = 1 << 34
"""As many rounds as a loop without a known bound is taken to have at most."""
FEW = 8
MOST_LEVELS = 5


@register(when=ANY_REQUEST)
@dataclass(frozen=True)
class CheckpointPass(Pass):
    """Cut the loops of functions that are computed again into segments."""

    name = "mlirml-checkpoint"

    def run(self, module: mlir.Operation) -> None:
        for function in block_ops(module.regions[0].blocks[0]):
            if function.name == "func.func" and has_op(function, ("mlirml.again_output",)):
                for op in loops_again(function):
                    _cut_for_good(op)


def loops_again(function: mlir.Operation) -> list[mlir.Operation]:
    """The loops in functions that are computed again and keep nothing, inner ones first."""
    found: list[mlir.Operation] = []
    ends = [op for op in named_operations(function, ("mlirml.again_output",)) if _keeps_nothing(op)]
    for group, end in {group_of(op): op for op in reversed(ends)}.items():
        ops = block_ops(end.block)
        starts = [n for n, op in enumerate(ops) if op.name == "mlirml.again_input" and group_of(op) == group]
        for op in ops[min(starts, default=len(ops)) : ops.index(end)]:
            found += [
                x for x in operations(op) if x.name == "scf.for" and LEVELS not in x.attributes and x not in found
            ]
    return found[::-1]


def _is_whole(op: mlir.Operation) -> bool:
    return op.name == "scf.for" and LEVELS not in op.attributes


def _keeps_nothing(op: mlir.Operation) -> bool:
    return bool(mlir.StringAttr(op.attributes["policy"]).value == "nothing")


def _cut_for_good(op: mlir.Operation) -> None:
    with op.location, mlir.InsertionPoint(op):
        most = most_rounds(op, rounds_of(*list(op.operands)[:3]))
    if most > FEW and len(op.results):
        cut(op, most, MOST_LEVELS if most == UNBOUNDED else 2)
        op.erase()


def most_rounds(op: mlir.Operation, rounds: mlir.Value) -> int:
    """How many rounds a loop has at most, `rounds` being their number."""
    if ROUNDS in op.attributes:
        return attribute(op, ROUNDS)
    _, most = Ranges().of(rounds)
    return min(most, UNBOUNDED)


def attribute(op: mlir.Operation, name: str) -> int:
    """An integer attribute."""
    return int(mlir.IntegerAttr(op.attributes[name]).value)


def keep_bounds(op: mlir.Operation, results: list[mlir.Value]) -> None:
    """Let the loop that gives `results`, and has the rounds of `op`, keep what is known of them."""
    for name in (ROUNDS, LEVELS):
        if name in op.attributes and results:
            results[0].owner.attributes[name] = op.attributes[name]


def root(number: int, degree: int) -> int:
    """The least integer whose power is not less than a number."""
    found: int = round(float(number) ** (1 / degree))
    return found if found**degree >= number else found + 1


def constant_index(value: mlir.Value) -> int | None:
    """The number that an index is, where it is a constant."""
    owner = defining_op(value)
    if owner is None or owner.name != "arith.constant":
        return None
    return int(mlir.IntegerAttr(owner.attributes["value"]).value)


def rounds_of(lower: mlir.Value, upper: mlir.Value, step: mlir.Value) -> mlir.Value:
    """How many rounds a loop has."""
    known = [constant_index(x) for x in (lower, upper, step)]
    if None not in known:
        return emit.index(len(range(*known)))  # type: ignore[arg-type]
    span = emit.same_type("arith.maxsi", emit.same_type("arith.subi", upper, lower), emit.index(0))
    return emit.same_type("arith.ceildivsi", span, step)


def cut(op: mlir.Operation, most: int, levels: int) -> mlir.Operation:
    """Build a loop over segments of the rounds of a loop in front of it, which takes its uses.

    The loop inside, over the rounds of a segment, is to be cut into the rest of `levels`.
    """
    lower, upper, step, *inits = op.operands
    block = op.regions[0].blocks[0]
    count = root(most, levels)
    length = -(-most // count)
    with op.location, mlir.InsertionPoint(op):
        stride = emit.same_type("arith.muli", step, emit.index(length))

        def segment(start: mlir.Value, values: list[mlir.Value]) -> list[mlir.Value]:
            end = emit.same_type("arith.minsi", upper, emit.same_type("arith.addi", start, stride))

            def round_(i: mlir.Value, inner: list[mlir.Value]) -> list[mlir.Value]:
                environment = dict(zip(block.arguments, [i, *inner]))
                copied(block, environment)
                return [environment.get(y, y) for y in block_ops(block)[-1].operands]

            found = emit.for_loop(start, end, step, round_, values)
            _bound(found[0].owner.operation, length, levels - 1)
            return found

        results = emit.for_loop(lower, upper, stride, segment, inits)
    new = results[0].owner.operation
    _bound(new, count, 1)
    for old, result in zip(op.results, results):
        old.replace_all_uses_with(result)
    return new


def _bound(op: mlir.Operation, rounds: int, levels: int) -> None:
    """Say how many rounds a loop has at most, and into how many it is to be cut."""
    op.attributes[ROUNDS], op.attributes[LEVELS] = emit.i64(rounds), emit.i64(levels)
