"""Raise the nests of a module to linalg operations: the common part of `mlirml-raise` and the passes for its parts.

`model.py` reads a nest, `dependences.py` computes its dependences, `distribute.py` plans which loops are not raised,
`generic.py` forms one operation from a statement (`skew.py`: from a scatter), `structured.py` and `rebuild.py` build. A
nest of which nothing can be raised is unchanged, and a remark has the reason.
"""

from __future__ import annotations

from mlirml.ir.bindings import mlir
from mlirml.raising.align_slices import aligned
from mlirml.raising.nests.distribute import Scope, Sequence_, plan, raised_in
from mlirml.raising.nests.find_loops import mark_raised
from mlirml.raising.nests.generic import Form, Raised, Spans, form_of
from mlirml.raising.nests.model import Nest
from mlirml.raising.nests.rebuild import rebuild
from mlirml.raising.nests.remarks import remark
from mlirml.raising.nests.visit import each_nest


def raise_nests(module: mlir.Operation, *forms: Form) -> None:
    """Raise the statements that take one of these forms."""

    def raise_nest(nest: Nest, spans: Spans) -> None:
        nest = aligned(nest, spans)
        scope = plan(nest, spans, forms)
        explain(scope)
        if any(form_of(raised) in forms for raised in raised_in(scope)):
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
