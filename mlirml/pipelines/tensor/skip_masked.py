"""Skip masked blocks: blocks of a matrix that a comparison of indices masks whole are not computed.

Before:
    %s = linalg.batch_matmul ins(%q, %k : tensor<8x1024x64xf32>, tensor<8x64x1024xf32>) outs(...)
    %m:2 = linalg.generic ... ins(%s) outs(...) {                  // masked scores, and the maxima of rows
      %keep = arith.cmpi sle, %column, %row
      %score = arith.select %keep, %x, %minus_infinity
      ...
    }
    ...                                                            // exponentials, their sums, the quotients
    %o = linalg.batch_matmul ins(%p, %v : tensor<8x1024x1024xf32>, tensor<8x1024x64xf32>) outs(...)
After:
    %finite = ...                                                  // from the largest elements of q, k and v
    %o = scf.for %t = %c0 to %c128 step %c1 iter_args(%out = %e) -> (tensor<8x1024x64xf32>) {
      %columns:4 = scf.for %r = ...                                // where rows of the block may have elements, and do
      %m:2 = scf.for %j = ... { the product and the generic on a tile of 64x128 that the mask touches }
      %n:2 = scf.for %j = ... { the same without a mask on a tile that it does not touch }
      ...
      %r = scf.for %j = %first to %last ... { the quotients and the product on a tile }
      %new = tensor.insert_slice %r into %out[...]
      scf.yield %new
    }

The mask is any combination of comparisons of a column with something that is the same in a row, as in causal, banded,
block-diagonal or padded attention; the numbers may be read from memory. The groups are attention, forward and backward,
and other chains that begin with a product; a product with a masked operand; and a product whose result is masked.

Nothing is left out unless it is proven that the result is the same: what is masked adds zero to a sum, or is no
maximum. Where that depends on the numbers (zero times infinity is NaN; a fill of -1e9 vanishes next to finite scores),
conditions on the largest elements of the operands are tested before the loop; a block with a row that is masked whole
is computed whole if something depends on its masked elements, as a softmax does.
"""

from __future__ import annotations

from mlirml.codegen.cpu.contract.problem import CONTRACTIONS
from mlirml.ir.bindings import block_ops, has_op, mlir, named_operations
from mlirml.passes import NoMatch, Pass, register
from mlirml.passes.presence import ANY_CONTRACTION, every
from mlirml.targets.machine import Processor


@register(when=every(ANY_CONTRACTION, ("arith.select",), ("linalg.index",)))
class SkipMaskedPass(Pass):
    """Tile products with masks of comparisons of indices by rows and columns, and leave out tiles that are masked."""

    processor: Processor = Processor()

    def run(self, module: mlir.Operation) -> None:
        if not has_op(module, ("arith.select",)) or not has_op(module, ("linalg.index",)):
            return
        from mlirml.passes.report import add_remark
        from mlirml.pipelines.tensor.fuse_attention import erase_unused
        from mlirml.pipelines.tensor.tiling.masked import described, match_masked
        from mlirml.pipelines.tensor.tiling.masked_blocks import build_masked

        plans, used = [], set[mlir.Operation]()
        for op in named_operations(module, CONTRACTIONS):
            if op in used:
                continue
            try:
                plan = match_masked(op, used, threads=self.processor.cores != 1)
            except NoMatch:
                continue
            used |= {member.op for member in plan.group.members}
            plans.append(plan)
        renamed: dict[mlir.Value, mlir.Value] = {}
        for block in dict.fromkeys(plan.group.last.block for plan in plans):
            largest: dict[mlir.Value, mlir.Value] = {}
            order = {op: number for number, op in enumerate(block_ops(block))}
            here = [plan for plan in plans if plan.group.last in order]
            for plan in sorted(here, key=lambda plan: order[plan.group.last]):
                last = plan.group.last
                with last.location, mlir.InsertionPoint(last):
                    results = build_masked(plan, largest, renamed)
                add_remark(last.location, f"masked: {described(plan)}", outcome="masked")
                for old, new in zip(plan.group.results, results, strict=True):
                    old.replace_all_uses_with(new)
                    renamed[old] = new
            erase_unused(block)
