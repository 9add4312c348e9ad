"""The `mlirml` dialect: the attributes (and, where upstream has none, the operations) of our own, checked by IRDL."""

from __future__ import annotations

from collections.abc import Sequence

from mlirml.ir import mlir

SORTS = ("mlirml.sort", "mlirml.argsort")
PARALLEL_FOR = "mlirml.parallel_for"
CHECK = "mlirml.check"
"""The number of a `cf.assert` in the table of checks that capture made; the runtime reports it when the check fails."""


DIALECT = """
irdl.dialect @mlirml {
  irdl.operation @sort {
    %rows = irdl.any
    irdl.operands(input: %rows, out: %rows)
    irdl.results(sorted: optional %rows)
  }
  irdl.operation @argsort {
    %rows = irdl.any
    %positions = irdl.any
    irdl.operands(input: %rows, out: %positions)
    irdl.results(positions: optional %positions)
  }
  irdl.operation @independent {
    %kind = irdl.any
    irdl.operands(value: %kind)
    irdl.results(result: %kind)
  }
  irdl.operation @cotangent {
    %kind = irdl.any
    irdl.operands(value: %kind, cotangent: %kind)
  }
  irdl.operation @vjp {
    %kind = irdl.any
    irdl.operands(independent: %kind)
    irdl.results(gradient: %kind)
  }
  irdl.operation @dual {
    %kind = irdl.any
    irdl.operands(value: %kind, tangent: %kind)
    irdl.results(result: %kind)
  }
  irdl.operation @jvp {
    %kind = irdl.any
    irdl.operands(value: %kind)
    irdl.results(tangent: %kind)
  }
  irdl.operation @unbatch {
    %many = irdl.any
    %one = irdl.any
    irdl.operands(examples: %many)
    irdl.results(example: %one)
  }
  irdl.operation @vmap {
    %one = irdl.any
    %many = irdl.any
    irdl.operands(example: %one)
    irdl.results(examples: %many)
  }
  irdl.operation @custom_gradient {
    %kind = irdl.any
    irdl.operands(input: %kind, gradient: %kind)
  }
  irdl.operation @barrier {
    %kind = irdl.any
    irdl.operands(value: %kind)
    irdl.results(result: %kind)
  }
  irdl.operation @again_output {
    %kind = irdl.any
    irdl.operands(value: %kind)
    irdl.results(result: %kind)
  }
  irdl.operation @again_input {
    %kind = irdl.any
    irdl.operands(value: %kind)
    irdl.results(result: %kind)
  }
  irdl.operation @custom_cotangent {
    %kind = irdl.any
    irdl.operands(value: %kind)
    irdl.results(result: %kind)
  }
  irdl.operation @custom_output {
    %kind = irdl.any
    irdl.operands(value: %kind)
    irdl.results(result: %kind)
  }
  irdl.operation @custom_input {
    %kind = irdl.any
    irdl.operands(value: %kind)
    irdl.results(result: %kind)
  }
  irdl.operation @stop_gradient {
    %kind = irdl.any
    irdl.operands(value: %kind)
    irdl.results(result: %kind)
  }
}
"""
"""The dialect in IRDL: sorts of rows (`dialects/ops/sorting.py`), on tensors and on memrefs; requests for derivatives
and batches (`autodiff/requests.py`).

It is also the namespace of our discardable attributes, `mlirml.schedule`, `mlirml.parallel_for`, ...
"""


def parallel_for(
    callee: str, lower: mlir.Value, upper: mlir.Value, captures: Sequence[mlir.Value], *, grain: int
) -> mlir.Operation:
    """Build the call of `callee(lo, hi, captures...)` over chunks of [lower, upper) on the native pool.

        func.call @body(%lower, %upper, %a, %s) {mlirml.parallel_for = 64 : i64}
            : (index, index, memref<8xf32>, f32) -> ()

    `callee` is a private `func.func` whose first two arguments are `index`. `grain` is the least number of iterations
    worth a chunk. The attribute promises that calls over any partition of the range, in any order, do the same as this
    one, so a pass that ignores it is still right. It is an attribute of a call, and no operation of our dialect,
    because IRDL gives all values of a variadic operand one type, and captures have many.
    """
    attributes = {
        "callee": mlir.FlatSymbolRefAttr.get(callee),
        PARALLEL_FOR: mlir.IntegerAttr.get(mlir.IntegerType.get_signless(64), grain),
    }
    return mlir.Operation.create("func.call", operands=[lower, upper, *captures], attributes=attributes)


def parallel_grain(op: mlir.Operation) -> int | None:
    """The grain of a call that may run in parallel chunks; None for every other operation."""
    if op.name != "func.call" or PARALLEL_FOR not in op.attributes:
        return None
    return int(mlir.IntegerAttr(op.attributes[PARALLEL_FOR]).value)
