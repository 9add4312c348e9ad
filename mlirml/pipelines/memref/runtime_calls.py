"""Calls of functions of the native runtime, whose arguments are addresses and 64-bit integers."""

from __future__ import annotations

from collections.abc import Callable, Collection

from mlirml.ir import emit
from mlirml.ir.bindings import mlir, named_operations


def lower_to_calls(
    module: mlir.Operation, names: Collection[str], numbers_of: Callable[[mlir.Operation], list[int]]
) -> None:
    """Operations of these names become calls: the addresses of their operands, then the integers of `numbers_of`."""
    declared: set[str] = set()
    for op in named_operations(module, names):
        callee, numbers = op.name.replace(".", "_"), numbers_of(op)
        with op.location:
            if callee not in declared:
                declared.add(callee)
                declare(module, callee, len(op.operands) + len(numbers))
            with mlir.InsertionPoint(op):
                constants = [emit.constant(emit.i64(number)) for number in numbers]
                operands = [*map(address, op.operands), *constants]
                emit.create("func.call", operands, (), {"callee": mlir.FlatSymbolRefAttr.get(callee)})
        op.erase()


def declare(module: mlir.Operation, name: str, count: int) -> None:
    """Declare a private function of `count` integers."""
    kind = mlir.FunctionType.get([mlir.IntegerType.get_signless(64)] * count, [])
    attributes = {
        "sym_name": mlir.StringAttr.get(name),
        "function_type": mlir.TypeAttr.get(kind),
        "sym_visibility": mlir.StringAttr.get("private"),
    }
    with mlir.InsertionPoint.at_block_begin(module.regions[0].blocks[0]):
        emit.create("func.func", (), (), attributes, regions=1)


def address(memref: mlir.Value) -> mlir.Value:
    """The address of the first element."""
    pointer = emit.value("memref.extract_aligned_pointer_as_index", [memref], mlir.IndexType.get())
    return emit.value("arith.index_cast", [pointer], mlir.IntegerType.get_signless(64))
