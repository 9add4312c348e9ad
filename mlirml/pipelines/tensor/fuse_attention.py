"""Fuse attention: two products and the row-wise operations between them are tiled together by blocks of rows.

Before:
    %s = linalg.batch_matmul ins(%q, %k : tensor<8x512x64xf32>, tensor<8x64x512xf32>) outs(...)
    %p = linalg.generic {...} ins(%s : tensor<8x512x512xf32>) outs(...)        // the softmax of each row, in any form
    %o = linalg.batch_matmul ins(%p, %v : tensor<8x512x512xf32>, tensor<8x512x64xf32>) outs(...)
After:
    %o = scf.for %t = %c0 to %c32 step %c1 iter_args(%out = %e) -> (tensor<8x512x64xf32>) {
      %b = arith.divui %t, %c4
      %i = (%t mod 4) * 128
      %qs = tensor.extract_slice %q[%b, %i, 0] [1, 128, 64] [1, 1, 1]
      %ks = tensor.extract_slice %k[%b, 0, 0] [1, 64, 512] [1, 1, 1]
      %s = linalg.batch_matmul ins(%qs, %ks : tensor<1x128x64xf32>, tensor<1x64x512xf32>) outs(...)
      %p = linalg.generic {...} ins(%s : tensor<1x128x512xf32>) outs(...)
      %vs = tensor.extract_slice %v[%b, 0, 0] [1, 512, 64] [1, 1, 1]
      %r = linalg.batch_matmul ins(%p, %vs : tensor<1x128x512xf32>, tensor<1x512x64xf32>) outs(...)
      %new = tensor.insert_slice %r into %out[%b, %i, 0] [1, 128, 64] [1, 1, 1]
      scf.yield %new
    }

The scores of a block stay in cache from one product to the next. No form of softmax is assumed: by their indexing maps,
the operations in between must only keep the rows of the first product separate. Intermediate results that are used
after the last product are stored by blocks, too. The last block ends with the last row, so some rows may be computed
twice. Small scores, which stay in cache anyway, are left alone.
"""

from __future__ import annotations

from mlirml.codegen.cpu.contract.problem import CONTRACTIONS
from mlirml.core.no_match import attempt
from mlirml.ir.bindings import block_ops, mlir, named_operations
from mlirml.ir.erase import is_unused
from mlirml.passes import Pass, register
from mlirml.passes.presence import ANY_CONTRACTION, ANY_WINDOW, Several
from mlirml.targets.machine import Processor


@register(when=Several(2, (*ANY_CONTRACTION, *ANY_WINDOW)), optional=True)
class FuseAttentionPass(Pass):
    """Tile chains between products by blocks of rows, if the first needs more than half of the L2 cache."""

    processor: Processor = Processor()

    def run(self, module: mlir.Operation) -> None:
        products = named_operations(module, CONTRACTIONS)
        if len(products) < 2:
            return
        from mlirml.pipelines.tensor.tiling.attention import build_blocks, match_attention

        while products:
            first = products.pop(0)
            plan = attempt(match_attention, first, self.processor.l2_bytes)
            if plan is None:
                continue
            products = [op for op in products if op != plan.last]
            with plan.last.location, mlir.InsertionPoint(plan.last):
                results = build_blocks(plan)
            for old, new in zip(plan.results, results, strict=True):
                old.replace_all_uses_with(new)
            erase_unused(plan.last.block)


def erase_unused(block: mlir.Block) -> None:
    """Erase unused operations."""
    for op in reversed(block_ops(block)):
        pure = op.name.startswith(("linalg.", "tensor."))
        if pure and is_unused(op):
            op.erase()
