"""Raise statements: one statement in all its loops becomes one linalg operation, if their domain is a box.

Before:
    for i in 0..4: for j in 0..6: for k in 0..5: C[i, j] = C[i, j] + A[i, k] * B[k, j]
After:
    %r = linalg.generic {maps = [(i, j, k) -> (i, k), (i, j, k) -> (k, j), (i, j, k) -> (i, j)],
                         iterator_types = ["parallel", "parallel", "reduction"]} ins(%A, %B) outs(%C) {...}

A loop is parallel if it indexes the array that is stored into, else a reduction, whose operator has to be associative.
Other statements of a nest stay in separate loops, if dependences allow that. The first part of `mlirml-raise`, as a
pass; see `raise_nests.py`.
"""

from __future__ import annotations

from mlirml.core.dataclass import dataclass
from mlirml.ir.bindings import mlir
from mlirml.passes import Pass, register
from mlirml.raising.raise_nests import raise_nests


@register
@dataclass(frozen=True)
class RaiseStatementsPass(Pass):
    """Raise statements whose loops are a box, all of them."""

    name = "mlirml-raise-statements"

    def run(self, module: mlir.Operation) -> None:
        raise_nests(module, "box")
