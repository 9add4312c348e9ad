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

`forms` selects what is raised: "box", statements whose domain is a box, in all their loops; "triangle", those with
other domains, by a mask over the bounding box or slices of changing length; "inner", the inner loops of statements
whose outer loops carry dependences, on slices. All of it is planned at once, so that a loop is split only where
something is raised. `mlirml-report-dependences` reports the dependences, `mlirml-distribute-loops` gives each cycle of
them its own loops.

`nests/model.py` reads a nest, `dependences.py` computes its dependences, `distribute.py` plans which loops are not
raised, `generic.py` forms one operation from a statement (`skew.py`: from a scatter), `structured.py` and `rebuild.py`
build. A nest of which nothing can be raised is unchanged, and a remark has the reason.
"""

from __future__ import annotations

from mlirml.ir.bindings import mlir
from mlirml.passes import Pass, register
from mlirml.passes.presence import ANY_LOOP
from mlirml.raising.align_slices import aligned
from mlirml.raising.nests.distribute import Scope, Sequence_, plan, raised_in
from mlirml.raising.nests.find_loops import mark_raised
from mlirml.raising.nests.generic import FORMS, Raised, Spans, form_of
from mlirml.raising.nests.model import Nest
from mlirml.raising.nests.rebuild import rebuild
from mlirml.raising.nests.remarks import remark
from mlirml.raising.nests.visit import each_nest


@register(when=ANY_LOOP, optional=True)
class RaisePass(Pass):
    """Raise loop nests on tensors to linalg operations of some `forms`.

    Operations that are as fast as loops are marked `mlirml.order`, and lowered to loops in `mlirml-lower-lengths`:
    those on slices whose length differs from iteration to iteration of the loops around them, and those with fewer
    loops than enclose them.
    """

    forms: tuple[str, ...] = FORMS

    def run(self, module: mlir.Operation) -> None:
        def raise_nest(nest: Nest, spans: Spans) -> None:
            nest = aligned(nest, spans)
            scope = plan(nest, spans, self.forms)
            explain(scope)
            if any(form_of(raised) in self.forms for raised in raised_in(scope)):
                mark_raised(nest.op)
                rebuild(nest, scope)

        each_nest(module, raise_nest, remark)


def explain(scope: Scope) -> None:
    """Add a remark about each statement, at the user's line."""
    for node in scope.nodes:
        if isinstance(node, Raised):
            loops = f"{len(node.dims)} loop{'s' if len(node.dims) > 1 else ''}"
            kinds = ", ".join(node.iterators) or "no loops"
            remark(node.statement.op, f"{loops} to one linalg.generic ({kinds})", "raised")
        elif isinstance(node, Sequence_):
            for statement, why in node.reasons:
                if node.loop.op is not None:
                    remark(statement.op, f"loop {scope.level + 1} of {len(statement.loops)} stays: {why}")
            explain(node.scope)
