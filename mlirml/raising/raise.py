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
from mlirml.ir import block_ops, has_op, mlir, operations
from mlirml.passes import NoMatch, Pass, register
from mlirml.raising.affine import Span, Variable
from mlirml.raising.distribute import Scope, Sequence_, plan, raised_in
from mlirml.raising.generic import Raised
from mlirml.raising.loops import loop_functions, mark_raised
from mlirml.raising.model import match_nest
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
        for function in loop_functions(module):
            for region in function.regions:
                for block in region.blocks:
                    raise_block(block, {})


_ELEMENTS = ("tensor.extract", "tensor.insert")


def raise_block(block: mlir.Block, spans: dict[Variable, Span]) -> None:
    """Raise the loops in a block; `spans` has the ranges of the variables of loops around it."""
    for op in block_ops(block):
        if op.name == "scf.for":
            raise_nest(op, spans)
        elif not op.name.startswith("linalg."):
            if op.name == "scf.while" and any(has_places(inner) for inner in operations(op)):
                remark(op, "how many rounds it has is known only when it ends")
            for region in op.regions:
                for inner in region.blocks:
                    raise_block(inner, spans)


def has_places(op: mlir.Operation) -> bool:
    """Whether an operation reads or stores an element at indices; others unwrap numbers."""
    return op.name in _ELEMENTS and len(op.operands) > (1 if op.name == "tensor.extract" else 2)


def raise_nest(op: mlir.Operation, spans: dict[Variable, Span]) -> None:
    """Raise a nest, or those inside of it."""
    try:
        nest = match_nest(op)
        scope = plan(nest, spans)
    except NoMatch as reason:
        if has_op(op, _ELEMENTS):  # others have no loop over elements, which could be raised
            remark(op, str(reason))
        raise_block(op.regions[0].blocks[0], spans | loop_span(op))
        return
    explain(scope)
    if raised_in(scope):
        mark_raised(op)
        rebuild(nest, scope)


def loop_span(op: mlir.Operation) -> dict[Variable, Span]:
    """The range of a loop's variable, where its bounds are constants."""
    lower, upper = (constant_of(bound) for bound in list(op.operands)[:2])
    if lower is None or upper is None:
        return {}
    return {op.regions[0].blocks[0].arguments[0]: (lower, upper - 1)}


def constant_of(value: mlir.Value) -> int | None:
    owner = value.owner
    if isinstance(owner, mlir.Block) or owner.name != "arith.constant":
        return None
    return int(mlir.IntegerAttr(owner.operation.attributes["value"]).value)


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
