"""Lower exchanges: `convert-gpu-to-spirv` has no atomic exchange, so the pass encodes it as another operation there.

Before the conversion:
    %old = memref.atomic_rmw assign %v, %m[%i] : (i32, memref<8xi32>) -> i32
becomes
    %old = memref.atomic_rmw maxs %v, %m[%i] : (i32, memref<8xi32>) -> i32
and after the conversion, where the pass runs a second time:
    %old = spirv.AtomicSMax <Device> <AcquireRelease> %p, %v : !spirv.ptr<i32, StorageBuffer>
becomes
    %old = spirv.AtomicExchange <Device> <AcquireRelease> %p, %v : !spirv.ptr<i32, StorageBuffer>

No other atomics become signed maxima in kernels for SPIR-V: integers are signless there, and `mlirml-expand-atomics`
has expanded `maxs` into a loop.
"""

from __future__ import annotations

from mlirml.dialects.atomics import KINDS, kind_of
from mlirml.ir import emit
from mlirml.ir.bindings import mlir, operations, replace_op
from mlirml.passes import Pass, register


@register
class LowerExchangesPass(Pass):
    """Carry atomic exchanges through the conversion to SPIR-V: the pass runs before it and after it."""

    def run(self, module: mlir.Operation) -> None:
        for op in list(operations(module)):
            if op.name == "memref.atomic_rmw" and kind_of(op) == "assign":
                op.attributes["kind"] = emit.i64(KINDS.index("maxs"))
            elif op.name == "spirv.AtomicSMax":
                with op.location, mlir.InsertionPoint(op):
                    attributes = {name: op.attributes[name] for name in ("memory_scope", "semantics")}
                    new = emit.create("spirv.AtomicExchange", list(op.operands), [op.results[0].type], attributes)
                replace_op(op, new.results[0])
