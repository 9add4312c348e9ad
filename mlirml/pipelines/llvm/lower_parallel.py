"""Lower parallel calls: captures are stored to a struct on the stack, and the native pool calls a thunk with it.

Before:
    llvm.call @main.parallel0(%lo, %hi, %x) {mlirml.parallel_for = 1024 : i64} : (i64, i64, !llvm.ptr) -> ()
After:
    %context = llvm.alloca %one x !llvm.struct<(ptr)> : (i64) -> !llvm.ptr
    %field = llvm.getelementptr %context[0, 0] : (!llvm.ptr) -> !llvm.ptr, !llvm.struct<(ptr)>
    llvm.store %x, %field : !llvm.ptr, !llvm.ptr
    %thunk = llvm.mlir.addressof @main.parallel0.thunk : !llvm.ptr
    llvm.call @mlirml_parallel_for(%thunk, %lo, %hi, %grain, %context) : (!llvm.ptr, i64, i64, i64, !llvm.ptr) -> ()

    llvm.func internal @main.parallel0.thunk(%lo: i64, %hi: i64, %context: !llvm.ptr) {
      %field = llvm.getelementptr %context[0, 0] : (!llvm.ptr) -> !llvm.ptr, !llvm.struct<(ptr)>
      %x = llvm.load %field : !llvm.ptr -> !llvm.ptr
      llvm.call @main.parallel0(%lo, %hi, %x) : (i64, i64, !llvm.ptr) -> ()
      llvm.return
    }

The outlined function is not inlined, to preserve the `llvm.noalias` of its arguments.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mlirml.dialects.mlirml import LONG_CHUNKS, PARALLEL_FOR
from mlirml.ir import emit
from mlirml.ir.bindings import block_ops, callee_of, mlir, named_operations
from mlirml.passes import Pass, register

RUNTIME = "mlirml_parallel_for"
LONG = "mlirml_parallel_for_long"


@register(when=("#mlirml.parallel_for",))
class LowerParallelPass(Pass):
    """Lower calls over a range to calls of the native pool."""

    def run(self, module: mlir.Operation) -> None:
        calls = [op for op in named_operations(module, ("llvm.call",)) if PARALLEL_FOR in op.attributes]
        if not calls:
            return
        block = module.regions[0].blocks[0]
        with calls[0].location, mlir.InsertionPoint.at_block_begin(block):
            for name in sorted({runtime_of(call) for call in calls}, reverse=True):
                emit.create("llvm.func", (), (), function_attributes(name, "void (ptr, i64, i64, i64, ptr)"), regions=1)
        functions = {symbol_of(op): op for op in block_ops(block) if op.name == "llvm.func"}
        for call in calls:
            with call.location:
                lower_call(functions[callee_of(call)], call)


def symbol_of(function: mlir.Operation) -> str:
    return str(mlir.StringAttr(function.attributes["sym_name"]).value)


def runtime_of(call: mlir.Operation) -> str:
    """The function of the native pool that partitions the range of a call."""
    return LONG if LONG_CHUNKS in call.attributes else RUNTIME


def function_attributes(name: str, signature: str, linkage: str = "external") -> dict[str, mlir.Attribute]:
    """The attributes of an `llvm.func`."""
    return {
        "sym_name": mlir.StringAttr.get(name),
        "function_type": mlir.TypeAttr.get(mlir.Type.parse(f"!llvm.func<{signature}>")),
        "linkage": mlir.Attribute.parse(f"#llvm.linkage<{linkage}>"),
        "CConv": mlir.Attribute.parse("#llvm.cconv<ccc>"),
    }


def lower_call(function: mlir.Operation, call: mlir.Operation) -> None:
    """Replace one call of a function."""
    callee = symbol_of(function)
    function.attributes["no_inline"] = mlir.UnitAttr.get()
    lower, upper, *captures = call.operands
    record = mlir.Type.parse(f"!llvm.struct<({', '.join(str(c.type).removeprefix('!llvm.') for c in captures)})>")
    thunk = f"{callee}.thunk"
    build_thunk(thunk, function, [c.type for c in captures], record)
    pointer, i64 = mlir.Type.parse("!llvm.ptr"), mlir.IntegerType.get_signless(64)
    with mlir.InsertionPoint.at_block_begin(entry_block(call)):
        one = emit.value("llvm.mlir.constant", (), i64, value=emit.i64(1))
        context = emit.value("llvm.alloca", [one], pointer, elem_type=mlir.TypeAttr.get(record))
    with mlir.InsertionPoint(call):
        for value, field in zip(captures, fields(context, record, len(captures)), strict=True):
            emit.create("llvm.store", [value, field])
        address = emit.value("llvm.mlir.addressof", (), pointer, global_name=mlir.FlatSymbolRefAttr.get(thunk))
        grain = emit.value("llvm.mlir.constant", (), i64, value=call.attributes[PARALLEL_FOR])
        build_call(runtime_of(call), [address, lower, upper, grain, context])
    call.erase()


def entry_block(op: mlir.Operation) -> mlir.Block:
    """The entry block of the function that contains an operation."""
    while op.name != "llvm.func":
        op = op.parent.operation
    return op.regions[0].blocks[0]


def fields(context: mlir.Value, record: mlir.Type, count: int) -> Iterator[mlir.Value]:
    """Pointers to the fields of a struct."""
    for number in range(count):
        indices = mlir.DenseI32ArrayAttr.get([0, number])
        yield emit.value(
            "llvm.getelementptr",
            [context],
            context.type,
            rawConstantIndices=indices,
            elem_type=mlir.TypeAttr.get(record),
        )


def build_call(callee: str, operands: Sequence[mlir.Value]) -> None:
    attributes = {
        "callee": mlir.FlatSymbolRefAttr.get(callee),
        "operandSegmentSizes": emit.segments(len(operands), 0),
        "op_bundle_sizes": mlir.DenseI32ArrayAttr.get([]),
    }
    emit.create("llvm.call", operands, (), attributes)


def build_thunk(name: str, function: mlir.Operation, types: Sequence[mlir.Type], record: mlir.Type) -> None:
    """Build the function that the pool calls; it loads the captures."""
    with function.location, mlir.InsertionPoint(function):
        attributes = function_attributes(name, "void (i64, i64, ptr)", "internal")
        thunk = emit.create("llvm.func", (), (), attributes, regions=1)
    i64 = mlir.IntegerType.get_signless(64)
    body = emit.block(thunk, [i64, i64, mlir.Type.parse("!llvm.ptr")])
    with mlir.InsertionPoint(body):
        lower, upper, context = body.arguments
        pointers = fields(context, record, len(types))
        captures = [emit.value("llvm.load", [pointer], type_) for pointer, type_ in zip(pointers, types, strict=True)]
        build_call(symbol_of(function), [lower, upper, *captures])
        emit.create("llvm.return")
