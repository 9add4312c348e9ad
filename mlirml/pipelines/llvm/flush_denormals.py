"""Flush denormals: programs with derivatives treat subnormal floats as zero.

Before:
    llvm.func @entry(%pointers: !llvm.ptr) attributes {mlirml.flush_denormals} {
      llvm.call @main(...)
      llvm.return
    }
After:
    llvm.func @entry(%pointers: !llvm.ptr) {
      %old = llvm.alloca %one x i32 : (i64) -> !llvm.ptr
      %new = llvm.alloca %one x i32 : (i64) -> !llvm.ptr
      llvm.call_intrinsic "llvm.x86.sse.stmxcsr"(%old) : (!llvm.ptr) -> ()
      ...                                              // %new = %old | 0x8040: flush to zero, denormals are zero
      llvm.call_intrinsic "llvm.x86.sse.ldmxcsr"(%new) : (!llvm.ptr) -> ()
      llvm.call @main(...)
      llvm.call_intrinsic "llvm.x86.sse.ldmxcsr"(%old) : (!llvm.ptr) -> ()
      llvm.return
    }

The product of two small derivatives (weights of a softmax, say) is often subnormal, and each subnormal costs the
processor a hundred times what another float does. The threads of the pool set the same mode in the functions that they
call. A module of kernels, which has no entry, is marked itself.
"""

from __future__ import annotations

from mlirml.core.dataclass import dataclass
from mlirml.dialects.mlirml import FLUSH_DENORMALS
from mlirml.ir import emit
from mlirml.ir.bindings import block_ops, has_function, mlir
from mlirml.passes import Pass, register
from mlirml.passes.presence import ANY_REQUEST
from mlirml.pipelines.llvm.emit_entry import ENTRY, entry_function

_FLUSH = 0x8040
_STORE, _LOAD = "llvm.x86.sse.stmxcsr", "llvm.x86.sse.ldmxcsr"


@register(when=ANY_REQUEST)
@dataclass(frozen=True)
class FlushDenormalsPass(Pass):
    """Set the processor's floating-point mode in the entry of a marked program, and in the functions of its threads."""

    name = "mlirml-flush-denormals"

    def run(self, module: mlir.Operation) -> None:
        marked = entry_function(module) if has_function(module, ENTRY) else module
        if FLUSH_DENORMALS not in marked.attributes:
            return
        del marked.attributes[FLUSH_DENORMALS]
        for function in block_ops(module.regions[0].blocks[0]):
            if function == marked or _is_thunk(function):
                set_mode(function)


def _is_thunk(function: mlir.Operation) -> bool:
    name = mlir.StringAttr(function.attributes["sym_name"]).value if function.name == "llvm.func" else ""
    return bool(name.endswith(".thunk"))


def set_mode(function: mlir.Operation) -> None:
    """Set the mode at the start of a single-block function and restore it at the end."""
    (block,) = function.regions[0].blocks
    pointer, i32 = mlir.Type.parse("!llvm.ptr"), mlir.IntegerType.get_signless(32)
    with function.location:
        with mlir.InsertionPoint.at_block_begin(block):
            one = emit.value("llvm.mlir.constant", (), mlir.IntegerType.get_signless(64), value=emit.i64(1))
            old, new = (
                emit.value("llvm.alloca", [one], pointer, elem_type=mlir.TypeAttr.get(i32), alignment=emit.i64(4))
                for _ in range(2)
            )
            _call(_STORE, old)
            flags = emit.value("llvm.mlir.constant", (), i32, value=mlir.IntegerAttr.get(i32, _FLUSH))
            mode = emit.value("llvm.or", [emit.value("llvm.load", [old], i32), flags], i32)
            emit.create("llvm.store", [mode, new])
            _call(_LOAD, new)
        with mlir.InsertionPoint(block_ops(block)[-1]):
            _call(_LOAD, old)


def _call(name: str, pointer: mlir.Value) -> None:
    attributes = {
        "intrin": mlir.StringAttr.get(name),
        "operandSegmentSizes": emit.segments(1, 0),
        "op_bundle_sizes": mlir.DenseI32ArrayAttr.get([]),
    }
    emit.create("llvm.call_intrinsic", [pointer], (), attributes)
