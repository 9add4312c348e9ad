"""Prepare NVVM: kernels are rewritten to the form that `convert-gpu-to-nvvm` accepts.

Before:
    gpu.module @kernels {
      gpu.func @k(%x: memref<8xf32>) kernel {
        %s = memref.alloc() : memref<8xf32, #gpu.address_space<workgroup>>
After:
    gpu.module @kernels {
      memref.global "private" @k.shared0 : memref<8xf32, #gpu.address_space<workgroup>> {alignment = 16 : i64}
      gpu.func @k(%x: memref<8xf32>) kernel {
        %s = memref.get_global @k.shared0 : memref<8xf32, #gpu.address_space<workgroup>>

Arrays of more than 48 KiB together are parts of what the launch asks for, a global without a size:
        %d = memref.get_global @shared_at_launch : memref<0xi8, #gpu.address_space<workgroup>>
        %s = memref.view %d[%offset][] : memref<0xi8, ...> to memref<65536xf16, #gpu.address_space<workgroup>>

Functions with an instruction become intrinsics: otherwise they would be calls of libdevice, and linking it takes a
second.
"""

from __future__ import annotations

from mlirml.analysis.shared_memory import arrays_of, dynamic_bytes
from mlirml.ir import emit
from mlirml.ir.bindings import block_ops, mlir, operations, replace_op
from mlirml.passes import Pass, register

_INTRINSICS = {
    "math.absf": "fabs", "math.ceil": "ceil", "math.copysign": "copysign", "math.floor": "floor", "math.fma": "fma",
    "math.roundeven": "roundeven", "math.sqrt": "sqrt", "math.trunc": "trunc",
}  # fmt: skip

_LARGE = 1 << 30
_GLOBAL = "memref.global"
DYNAMIC = "shared_at_launch"
"""The name of the shared memory that launches ask for."""


@register
class PrepareNvvmPass(Pass):
    """Rewrite gpu.modules to the form that converts to NVVM."""

    def run(self, module: mlir.Operation) -> None:
        for kernels in [op for op in block_ops(module.regions[0].blocks[0]) if op.name == "gpu.module"]:
            for function in block_ops(kernels.regions[0].blocks[0]):
                if function.name not in ("gpu.func", "func.func") or not len(function.regions[0].blocks):
                    continue  # already lowered, not a function, or a declaration
                with function.location:
                    size_arguments(function)
                    share_globals(function, kernels)
                    use_intrinsics(function)


def size_arguments(function: mlir.Operation) -> None:
    """Replace dynamic sizes of arguments by an arbitrary size: only the address is passed."""
    arguments = function.regions[0].blocks[0].arguments
    for argument in arguments:
        kind = argument.type
        if isinstance(kind, mlir.MemRefType) and not kind.has_static_shape:
            argument.set_type(mlir.MemRefType.get([_LARGE], kind.element_type))
    results = function.attributes["function_type"].value.results
    function_type = mlir.FunctionType.get([argument.type for argument in arguments], results)
    function.attributes["function_type"] = mlir.TypeAttr.get(function_type)


def share_globals(function: mlir.Operation, kernels: mlir.Operation) -> None:
    """Replace arrays in shared memory by globals of the module."""
    if dynamic_bytes(function):
        share_at_launch(function, kernels)
        return
    name = function.attributes["sym_name"].value
    for number, (op, _) in enumerate(arrays_of(function)):
        symbol = f"{name}.shared{number}"
        attributes = {
            "sym_name": mlir.StringAttr.get(symbol),
            "sym_visibility": mlir.StringAttr.get("private"),
            "type": mlir.TypeAttr.get(op.results[0].type),
            "alignment": emit.i64(16),
        }
        with mlir.InsertionPoint.at_block_begin(kernels.regions[0].blocks[0]):
            emit.create(_GLOBAL, attributes=attributes)
        with op.location, mlir.InsertionPoint(op):
            place = {"name": mlir.FlatSymbolRefAttr.get(symbol)}
            memory = emit.create("memref.get_global", (), [op.results[0].type], place)
        replace_op(op, memory.results[0])


def share_at_launch(function: mlir.Operation, kernels: mlir.Operation) -> None:
    """Replace arrays in shared memory by parts of what the launch asks for: a global that is defined elsewhere."""
    arrays = arrays_of(function)
    first = arrays[0][0]
    space = mlir.MemRefType(first.results[0].type).memory_space
    whole = mlir.MemRefType.get([0], mlir.IntegerType.get_signless(8), memory_space=space)
    known = [op.attributes["sym_name"].value for op in block_ops(kernels.regions[0].blocks[0]) if op.name == _GLOBAL]
    if DYNAMIC not in known:
        attributes = {
            "sym_name": mlir.StringAttr.get(DYNAMIC),
            "type": mlir.TypeAttr.get(whole),
            "alignment": emit.i64(16),
        }
        with mlir.InsertionPoint.at_block_begin(kernels.regions[0].blocks[0]):
            emit.create(_GLOBAL, attributes=attributes)
    with first.location, mlir.InsertionPoint(first):
        named = {"name": mlir.FlatSymbolRefAttr.get(DYNAMIC)}
        memory = emit.create("memref.get_global", (), [whole], named).results[0]
    for op, offset in arrays:
        with op.location, mlir.InsertionPoint(op):
            view = emit.value("memref.view", [memory, emit.index(offset)], op.results[0].type)
        replace_op(op, view)


def use_intrinsics(function: mlir.Operation) -> None:
    """Replace functions that the processor has instructions for by LLVM intrinsics."""
    for op in [op for op in operations(function) if op.name in _INTRINSICS]:
        with op.location, mlir.InsertionPoint(op):
            kind = op.results[0].type
            mangled = f"v{kind.shape[0]}{kind.element_type}" if isinstance(kind, mlir.VectorType) else str(kind)
            attributes = {
                "intrin": mlir.StringAttr.get(f"llvm.{_INTRINSICS[op.name]}.{mangled}"),
                "operandSegmentSizes": emit.segments(len(op.operands), 0),
                "op_bundle_sizes": emit.segments(),
            }
            new = emit.create("llvm.call_intrinsic", list(op.operands), [kind], attributes)
            op.results[0].replace_all_uses_with(new.results[0])
        op.erase()
