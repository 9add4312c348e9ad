"""Expand: derivative and batching requests become ordinary code, innermost first.

Before:
    %0 = mlirml.independent %x {group = 0} : tensor<f64>
    %y = linalg.generic ... ins(%0) { math.sin }
    mlirml.cotangent %y, %one {group = 0}
    %g = mlirml.vjp %0 {group = 0} : tensor<f64>
After:
    %g = linalg.generic ... ins(%x, %one) { math.cos, arith.mulf }
"""

from __future__ import annotations

from mlirml.analysis.values import outer_variables
from mlirml.autodiff.plain_reductions import plain_reductions
from mlirml.autodiff.requests import (
    OPENS,
    close,
    drop_unused,
    expand_jvp,
    expand_vjp,
    expand_vmap,
    ops_of,
    requests,
)
from mlirml.autodiff.scalar_operands import scalars_to_operands
from mlirml.dialects.mlirml import FLUSH_DENORMALS
from mlirml.ir.bindings import block_ops, has_op, mlir, named_operations, replace_op
from mlirml.passes import Pass, register
from mlirml.passes.presence import ANY_REQUEST

KINDS = ("mlirml.vjp", "mlirml.jvp", "mlirml.vmap")
CHECKPOINT_BYTES = 1 << 28


@register(when=ANY_REQUEST)
class ExpandPass(Pass):
    """Expand all requests.

    A loop whose gradient would store more than `checkpoint_bytes` is split into segments.
    """

    checkpoint_bytes: int = CHECKPOINT_BYTES

    def run(self, module: mlir.Operation) -> None:
        expand(module, KINDS, self.checkpoint_bytes)


def expand(module: mlir.Operation, names: tuple[str, ...], checkpoint_bytes: int = CHECKPOINT_BYTES) -> None:
    """Expand the requests with these names in every function, as long as the innermost one is among them."""
    for function in block_ops(module.regions[0].blocks[0]):
        if function.name != "func.func" or not _has_requests(function):
            continue
        drop_unused(function)
        while waiting := requests(function):
            request = waiting[0]
            if request.kind not in names:
                break
            scalars_to_operands(ops_of(request))
            if request.kind != "mlirml.vmap":
                plain_reductions(ops_of(request))
                function.attributes[FLUSH_DENORMALS] = mlir.UnitAttr.get()
            if request.kind == "mlirml.vjp":
                expand_vjp(request, checkpoint_bytes)
            elif request.kind == "mlirml.jvp":
                expand_jvp(request)
            else:
                expand_vmap(request, any(r.kind == "mlirml.vjp" for r in waiting))
            if not any((r.kind, r.group) == (request.kind, request.group) for r in waiting[1:]):
                close(function, request)
        if not requests(function):
            _drop_marks(function)


_PLACEHOLDERS = ("mlirml.custom_cotangent", "mlirml.custom_tangent")
_MARKS = {
    *OPENS.values(), *_PLACEHOLDERS, "mlirml.stop_gradient", "mlirml.custom_input", "mlirml.custom_output",
    "mlirml.custom_primal", "mlirml.custom_result", "mlirml.again_input", "mlirml.again_output",
}  # fmt: skip


def _drop_marks(function: mlir.Operation) -> None:
    """Remove the markers of functions with custom derivatives, and the code of those derivatives."""
    marks = named_operations(function, _MARKS)
    if not marks:
        return
    for op in named_operations(function, ("mlirml.custom_gradient",)):
        op.erase()
    for op in marks:
        if op.name not in _PLACEHOLDERS:
            replace_op(op, op.operands[0])
    for op in named_operations(function, _PLACEHOLDERS):
        for user in reversed(_depending(op)):
            user.erase()
        replace_op(op, op.operands[0])


def _depending(op: mlir.Operation) -> list[mlir.Operation]:
    """The operations of a block that depend on the first one; none where other code in the program does too."""
    ops, found = block_ops(op.block), set(op.results)
    depending = []
    for other in ops[ops.index(op) + 1 : -1]:
        if any(x in found for x in outer_variables(other)):
            depending.append(other)
            found.update(other.results)
    return [] if any(x in found for x in outer_variables(ops[-1])) else depending


def _has_requests(function: mlir.Operation) -> bool:
    return has_op(function, (*OPENS, *_MARKS))
