"""Predict selects: a choice that the next iteration would wait long for is a branch, whose outcome is predicted.

Before: an iteration takes as long as its exponential
    scf.for %i = %c0 to %n step %c1 iter_args(%x = %start) -> (f64) {
      %proposal = arith.addf %x, %step : f64
      %density = ...                                    // a slow function of %proposal and %x
      %better = arith.cmpf olt, %u, %density : f64
      %next = arith.select %better, %proposal, %x : f64
      scf.yield %next : f64
    }
After: the processor computes the next iteration while it waits for the comparison
      %next = scf.execute_region -> (f64) no_inline {
        cf.cond_br %better weights([1, 2000]), ^bb1, ^bb2
      ^bb1:
        scf.yield %proposal : f64
      ^bb2:
        scf.yield %x : f64
      }

A misprediction costs what the select costs always, and some cycles. The weights are there for LLVM, which would make a
select of a branch that it takes for undecided.
"""

from __future__ import annotations

from mlirml.analysis.cost import instructions_of
from mlirml.analysis.traits import LOOPS
from mlirml.analysis.values import used_values
from mlirml.ir import emit
from mlirml.ir.bindings import block_ops, mlir, named_operations, operations, replace_op
from mlirml.passes import Pass, register
from mlirml.passes.presence import program_names

_FLOAT = 4
"""The cycles after which the result of an operation on floats is there; a division takes some more."""
_FUNCTION = 40
"""The cycles that an elementary function takes: a polynomial, of which each term waits for the one before."""
_QUICK = ("arith.select", "arith.constant", "arith.bitcast", "arith.negf")


@register(when=program_names(("arith.select",)))
class PredictSelectsPass(Pass):
    """Make branches of selects whose condition is known `least` cycles after the loop-carried values or later."""

    least: int = 60

    def run(self, module: mlir.Operation) -> None:
        for loop in named_operations(module, ("scf.for",)):
            if len(loop.results) and not any(op.name in LOOPS for op in operations(loop) if op != loop):
                self.predict(loop)

    def predict(self, loop: mlir.Operation) -> None:
        """Make branches of the slow choices of carried values in a loop."""
        block = loop.regions[0].blocks[0]
        *ops, end = block_ops(block)
        known = delays(block, ops)
        slow: dict[mlir.Value, list[mlir.Operation]] = {}
        for op in ops:
            if op.name == "arith.select" and known.get(op.operands[0], 0) >= self.least and is_scalar(op):
                slow.setdefault(op.operands[0], []).append(op)
        for condition, selects in slow.items():
            if any(op.results[0] in list(end.operands) for op in selects):
                for op in selects:
                    build_branch(condition, op)


def is_scalar(op: mlir.Operation) -> bool:
    return isinstance(op.results[0].type, (mlir.FloatType, mlir.IntegerType, mlir.IndexType))


def delays(block: mlir.Block, ops: list[mlir.Operation]) -> dict[mlir.Value, int]:
    """The cycles from the carried values of a loop to the values that depend on them."""
    found: dict[mlir.Value, int] = dict.fromkeys(list(block.arguments)[1:], 0)
    for op in ops:
        before = [found[value] for value in used_values(op) if value in found]
        if before:
            inner = list(operations(op))[1:] if len(op.regions) else [op]
            after = max(before) + sum(map(latency, inner))
            found.update(dict.fromkeys(op.results, after))
    return found


def latency(op: mlir.Operation) -> int:
    """About how many cycles the result of an operation takes."""
    slow = instructions_of(op.name)
    if op.name in _QUICK or not op.results:
        return min(slow, 1)
    operand = op.operands[0].type if len(op.operands) else None
    if op.name == "func.call" or (op.name.startswith("math.") and slow > _FLOAT):
        return _FUNCTION
    return slow + _FLOAT - 1 if isinstance(operand, (mlir.FloatType, mlir.VectorType)) else slow


def build_branch(condition: mlir.Value, select: mlir.Operation) -> None:
    """Replace a select by a branch in a region of its own."""
    kind = select.results[0].type
    with select.location, mlir.InsertionPoint(select):
        region = emit.create("scf.execute_region", (), [kind], {"no_inline": mlir.UnitAttr.get()}, regions=1)
        entry, first, second = (emit.block(region, []) for _ in range(3))
        with mlir.InsertionPoint(entry):
            weights = mlir.DenseI32ArrayAttr.get([1, 2000])
            attributes = {"branch_weights": weights, "operandSegmentSizes": emit.segments(1, 0, 0)}
            mlir.Operation.create("cf.cond_br", operands=[condition], attributes=attributes, successors=[first, second])
        for block, value in zip((first, second), list(select.operands)[1:]):
            with mlir.InsertionPoint(block):
                emit.create("scf.yield", [value])
    replace_op(select, region.results[0])
