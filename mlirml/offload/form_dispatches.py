"""Form dispatches: what one kernel computes is put into a region of its own, and so is what stays on the host.

Before:
    %f = linalg.fill ins(%zero) outs(%e) -> tensor<4x3xf32>
    %p = linalg.matmul ins(%x, %w) outs(%f) -> tensor<4x3xf32>
After:
    %p = scf.execute_region -> tensor<4x3xf32> no_inline {
      %e = tensor.empty() : tensor<4x3xf32>
      %f = linalg.fill ins(%zero) outs(%e) -> tensor<4x3xf32>
      %q = linalg.matmul ins(%x, %w) outs(%f) -> tensor<4x3xf32>
      scf.yield %q : tensor<4x3xf32>
    } {mlirml.dispatch = "device"}

Fills, empty tensors and constants are computed again in each region that reads them.
"""

from __future__ import annotations

from collections.abc import Sequence

from mlirml.dataclass import dataclass
from mlirml.dialects import emit
from mlirml.dialects.mlirml import DISPATCH
from mlirml.ir import block_ops, clone_with, defining_op, main_function, mlir, operations
from mlirml.passes import Pass, register

_AGAIN = ("tensor.empty", "linalg.fill", "arith.constant")
"""What costs nothing to compute again."""


@register
@dataclass(frozen=True)
class FormDispatchesPass(Pass):
    """Group operations on tensors into regions, one a kernel."""

    name = "mlirml-form-dispatches"

    def run(self, module: mlir.Operation) -> None:
        main = main_function(module)
        with module.context:
            for block in tensor_blocks(main):
                for op in block_ops(block):
                    if is_work(op):
                        wrap([op])
            erase_unread(main)


def tensor_blocks(function: mlir.Operation) -> list[mlir.Block]:
    """The blocks that may hold operations on tensors: the function's and those of its scf regions."""
    found, todo = [], [block for region in function.regions for block in region.blocks]
    while todo:
        block = todo.pop(0)
        found.append(block)
        for op in block_ops(block):
            if not op.name.startswith("linalg."):
                todo += [inner for region in op.regions for inner in region.blocks]
    return found


def is_work(op: mlir.Operation) -> bool:
    """Whether an operation is a dispatch of its own; a fill is where others than structured operations read it."""
    if op.name == "linalg.fill":
        return any(not use.owner.operation.name.startswith("linalg.") for use in op.results[0].uses)
    return op.name.startswith("linalg.") and bool(op.results)


def wrap(ops: Sequence[mlir.Operation]) -> mlir.Operation:
    """Put operations, in their order, into a dispatch region in front of the last of them."""
    last = ops[-1]
    inside = set(ops)
    results = [r for op in ops for r in op.results if any(use.owner.operation not in inside for use in r.uses)]
    attributes = {"no_inline": mlir.UnitAttr.get(), DISPATCH: mlir.StringAttr.get("device")}
    with last.location, mlir.InsertionPoint(last):
        region = emit.create("scf.execute_region", (), [r.type for r in results], attributes, regions=1)
        block = emit.block(region, [])
    values: dict[mlir.Value, mlir.Value] = {}
    for op in ops:
        with mlir.InsertionPoint(block):
            for inner in list(operations(op)):
                for position, operand in enumerate(inner.operands):
                    inner.operands[position] = again(operand, values)
        block.append(op)
    for result, outer in zip(results, region.results):
        result.replace_all_uses_except(outer, [use.owner.operation for use in result.uses if is_in(use.owner, block)])
    with last.location, mlir.InsertionPoint(block):
        emit.create("scf.yield", results)
    return region


def is_in(op: mlir.Operation, block: mlir.Block) -> bool:
    return bool(op.operation.block == block)


def again(value: mlir.Value, values: dict[mlir.Value, mlir.Value]) -> mlir.Value:
    """A value built again at the insertion point, if it is an empty tensor, a fill or a constant; else the value."""
    owner = defining_op(value)
    if value in values:
        return values[value]
    if owner is None or owner.name not in _AGAIN or is_large(owner):
        return value
    for operand in owner.operands:
        again(operand, values)
    copy = clone_with(owner, values)
    return copy.results[0]


def is_large(op: mlir.Operation) -> bool:
    """Whether an operation is a constant array of different elements, which is no part of a kernel."""
    if op.name != "arith.constant" or not isinstance(op.results[0].type, mlir.RankedTensorType):
        return False
    return not mlir.DenseElementsAttr(op.attributes["value"]).is_splat


def erase_unread(function: mlir.Operation) -> None:
    """Erase what only dispatches have read, which compute it again."""
    for op in reversed(list(operations(function))):
        if op.name in _AGAIN and not any(True for result in op.results for _ in result.uses):
            op.erase()
