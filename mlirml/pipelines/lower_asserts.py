"""Lower asserts: a `cf.assert` reports the number of its check to the native runtime, which raises after the call.

Before:
    func.func @main(%ok: i1) {
      cf.assert %ok, "index out of bounds" {mlirml.check = 3 : i64}
    }
After:
    func.func private @mlirml_check_failed(i64)
    func.func @main(%ok: i1) {
      %true = arith.constant true
      %failed = arith.xori %ok, %true : i1
      scf.if %failed {
        %c3 = arith.constant 3 : i64
        func.call @mlirml_check_failed(%c3) : (i64) -> ()
      }
    }

The program goes on after a failed check, so that it must be safe without: capture clamps the indices that it asserts.
The runtime keeps the number of the first failure for the thread that called the program, so that no check may stand in
a loop that other threads run. A check without a number reports -1.
"""

from __future__ import annotations

from dataclasses import dataclass

from mlirml.dialects import emit
from mlirml.dialects.mlirml import CHECK, parallel_grain
from mlirml.errors import InternalError
from mlirml.ir import mlir, operations
from mlirml.passes import Pass, register

RUNTIME = "mlirml_check_failed"


@register
@dataclass(frozen=True)
class LowerAssertsPass(Pass):
    """Turn asserts into guarded calls of the native runtime."""

    name = "mlirml-lower-asserts"

    def run(self, module: mlir.Operation) -> None:
        found = list(operations(module))
        asserts = [op for op in found if op.name == "cf.assert"]
        if not asserts:
            return
        parallel = {str(op.attributes["callee"]) for op in found if parallel_grain(op) is not None}
        declare(module, asserts[0])
        for op in asserts:
            if f"@{function_name(op)}" in parallel or is_in_parallel(op):
                raise InternalError(f"a check would run on several threads: {op.location}")
            lower(op)


def declare(module: mlir.Operation, first: mlir.Operation) -> None:
    """The runtime's function, in front of all others."""
    kind = mlir.FunctionType.get([mlir.IntegerType.get_signless(64)], [])
    attributes = {
        "sym_name": mlir.StringAttr.get(RUNTIME),
        "sym_visibility": mlir.StringAttr.get("private"),
        "function_type": mlir.TypeAttr.get(kind),
    }
    with first.location, mlir.InsertionPoint.at_block_begin(module.regions[0].blocks[0]):
        emit.create("func.func", (), (), attributes, regions=1)


def function_name(op: mlir.Operation) -> str:
    """The function around an operation."""
    while op.name != "func.func":
        op = op.parent.operation
    return str(mlir.StringAttr(op.attributes["sym_name"]).value)


def is_in_parallel(op: mlir.Operation) -> bool:
    """Whether an operation stands in a parallel loop."""
    while op.name != "func.func":
        op = op.parent.operation
        if op.name in ("scf.parallel", "scf.forall"):
            return True
    return False


def lower(op: mlir.Operation) -> None:
    """Replace one assert."""
    number = mlir.IntegerAttr(op.attributes[CHECK]).value if CHECK in op.attributes else -1
    with op.location, mlir.InsertionPoint(op):
        bit = mlir.IntegerType.get_signless(1)
        failed = emit.same_type("arith.xori", op.operands[0], emit.number(bit, 1))
        guard = emit.create("scf.if", [failed], (), regions=2)
        with mlir.InsertionPoint(emit.block(guard, [])):
            argument = emit.constant(emit.i64(number))
            emit.create("func.call", [argument], (), {"callee": mlir.FlatSymbolRefAttr.get(RUNTIME)})
            emit.create("scf.yield")
    op.erase()
