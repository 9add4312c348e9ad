"""Relax floats: in loops over elements, products and sums may be contracted, and running sums reassociated.

Before:
    %s = scf.for %i = %c0 to %n step %c1 iter_args(%total = %zero) -> (f32) {
      %x = memref.load %a[%i] : memref<8xf32>
      %square = arith.mulf %x, %x : f32
      %sum = arith.addf %total, %square : f32
      scf.yield %sum : f32
    }
After:
    %s = scf.for %i = %c0 to %n step %c1 iter_args(%total = %zero) -> (f32) {
      %x = memref.load %a[%i] : memref<8xf32>
      %square = arith.mulf %x, %x fastmath<contract> : f32
      %sum = arith.addf %total, %square fastmath<reassoc,contract> : f32
      scf.yield %sum : f32
    }

LLVM then uses fused multiply-adds, and vectorises the sum, as for the sums of array functions. A running sum or product
is loop-carried, or is in an element with loop-invariant index.
"""

from __future__ import annotations

from collections.abc import Iterator

from mlirml.analysis.traits import BRANCHES, SEQUENTIAL_LOOPS
from mlirml.ir.bindings import block_ops, defining_op, mlir, named_operations
from mlirml.passes import Pass, register

_CONTRACTED = ("arith.addf", "arith.subf", "arith.mulf", "arith.negf")
_SUMS = ("arith.addf", "arith.mulf", "arith.subf")
_WIDTHS = ("f32", "f64")


@register(when=("scf.for", "scf.while"), optional=True)
class RelaxFloatsPass(Pass):
    """Set fast-math flags on float arithmetic in loop bodies; operations on whole arrays have their own rules."""

    def run(self, module: mlir.Operation) -> None:
        loops = named_operations(module, SEQUENTIAL_LOOPS)
        if not loops:
            return
        contract = mlir.Attribute.parse("#arith.fastmath<contract>")
        both = mlir.Attribute.parse("#arith.fastmath<reassoc,contract>")
        for loop in loops:
            blocks = [block for region in loop.regions for block in region.blocks]
            for op in [op for block in blocks for op in arithmetic(block)]:
                op.attributes["fastmath"] = contract
        for loop in loops:
            if loop.name == "scf.for":
                for op in accumulations(loop):
                    op.attributes["fastmath"] = both


def arithmetic(block: mlir.Block) -> Iterator[mlir.Operation]:
    """The float operations of a loop body and of branches in it, without those of inner loops."""
    for op in block_ops(block):
        if op.name in _CONTRACTED and str(op.results[0].type) in _WIDTHS:
            yield op
        elif op.name in BRANCHES:
            for region in op.regions:
                for inner in region.blocks:
                    yield from arithmetic(inner)


def accumulations(loop: mlir.Operation) -> Iterator[mlir.Operation]:
    """The additions and multiplications of running sums and products of a loop."""
    block = loop.regions[0].blocks[0]
    *ops, final = block_ops(block)
    for argument, value in zip(list(block.arguments)[1:], final.operands, strict=True):
        op = defining_op(value)
        if op is not None and op in ops and is_running(op, argument):
            yield op
    for op in ops:
        if op.name == "memref.store" and is_fixed(op.operands, block):
            total = defining_op(op.operands[0])
            if total is not None and total in ops:
                for value in total.operands:
                    load = defining_op(value)
                    if load is not None and is_load_of(load, op) and is_running(total, value):
                        yield total


def is_running(op: mlir.Operation, total: mlir.Value) -> bool:
    """True if an operation accumulates into `total`, and both values have no other use."""
    if op.name not in _SUMS or str(total.type) not in _WIDTHS or (op.name == "arith.subf" and op.operands[0] != total):
        return False
    return [use.owner.operation for use in total.uses] == [op] and sum(1 for _ in op.results[0].uses) == 1


def is_fixed(operands: list[mlir.Value], block: mlir.Block) -> bool:
    """True if a store has a loop-invariant buffer and indices."""
    return all(owner_block(value) != block for value in list(operands)[1:])


def owner_block(value: mlir.Value) -> mlir.Block:
    op = defining_op(value)
    return value.owner if op is None else op.block


def is_load_of(load: mlir.Operation, store: mlir.Operation) -> bool:
    """True if `load` reads the element that `store`, later in its block, writes."""
    if load.name != "memref.load" or load.block != store.block:
        return False
    return list(load.operands) == list(store.operands)[1:]
