"""Fuse shifts: elementwise operations connected by inserted slices become one loop nest, with separate borders.

Before:
    %f = linalg.generic ... ins(%x) -> tensor<99xf32>
    %zeros = linalg.fill ...
    %a = tensor.insert_slice %f into %zeros[0] [99] [1] : tensor<99xf32> into tensor<100xf32>
    %b = tensor.insert_slice %f into %zeros[1] [99] [1] : tensor<99xf32> into tensor<100xf32>
    %r = linalg.generic ... ins(%a, %b) { arith.subf } -> tensor<100xf32>
After:
    %first = linalg.generic ... ins(%x0) -> tensor<1xf32>
    %here = tensor.extract_slice %x[1] [98] [1]
    %left = tensor.extract_slice %x[0] [98] [1]
    %inner = linalg.generic ... ins(%here, %left) -> tensor<98xf32>
    %last = linalg.generic ... ins(%x98) -> tensor<1xf32>
    %r = tensor.insert_slice ...                                                 // all three

Concatenations, rolls and the gradients of slices are such programs: each would be a pass over memory. A value that is
read at several offsets is recomputed for each of them, unless storing it takes less time.
"""

from __future__ import annotations

from mlirml.ir.bindings import block_ops, mlir
from mlirml.passes import NoMatch, Pass, register
from mlirml.passes.presence import LOOP_OR_REQUEST
from mlirml.pipelines.tensor.fuse import tensor_blocks
from mlirml.pipelines.tensor.stencils.build import build_groups
from mlirml.pipelines.tensor.stencils.chains import cut_chains
from mlirml.pipelines.tensor.stencils.graph import StencilGraph
from mlirml.pipelines.tensor.stencils.plan import Plan

_PUTS = ("tensor.insert_slice", "tensor.pad")


@register(when=(*LOOP_OR_REQUEST, "tensor.insert_slice", "tensor.pad"), optional=True)
class FuseShiftsPass(Pass):
    """Fuse elementwise operations with slices between them, for tensors of at least `least` elements."""

    least: int = 512

    def run(self, module: mlir.Operation) -> None:
        for block in tensor_blocks(module):
            if not any(op.name in _PUTS for op in block_ops(block)):
                continue
            plan = Plan(StencilGraph(block), self.least)
            if not plan.wanted:
                continue
            try:
                cut_chains(plan)
                plan.choose()
            except NoMatch:
                continue
            build_groups(plan)
