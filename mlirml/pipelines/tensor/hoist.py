"""Hoist: expensive loop-invariant tensor operations are hoisted out of the loop.

Before:
    %r = scf.for %i = %c0 to %n step %c1 iter_args(%x = %init) -> (tensor<8xf32>) {
      %e = tensor.empty() : tensor<8xf32>
      %w = linalg.generic {...} ins(%a : tensor<8xf32>) outs(%e : tensor<8xf32>) { math.exp }
      %y = linalg.generic {...} ins(%x, %w) outs(...)
      scf.yield %y
    }
After:
    %e = tensor.empty() : tensor<8xf32>
    %w = linalg.generic {...} ins(%a : tensor<8xf32>) outs(%e : tensor<8xf32>) { math.exp }
    %r = scf.for ... {
      %y = linalg.generic {...} ins(%x, %w) outs(...)
      scf.yield %y
    }

Cheap elementwise operations are not hoisted, as they fuse with their consumers. Hoisting is wasted for zero-trip loops.
"""

from __future__ import annotations

from mlirml.analysis.cost import is_costly
from mlirml.analysis.values import outer_values
from mlirml.ir.bindings import block_ops, defining_op, mlir, named_operations, operations
from mlirml.passes import Pass, register
from mlirml.passes.presence import LOOP_OR_REQUEST

_LOOPS = ("scf.for", "scf.while")
_STARTS = ("tensor.empty", "linalg.fill")
_FREE = ("tensor.extract_slice", "tensor.collapse_shape", "tensor.expand_shape", "arith.constant", *_STARTS)


@register(when=LOOP_OR_REQUEST, optional=True)
class HoistPass(Pass):
    """Hoist loop-invariant structured operations out of loops."""

    def run(self, module: mlir.Operation) -> None:
        for loop in named_operations(module, _LOOPS)[::-1]:  # inner loops first
            for region in loop.regions:
                hoist_from(region.blocks[0], loop)


def hoist_from(block: mlir.Block, loop: mlir.Operation) -> None:
    """Hoist from a block of the body of a loop."""
    variant: set[mlir.Value] = {argument for region in loop.regions for b in region.blocks for argument in b.arguments}
    invariant: list[mlir.Operation] = []
    for op in block_ops(block):
        if is_movable(op) and not any(value in variant for value in outer_values(op)):
            invariant.append(op)
        else:
            for inner in operations(op):
                variant.update(inner.results)
    for op in invariant:
        if op.block == block and is_expensive(op):
            move(op, block, loop)


def is_movable(op: mlir.Operation) -> bool:
    """True if an operation may run without the loop's checks: it does not access dynamic indices."""
    if op.name in _FREE:
        return op.name != "tensor.extract_slice" or len(op.operands) == 1
    if not op.name.startswith("linalg.") or not op.results:
        return False
    return all(inner.name.startswith(("arith.", "math.", "linalg.")) for inner in operations(op))


def is_expensive(op: mlir.Operation) -> bool:
    """True if computing an operation once is worth a tensor: a contraction, a reduction, or costly functions."""
    if op.name in _FREE or op.name in ("linalg.transpose", "linalg.broadcast", "linalg.copy"):
        return False
    if op.name != "linalg.generic":
        return True
    if any("reduction" in str(kind) for kind in op.attributes["iterator_types"]):
        return True
    return any(map(is_costly, block_ops(op.regions[0].blocks[0])))


def move(op: mlir.Operation, block: mlir.Block, loop: mlir.Operation) -> None:
    """Hoist an operation before the loop, after its operands; empty tensors and fills are cloned."""
    for inner in list(operations(op)):
        for position, operand in enumerate(list(inner.operands)):
            owner = defining_op(operand)
            if owner is None or owner.block != block:
                continue
            if owner.name in _STARTS:
                with mlir.InsertionPoint(loop):
                    copy = owner.clone().operation
                hoist_operands(copy, block, loop)
                inner.operands[position] = copy.results[0]
            else:
                move(owner, block, loop)
    op.move_before(loop)


def hoist_operands(start: mlir.Operation, block: mlir.Block, loop: mlir.Operation) -> None:
    """Hoist the operands of the clone, before the loop, of an empty tensor or of a fill."""
    for position, operand in enumerate(list(start.operands)):
        owner = defining_op(operand)
        if owner is None or owner.block != block:
            continue
        if owner.name in _STARTS:
            with mlir.InsertionPoint(start):
                copy = owner.clone().operation
            start.operands[position] = copy.results[0]
        else:
            owner.move_before(start)
