"""Expand: requests for derivatives and batches become ordinary code, innermost first.

Before:
    %0 = mlirml.independent %x {group = 0} : tensor<f64>
    %y = linalg.generic ... ins(%0) { math.sin }
    mlirml.cotangent %y, %one {group = 0}
    %g = mlirml.vjp %0 {group = 0} : tensor<f64>
After:
    %g = linalg.generic ... ins(%x, %one) { math.cos, arith.mulf }
"""

from __future__ import annotations

from mlirml.autodiff.requests import OPENS, close, expand_jvp, expand_vjp, expand_vmap, requests
from mlirml.dataclass import dataclass
from mlirml.ir import block_ops, has_op, mlir, operations
from mlirml.passes import Pass, register

KINDS = ("mlirml.vjp", "mlirml.jvp", "mlirml.vmap")
CHECKPOINT_BYTES = 1 << 28


@register
@dataclass(frozen=True)
class ExpandPass(Pass):
    """Expand all requests.

    A loop whose gradient would keep more than `checkpoint_bytes` is cut into segments.
    """

    name = "mlirml-expand"
    checkpoint_bytes: int = CHECKPOINT_BYTES

    def run(self, module: mlir.Operation) -> None:
        expand(module, KINDS, self.checkpoint_bytes)


def expand(module: mlir.Operation, kinds: tuple[str, ...], checkpoint_bytes: int = CHECKPOINT_BYTES) -> None:
    """Expand the requests of these kinds in every function, as long as the innermost one is of them."""
    for function in block_ops(module.regions[0].blocks[0]):
        if function.name != "func.func" or not _has_requests(function):
            continue
        while waiting := requests(function):
            request = waiting[0]
            if request.kind not in kinds:
                break
            if request.kind == "mlirml.vjp":
                expand_vjp(function, request, checkpoint_bytes)
            elif request.kind == "mlirml.jvp":
                expand_jvp(function, request)
            else:
                expand_vmap(function, request)
            if not any((r.kind, r.group) == (request.kind, request.group) for r in waiting[1:]):
                close(function, request)
        if not requests(function):
            for op in [op for op in operations(function) if op.name == "mlirml.custom_gradient"]:
                op.erase()
            for op in [op for op in operations(function) if op.name in _MARKS]:
                op.results[0].replace_all_uses_with(op.operands[0])
                op.erase()


_MARKS = {
    *OPENS.values(), "mlirml.stop_gradient", "mlirml.custom_input", "mlirml.custom_output", "mlirml.custom_cotangent",
    "mlirml.again_input", "mlirml.again_output",
}  # fmt: skip


def _has_requests(function: mlir.Operation) -> bool:
    return has_op(function, (*OPENS, *_MARKS))
