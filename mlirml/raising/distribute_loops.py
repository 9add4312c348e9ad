"""Distribute loops over statements without raising them: the first half of `mlirml-raise`, as a pass.

Before:
    scf.for %i = %c1 to %n step %c1 iter_args(%A0 = %A, %C0 = %C) {
      A[i] = A[i - 1] + B[i]
      C[i] = 2 * A[i]
    }
After:
    scf.for %i = %c1 to %n step %c1 iter_args(%A0 = %A) { A[i] = A[i - 1] + B[i] }
    scf.for %i = %c1 to %n step %c1 iter_args(%C0 = %C) { C[i] = 2 * A[i] } {mlirml.parallel}

Statements that depend on each other in a cycle share a loop. Scalars that one loop passes to another are stored in a
tensor. `mlirml-raise` splits off only what it raises; this pass shows what dependences alone would allow.
"""

from __future__ import annotations

from mlirml.ir.bindings import mlir
from mlirml.passes import Pass, register
from mlirml.raising.nests.distribute import distribution, loops_in
from mlirml.raising.nests.generic import Spans
from mlirml.raising.nests.model import Nest
from mlirml.raising.nests.rebuild import rebuild
from mlirml.raising.nests.visit import each_nest


@register
class DistributeLoopsPass(Pass):
    """Give each cycle of dependent statements its own loops."""

    def run(self, module: mlir.Operation) -> None:
        each_nest(module, distribute)


def distribute(nest: Nest, spans: Spans) -> None:
    """Split the loops of a nest where dependences allow it."""
    scope = distribution(nest, spans)
    loops = {loop for statement in nest.statements for loop in statement.loops if loop.op is not None}
    if loops_in(scope) > len(loops):
        rebuild(nest, scope)
