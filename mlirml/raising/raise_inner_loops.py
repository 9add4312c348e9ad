"""Raise the inner loops of statements whose outer loops carry dependences, to operations on slices in these loops.

Before:
    for i in 1..n: for j in 0..m: A[i, j] = A[i - 1, j] + B[i, j]
After:
    %r = scf.for %i = %c1 to %n step %c1 iter_args(%A0 = %A) {
      %x = tensor.extract_slice %A0[%i - 1, 0] [1, m] [1, 1]
      %y = tensor.extract_slice %B[%i, 0] [1, m] [1, 1]
      %z = linalg.generic {iterator_types = ["parallel"]} ins(%x, %y) outs(...) {...}
      %A1 = tensor.insert_slice %z into %A0[%i, 0] [1, m] [1, 1]
      scf.yield %A1
    }

The third part of `mlirml-raise`, as a pass; see `raise_nests.py`.
"""

from __future__ import annotations

from mlirml.core.dataclass import dataclass
from mlirml.ir.bindings import mlir
from mlirml.passes import Pass, register
from mlirml.raising.raise_nests import raise_nests


@register
@dataclass(frozen=True)
class RaiseInnerLoopsPass(Pass):
    """Raise loops within loops that are not raised, to operations on slices of one length."""

    name = "mlirml-raise-inner-loops"

    def run(self, module: mlir.Operation) -> None:
        raise_nests(module, "inner")
