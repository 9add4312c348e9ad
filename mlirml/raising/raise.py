"""Raise: loops over elements become linalg operations on slices, as far as dependences allow.

Before:
    %r = scf.for %i = %c0 to %c8 step %c1 iter_args(%y = %y0) -> (tensor<8xf32>) {
      %a = tensor.extract %x[%i] : tensor<8xf32>
      %b = arith.mulf %a, %a : f32
      %y1 = tensor.insert %b into %y[%i] : tensor<8xf32>
      scf.yield %y1 : tensor<8xf32>
    }
After:
    %e = tensor.empty() : tensor<8xf32>
    %r = linalg.generic {maps = [(i) -> (i), (i) -> (i)], iterator_types = ["parallel"]} ins(%x) outs(%e) {
    ^bb0(%a: f32, %out: f32):
      %b = arith.mulf %a, %a : f32
      linalg.yield %b : f32
    } -> tensor<8xf32>

Its parts are passes as well. `mlirml-report-dependences` reports the dependences, `mlirml-distribute-loops` gives each
dependence cycle its own loops. `mlirml-raise-statements` raises nests whose domains are boxes, `mlirml-raise-triangles`
other domains, `mlirml-raise-inner-loops` the bodies of loops that are not raised. This pass plans all of it at once, so
that a loop is split only where something is raised.
"""

from __future__ import annotations

from mlirml.core.dataclass import dataclass
from mlirml.ir.bindings import mlir
from mlirml.passes import Pass, register
from mlirml.passes.presence import ANY_LOOP
from mlirml.raising.nests.generic import PASS_OF
from mlirml.raising.raise_nests import raise_nests


@register(when=ANY_LOOP)
@dataclass(frozen=True)
class RaisePass(Pass):
    """Raise loop nests on tensors to linalg operations.

    Operations that are as fast as loops are marked `mlirml.order`, and lowered to loops in `mlirml-lower-lengths`:
    those on slices whose length differs from iteration to iteration of the loops around them, and those with fewer
    loops than enclose them.
    """

    name = "mlirml-raise"

    def run(self, module: mlir.Operation) -> None:
        raise_nests(module, *PASS_OF)
