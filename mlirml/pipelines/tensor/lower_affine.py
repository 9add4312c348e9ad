"""Lower affine: index arithmetic by affine maps is lowered to `arith`, which all later passes read and lower.

Before:
    %0 = affine.apply affine_map<(d0, d1) -> (d0 + d1)>(%i, %j)
After:
    %0 = arith.addi %i, %j : index

The pass runs after raising and differentiation, which both read and write affine maps. Without it, an `affine.apply`
that no later pass happens to fold would be left when kernels are built.
"""

from __future__ import annotations

from mlirml.ir.bindings import mlir, operations
from mlirml.passes import Pass, register, run_upstream


@register(when=("affine.",))
class LowerAffinePass(Pass):
    """Lower the affine dialect as `lower-affine` does."""

    def run(self, module: mlir.Operation) -> None:
        if any(op.name.startswith("affine.") for op in operations(module)):  # it folds others, too
            run_upstream(module, "lower-affine")
