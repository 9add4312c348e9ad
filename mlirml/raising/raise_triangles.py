"""Raise statements whose domain is not a box: a mask over its bounding box, or slices of changing length.

Before:
    for i in 0..4: for j in 0..i + 1: C[i, j] = C[i, j] + A[i] * A[j]
After:
    %r = linalg.generic {maps = [(i, j) -> (i), (i, j) -> (j), (i, j) -> (i, j)]} ins(%A, %A) outs(%C) {
    ^bb0(%a: f32, %b: f32, %old: f32):
      %i = linalg.index 0
      %j = linalg.index 1
      %new = ...
      %inside = arith.cmpi sge, %i, %j : index
      %kept = arith.select %inside, %new, %old : f32
      linalg.yield %kept : f32
    }

Statements in a loop that is not raised are restricted instead: an operation on `C[i, 0:i + 1]`, whose length differs
from iteration to iteration. `mlirml-recognise` recovers the savings of triangles, `mlirml-lower-lengths` lowers
operations to loops that are faster so. The second part of `mlirml-raise`, as a pass; see `raise_nests.py`.
"""

from __future__ import annotations

from mlirml.core.dataclass import dataclass
from mlirml.ir.bindings import mlir
from mlirml.passes import Pass, register
from mlirml.raising.raise_nests import raise_nests


@register
@dataclass(frozen=True)
class RaiseTrianglesPass(Pass):
    """Raise statements whose loops are not a box, by masks or slices of changing length."""

    name = "mlirml-raise-triangles"

    def run(self, module: mlir.Operation) -> None:
        raise_nests(module, "triangle")
