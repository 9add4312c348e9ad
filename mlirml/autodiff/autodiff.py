"""Differentiate: expand derivative requests into ordinary code, innermost first, up to the first batching request.

Before:
    %0 = mlirml.dual %x, %t {group = 0} : tensor<f64>
    %y = linalg.generic ... ins(%0) { math.sin }
    %d = mlirml.jvp %y {group = 0} : tensor<f64>
After:
    %d = linalg.generic ... ins(%x, %t) { math.cos, arith.mulf }
"""

from __future__ import annotations

from mlirml.autodiff.expand import CHECKPOINT_BYTES, expand
from mlirml.ir.bindings import mlir
from mlirml.passes import Pass, register


@register
class AutodiffPass(Pass):
    """Expand requests for derivatives.

    A loop whose gradient would store more than `checkpoint_bytes` is split into segments.
    """

    checkpoint_bytes: int = CHECKPOINT_BYTES

    def run(self, module: mlir.Operation) -> None:
        expand(module, ("mlirml.vjp", "mlirml.jvp"), self.checkpoint_bytes)
