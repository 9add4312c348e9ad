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
call. A module of kernels, which has no entry, is marked itself. On AArch64 the mode is a bit of FPCR.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from mlirml.dialects.mlirml import FLUSH_DENORMALS
from mlirml.ir import emit
from mlirml.ir.bindings import block_ops, has_function, mlir
from mlirml.passes import Pass, register
from mlirml.pipelines.llvm.emit_entry import ENTRY, entry_function
from mlirml.targets.machine import Processor

_FLUSH = 0x8040
_STORE, _LOAD = "llvm.x86.sse.stmxcsr", "llvm.x86.sse.ldmxcsr"
_FLUSH_ARM = 1 << 24
_GET_FPCR, _SET_FPCR = "llvm.aarch64.get.fpcr", "llvm.aarch64.set.fpcr"


@register(when=("#mlirml.flush_denormals",))
class FlushDenormalsPass(Pass):
    """Set the processor's floating-point mode in the entry of a marked program, and in the functions of its threads."""

    processor: Processor = Processor()

    def run(self, module: mlir.Operation) -> None:
        marked = entry_function(module) if has_function(module, ENTRY) else module
        if FLUSH_DENORMALS not in marked.attributes:
            return
        del marked.attributes[FLUSH_DENORMALS]
        for function in block_ops(module.regions[0].blocks[0]):
            if function == marked or _is_thunk(function):
                set_mode(function, self.processor)


def _is_thunk(function: mlir.Operation) -> bool:
    name = mlir.StringAttr(function.attributes["sym_name"]).value if function.name == "llvm.func" else ""
    return bool(name.endswith(".thunk"))


def set_mode(function: mlir.Operation, processor: Processor) -> None:
    """Set the mode at the start of a single-block function and restore it at the end."""
    (block,) = function.regions[0].blocks
    with function.location:
        with mlir.InsertionPoint.at_block_begin(block):
            restore = _set_x86() if processor.architecture == "x86_64" else _set_arm()
        with mlir.InsertionPoint(block_ops(block)[-1]):
            restore()


def _set_x86() -> Callable[[], object]:
    """Set the mode in MXCSR, which is read and written in memory; returns the function that restores it."""
    pointer, i32 = mlir.Type.parse("!llvm.ptr"), mlir.IntegerType.get_signless(32)
    one = emit.value("llvm.mlir.constant", (), mlir.IntegerType.get_signless(64), value=emit.i64(1))
    old, new = (
        emit.value("llvm.alloca", [one], pointer, elem_type=mlir.TypeAttr.get(i32), alignment=emit.i64(4))
        for _ in range(2)
    )
    _call(_STORE, [old])
    flags = emit.value("llvm.mlir.constant", (), i32, value=mlir.IntegerAttr.get(i32, _FLUSH))
    mode = emit.value("llvm.or", [emit.value("llvm.load", [old], i32), flags], i32)
    emit.create("llvm.store", [mode, new])
    _call(_LOAD, [new])
    return partial(_call, _LOAD, [old])


def _set_arm() -> Callable[[], object]:
    """Set the mode in FPCR of AArch64; returns the function that restores it."""
    i64 = mlir.IntegerType.get_signless(64)
    old = _call(_GET_FPCR, [], i64).results[0]
    flags = emit.value("llvm.mlir.constant", (), i64, value=emit.i64(_FLUSH_ARM))
    _call(_SET_FPCR, [emit.value("llvm.or", [old, flags], i64)])
    return partial(_call, _SET_FPCR, [old])


def _call(name: str, operands: Sequence[mlir.Value], *results: mlir.Type) -> mlir.Operation:
    attributes = {
        "intrin": mlir.StringAttr.get(name),
        "operandSegmentSizes": emit.segments(len(operands), 0),
        "op_bundle_sizes": mlir.DenseI32ArrayAttr.get([]),
    }
    return emit.create("llvm.call_intrinsic", operands, results, attributes)
