"""Fold clamps: an index that a check of @main has proved to be in bounds is not clamped any more.

Before:
    scf.for %i = ... {
      %key = memref.load %keys[%i] : memref<9xi64>
      %moved = arith.addi %key, %c4 : i64
      %inside = arith.cmpi ult, %moved, %c8 : i64
      cf.assert %inside, "index out of bounds" {mlirml.check = 3 : i64, mlirml.check_base = 4 : i64}
      %index = arith.index_cast %key : i64 to index
      %negative = arith.cmpi slt, %index, %c0 : index
      %from_end = arith.addi %index, %c4 : index
      %place = arith.select %negative, %from_end, %index : index
      %clamped = arith.minui %place, %c3 : index
      %a = memref.load %x[%clamped] : memref<4xf32>
      ...
After:
    scf.for %i = ... {
      ...
      cf.assert %inside, "index out of bounds" {mlirml.check = 3 : i64, mlirml.check_base = 4 : i64}
      ...
      %place = arith.select %negative, %from_end, %index : index
      %a = memref.load %x[%place] : memref<4xf32>
      ...

Capture clamps each index that it asserts, since most functions continue after a failed check (`mlirml-collect-checks`).
@main returns at once instead, so a check bounds its integer in all later operations of its block, nested ones included.

The pass is the last before the conversion to a CFG: a pass that hoists a load above the check needs the clamp.
"""

from __future__ import annotations

from mlirml.analysis.ranges import Ranges, clamped_operand
from mlirml.ir.bindings import block_ops, mlir, named_operations, replace_op
from mlirml.passes import Pass, register
from mlirml.passes.presence import every
from mlirml.pipelines.checks.lower_asserts import returns_at_once


@register(when=every(("cf.assert",), ("arith.minui",)), optional=True)
class FoldClampsPass(Pass):
    """Drop the `arith.minui` of indices that an earlier check bounds."""

    def run(self, module: mlir.Operation) -> None:
        for function in named_operations(module, ("func.func",)):
            if returns_at_once(function):
                fold_in(function, Ranges())


def fold_in(op: mlir.Operation, before: Ranges) -> None:
    """Fold the clamps in the regions of an operation, given the integer ranges before it."""
    for region in op.regions:
        for block in region.blocks:
            ranges = before
            for inner in block_ops(block):
                if inner.name == "cf.assert":
                    ranges = ranges.given(inner.operands[0])
                elif inner.name == "arith.minui":
                    operand = clamped_operand(inner, ranges.of)
                    if operand is not None:
                        replace_op(inner, operand)
                else:
                    fold_in(inner, ranges)
