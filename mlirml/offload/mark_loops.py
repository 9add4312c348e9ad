"""Mark loops: loops over elements that one kernel can run are marked as scatters and scans.

Before: on the host, with one launch in each iteration
    %r = scf.for %i = %c0 to %c64 step %c1 iter_args(%y = %x) -> (tensor<8xf32>) {
      %k = tensor.extract %places[%i] : tensor<64xindex>
      %old = tensor.extract %y[%k] : tensor<8xf32>
      %new = arith.mulf %old, %old : f32
      %s = tensor.insert %new into %y[%k] : tensor<8xf32>
      scf.yield %s : tensor<8xf32>
    }
After: one kernel
    %r = scf.for ... { ... } {mlirml.scatter}

A scatter is a loop nest with one loop-carried tensor, into which the innermost loop inserts an element as its last
operation. It may read the tensor anywhere: it becomes a kernel of many threads if each update reads only the element
that it overwrites, else of one thread. A scan has a loop-carried scalar too, and stores it.
"""

from __future__ import annotations

from mlirml.analysis.ordered_loops import SCAN, SCATTER, has_known_bounds, is_ordered
from mlirml.analysis.values import is_tensor
from mlirml.ir.bindings import block_ops, defining_op, main_function, mlir, operations
from mlirml.passes import Pass, register

_SCALAR = ("arith.", "math.", "tensor.extract")


@register
class MarkLoopsPass(Pass):
    """Mark loops over elements that one kernel can run as scatters and scans."""

    def run(self, module: mlir.Operation) -> None:
        main = main_function(module)
        todo = [block for region in main.regions for block in region.blocks]
        while todo:
            for op in block_ops(todo.pop()):
                if op.name == "scf.for" and not is_ordered(op):
                    mark_loop(op)
                if not is_ordered(op):
                    todo += [block for region in op.regions for block in region.blocks]


def mark_loop(loop: mlir.Operation) -> None:
    """Mark a loop if it is a scatter or a scan."""
    if is_scatter(loop):
        loop.attributes[SCATTER] = mlir.UnitAttr.get()
    elif is_scan(loop):
        loop.attributes[SCAN] = mlir.UnitAttr.get()


def is_scatter(loop: mlir.Operation) -> bool:
    """True for a loop nest with one loop-carried tensor whose innermost loop inserts an element last."""
    if len(loop.results) != 1 or not is_tensor(loop.results[0]) or not has_known_bounds(loop):
        return False
    *ops, end = block_ops(loop.regions[0].blocks[0])
    carried = loop.regions[0].blocks[0].arguments[1]
    last = defining_op(end.operands[0])
    if last is None or last not in ops or not all(is_scalar(op) for op in ops if op != last):
        return False
    if last.name == "scf.for":
        return last.operands[3] == carried and does_not_read(ops, last, carried) and is_scatter(last)
    return bool(last.name == "tensor.insert" and last.operands[1] == carried)


def does_not_read(ops: list[mlir.Operation], inner: mlir.Operation, carried: mlir.Value) -> bool:
    """True if only `inner` reads the tensor: the other `ops` may be recomputed in each of its iterations."""
    return all(operand != carried for op in ops if op != inner for operand in op.operands) and all(
        operand != carried for op in operations(inner) if op != inner for operand in op.operands
    )


def is_scan(loop: mlir.Operation) -> bool:
    """True if a loop carries a scalar and a tensor, stores each scalar, and does not read the tensor."""
    if len(loop.results) != 2 or is_tensor(loop.results[0]) or not is_tensor(loop.results[1]):
        return False
    *ops, end = block_ops(loop.regions[0].blocks[0])
    number, tensor = end.operands
    store = defining_op(tensor)
    if store is None or store not in ops or not all(is_scalar(op) for op in ops if op != store):
        return False
    carried = loop.regions[0].blocks[0].arguments[2]
    alone = store.name == "tensor.insert" and store.operands[1] == carried and store.operands[0] == number
    unread = sum(1 for _ in carried.uses) == 1 and not any(True for _ in loop.results[0].uses)
    return alone and unread and has_known_bounds(loop)


def is_scalar(op: mlir.Operation) -> bool:
    """True if an operation computes scalars from scalars."""
    return op.name.startswith(_SCALAR) and op.name != "tensor.extract_slice" and not op.regions
