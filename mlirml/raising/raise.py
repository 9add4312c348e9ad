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

`model.py` reads a nest, `dependences.py` finds what must come before what, `distribute.py` plans which loops stay,
`generic.py` decides how a statement becomes one operation (`skew.py`: what it scatters), `structured.py` and
`rebuild.py` build. A nest of which nothing can be raised is left as it is, and a remark says why.
"""

from __future__ import annotations

from mlirml.dataclass import dataclass
from mlirml.ir import mlir
from mlirml.passes import Pass, register
from mlirml.raising.distribute import Scope, Sequence_, plan, raised_in
from mlirml.raising.generic import Raised, Spans
from mlirml.raising.loops import mark_raised
from mlirml.raising.model import Nest
from mlirml.raising.nests import each_nest
from mlirml.raising.rebuild import rebuild
from mlirml.raising.remarks import remark


@register
@dataclass(frozen=True)
class RaisePass(Pass):
    """Raise loop nests on tensors to linalg operations.

    What is as fast in loops is marked `mlirml.order`, and becomes loops again in `mlirml-lower-lengths`: slices whose
    length differs from round to round of the loops that stay around them, and what has fewer loops in it than around.
    """

    name = "mlirml-raise"

    def run(self, module: mlir.Operation) -> None:
        each_nest(module, raise_nest, remark)


def raise_nest(nest: Nest, spans: Spans) -> None:
    """Raise what can be raised of a nest."""
    scope = plan(nest, spans)
    explain(scope)
    if raised_in(scope):
        mark_raised(nest.op)
        rebuild(nest, scope)


def explain(scope: Scope) -> None:
    """Say what becomes of each statement, at the user's line."""
    for node in scope.nodes:
        if isinstance(node, Raised):
            loops = f"{len(node.dims)} loop{'s' if len(node.dims) > 1 else ''}"
            kinds = ", ".join(node.iterators) or "no rounds"
            remark(node.statement.op, f"{loops} to one linalg.generic ({kinds})", "raised")
        elif isinstance(node, Sequence_):
            for statement, why in node.reasons:
                if node.loop.op is not None:
                    remark(statement.op, f"loop {scope.level + 1} of {len(statement.loops)} stays: {why}")
            explain(node.scope)
