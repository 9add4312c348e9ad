"""Calls of functions of the native runtime, whose arguments are addresses and 64-bit integers."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any, TypeAlias

from mlirml.ir import emit
from mlirml.ir.bindings import mlir, named_operations

Number: TypeAlias = Any
"""A number, or a value of type `index`."""


def lower_to_calls(
    module: mlir.Operation,
    names: Collection[str],
    numbers_of: Callable[[mlir.Operation, list[list[Number]]], list[Number]],
) -> None:
    """Operations of these names become calls: the addresses of their operands, then the integers of `numbers_of`.

    It takes an operation and the shapes of its operands; dynamic sizes are values of type `index`.
    """
    declared: set[str] = set()
    for op in named_operations(module, names):
        callee = op.name.replace(".", "_")
        with op.location:
            with mlir.InsertionPoint(op):
                numbers = [as_i64(number) for number in numbers_of(op, [sizes_of(x) for x in op.operands])]
                operands = [*map(address, op.operands), *numbers]
                emit.create("func.call", operands, (), {"callee": mlir.FlatSymbolRefAttr.get(callee)})
            if callee not in declared:
                declared.add(callee)
                declare(module, callee, len(operands))
        op.erase()


def sizes_of(memref: mlir.Value) -> list[Number]:
    """The shape of a memref, with dynamic sizes as values of type `index`."""
    kind = memref.type

    def size(d: int) -> Number:
        if not kind.is_dynamic_dim(d):
            return int(kind.shape[d])
        return emit.value("memref.dim", [memref, emit.index(d)], mlir.IndexType.get())

    return [size(d) for d in range(kind.rank)]


def as_i64(number: Number) -> mlir.Value:
    """A number, or a value of type `index`, as a 64-bit integer."""
    if isinstance(number, int):
        return emit.constant(emit.i64(number))
    return emit.value("arith.index_cast", [number], mlir.IntegerType.get_signless(64))


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
