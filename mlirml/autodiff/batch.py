"""Batch: expand batching requests into ordinary code, innermost first, up to the first derivative request.

Before:
    %0 = mlirml.unbatch %xs {group = 0} : tensor<8x4xf32> -> tensor<4xf32>
    %y = linalg.generic {maps = [(i) -> (i), (i) -> (i)]} ins(%0) { math.sin }
    %b = mlirml.vmap %y {group = 0, size = 8} : tensor<4xf32> -> tensor<8x4xf32>
After:
    %b = linalg.generic {maps = [(b, i) -> (b, i), (b, i) -> (b, i)]} ins(%xs) { math.sin }
"""

from __future__ import annotations

from mlirml.autodiff.expand import expand
from mlirml.ir.bindings import mlir
from mlirml.passes import Pass, register


@register
class BatchPass(Pass):
    """Expand batching requests."""

    def run(self, module: mlir.Operation) -> None:
        expand(module, ("mlirml.vmap",))
