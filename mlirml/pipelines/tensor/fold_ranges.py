"""Fold ranges: a clamp or a check is dropped whose outcome follows from the range of what it is about.

Before:
    %bins = linalg.generic ... ins(%x : tensor<8xf64>) outs(%empty : tensor<8xi64>) {
    ^bb0(%a: f64, %out: i64):
      %0 = arith.maxnumf %a, %zero : f64
      %1 = arith.minnumf %0, %seven : f64
      %bin = arith.fptosi %1 : f64 to i64          // from 0 to 7
      linalg.yield %bin : i64
    } -> tensor<8xi64>
    %greatest = linalg.generic ... iterators = ["reduction"] ins(%bins : tensor<8xi64>) ... {
      ...
      %moved = arith.addi %bin, %c8 : i64
      %most = arith.maxui %moved, %out : i64
    }
    %last = tensor.extract %greatest[] : tensor<i64>
    %inside = arith.cmpi ult, %last, %c16 : i64
    cf.assert %inside, "an index is out of bounds"
    %counts = scf.for %i = ... {
      %bin = tensor.extract %bins[%i] : tensor<8xi64>
      %index = arith.index_cast %bin : i64 to index
      %negative = arith.cmpi slt, %index, %c0 : index
      %from_end = arith.addi %index, %c8 : index
      %place = arith.select %negative, %from_end, %index : index
      %clamped = arith.minui %place, %c7 : index
      ...
After:
    %bins = linalg.generic ...
    %counts = scf.for %i = ... {
      %bin = tensor.extract %bins[%i] : tensor<8xi64>
      %index = arith.index_cast %bin : i64 to index
      ...

What is not used any more is left to `canonicalize`.
"""

from __future__ import annotations

from mlirml.analysis.ranges import CLAMPS, Ranges, clamped_operand
from mlirml.ir.bindings import mlir, named_operations
from mlirml.passes import Pass, register


@register(when=("arith.fptosi", "cf.assert"), optional=True)
class FoldRangesPass(Pass):
    """Drop clamps and checks of indices that are computed within bounds."""

    def run(self, module: mlir.Operation) -> None:
        ranges = Ranges()
        for op in named_operations(module, ("arith.cmpi", *CLAMPS, "cf.assert")):
            if op.name == "cf.assert":
                if ranges.decides(op.operands[0]):
                    op.erase()
            elif op.name == "arith.cmpi":
                fold_comparison(op, ranges)
            elif not isinstance(op.results[0].type, mlir.ShapedType):
                operand = clamped_operand(op, ranges.of)
                if operand is not None:
                    op.results[0].replace_all_uses_with(operand)


def fold_comparison(op: mlir.Operation, ranges: Ranges) -> None:
    """Replace the choices between two values by a comparison whose outcome is known."""
    outcome = ranges.decides(op.results[0])
    if outcome is None:
        return
    for use in list(op.results[0].uses):
        choice = use.owner.operation
        if choice.name == "arith.select" and choice.operands[0] == op.results[0]:
            choice.results[0].replace_all_uses_with(choice.operands[1 if outcome else 2])
