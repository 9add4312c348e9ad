"""Emit the entry: `llvm.func @entry(!llvm.ptr)` takes all pointers in one array and calls @main.

Before:
    llvm.func @main(%x: !llvm.ptr, %y: !llvm.ptr) attributes {mlirml.inputs = ..., mlirml.outputs = ...} { ... }
After:
    llvm.func private @main(%x: !llvm.ptr {llvm.noalias}, %y: !llvm.ptr {llvm.noalias}) { ... }
    llvm.func @entry(%pointers: !llvm.ptr) attributes {mlirml.inputs = ..., mlirml.outputs = ...} {
      %0 = llvm.load %pointers : !llvm.ptr -> !llvm.ptr
      %p1 = llvm.getelementptr %pointers[1] : (!llvm.ptr) -> !llvm.ptr, !llvm.ptr
      %1 = llvm.load %p1 : !llvm.ptr -> !llvm.ptr
      llvm.call @main(%0, %1) : (!llvm.ptr, !llvm.ptr) -> ()
      llvm.return
    }

`noalias` holds for all of them: by the contract of `Artifact` outputs and the workspace do not overlap anything, and
inputs, which may be the same array twice, are only read. A module of kernels without @main gets no entry.
"""

from __future__ import annotations

from mlirml.dialects.mlirml import TILE
from mlirml.errors import LoweringError
from mlirml.ir import emit
from mlirml.ir.bindings import block_ops, has_function, main_function, mlir, named_function
from mlirml.ir.location import source_location
from mlirml.passes import Pass, register
from mlirml.pipelines.memref.split_function import NO_INLINE

ENTRY = "entry"


@register
class EmitEntryPass(Pass):
    """Add the entry point that takes an array of pointers."""

    def run(self, module: mlir.Operation) -> None:
        keep_apart(module)
        if not has_function(module, "main"):
            return
        main = main_function(module)
        check_arguments(main)
        with main.location, mlir.InsertionPoint.at_block_begin(module.regions[0].blocks[0]):
            count = len(main.regions[0].blocks[0].arguments)
            emit_entry(main, count)
            mark_private(main, count)


def check_arguments(main: mlir.Operation) -> None:
    """Reject arrays of dynamic size, which are not passed as single pointers."""
    if any(str(argument.type) != "!llvm.ptr" for argument in main.regions[0].blocks[0].arguments):
        raise LoweringError(
            "an argument or a result of @main has a size that is not known, and the entry takes a pointer for each",
            location=source_location(main.location),
            help="give arrays their sizes, as `tensor<8xf32>`: programs are compiled for the shapes of their arguments",
        )


def entry_function(module: mlir.Operation) -> mlir.Operation:
    """The `llvm.func @entry` of a module."""
    return named_function(module, ENTRY)


def keep_apart(module: mlir.Operation) -> None:
    """Mark functions that LLVM must not inline; `func.func` has no attribute for it that lowering preserves."""
    for function in block_ops(module.regions[0].blocks[0]):
        if TILE in function.attributes:
            del function.attributes[TILE]
        if NO_INLINE in function.attributes:
            del function.attributes[NO_INLINE]
            function.attributes["no_inline"] = mlir.UnitAttr.get()


def mark_private(main: mlir.Operation, count: int) -> None:
    """Set internal linkage, and `noalias` on every argument."""
    main.attributes["linkage"] = mlir.Attribute.parse("#llvm.linkage<internal>")
    flag = mlir.DictAttr.get({"llvm.noalias": mlir.UnitAttr.get()})
    if count:
        main.attributes["arg_attrs"] = mlir.ArrayAttr.get([flag] * count)


def emit_entry(main: mlir.Operation, count: int) -> None:
    pointer = mlir.Type.parse("!llvm.ptr")
    attributes = {
        "sym_name": mlir.StringAttr.get(ENTRY),
        "function_type": mlir.TypeAttr.get(mlir.Type.parse("!llvm.func<void (ptr)>")),
        "linkage": mlir.Attribute.parse("#llvm.linkage<external>"),
        "CConv": mlir.Attribute.parse("#llvm.cconv<ccc>"),
    }
    for name in list(main.attributes):
        if name.startswith("mlirml."):
            attributes[name] = main.attributes[name]
            del main.attributes[name]
    entry = emit.create("llvm.func", (), (), attributes, regions=1)
    body = emit.block(entry, [pointer])
    with mlir.InsertionPoint(body):
        loaded = [load_pointer(body.arguments[0], number, pointer) for number in range(count)]
        call = {
            "callee": mlir.FlatSymbolRefAttr.get("main"),
            "operandSegmentSizes": emit.segments(count, 0),
            "op_bundle_sizes": mlir.DenseI32ArrayAttr.get([]),
        }
        emit.create("llvm.call", loaded, (), call)
        emit.create("llvm.return")


def load_pointer(array: mlir.Value, number: int, pointer: mlir.Type) -> mlir.Value:
    """`array[number]` of an array of pointers."""
    if number:
        indices = mlir.DenseI32ArrayAttr.get([number])
        element = mlir.TypeAttr.get(pointer)
        array = emit.value("llvm.getelementptr", [array], pointer, rawConstantIndices=indices, elem_type=element)
    return emit.value("llvm.load", [array], pointer)
