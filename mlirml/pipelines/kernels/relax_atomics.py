"""Relax atomics: atomic operations of kernels order nothing but themselves, among the threads of the device.

Before:
    %old = llvm.atomicrmw fmax %p, %v acq_rel : !llvm.ptr, f32
After:
    %old = llvm.atomicrmw fmax %p, %v syncscope("device") monotonic : !llvm.ptr, f32

No kernel passes data from one block to another by other memory: what a kernel stores is read by the next one. Without
this, an operation that has no instruction becomes a loop of `atom.acq_rel.sys`, for which the host, too, must wait.
"""

from __future__ import annotations

from mlirml.ir import emit
from mlirml.ir.bindings import block_ops, mlir, operations
from mlirml.passes import Pass, register

_MONOTONIC = 2


@register
class RelaxAtomicsPass(Pass):
    """Set the ordering and the scope of atomic operations in gpu.modules."""

    def run(self, module: mlir.Operation) -> None:
        for kernels in [op for op in block_ops(module.regions[0].blocks[0]) if op.name == "gpu.module"]:
            for op in [op for op in operations(kernels) if op.name == "llvm.atomicrmw"]:
                op.attributes["ordering"] = emit.i64(_MONOTONIC)
                op.attributes["syncscope"] = mlir.StringAttr.get("device")
