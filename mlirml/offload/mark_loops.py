"""Mark loops over elements that a device runs whole: as scatters and scans, which kernels are made for.

Before: on the host, with a launch in each round
    %r = scf.for %i = %c0 to %c64 step %c1 iter_args(%y = %x) -> (tensor<8xf32>) {
      %k = tensor.extract %places[%i] : tensor<64xindex>
      %old = tensor.extract %y[%k] : tensor<8xf32>
      %new = arith.mulf %old, %old : f32
      %s = tensor.insert %new into %y[%k] : tensor<8xf32>
      scf.yield %s : tensor<8xf32>
    }
After: one kernel
    %r = scf.for ... { ... } {mlirml.scatter}

A scatter is a nest of loops that carry one tensor, into which the innermost one stores an element last. It may read the
tensor anywhere: kernels of many threads are made where each update reads no more than what it stores over, of one
thread elsewhere. A scan carries one number besides, which it stores.
"""

from __future__ import annotations

from mlirml.analysis.ordered_loops import SCAN, SCATTER, has_constant_bounds, is_ordered
from mlirml.core.dataclass import dataclass
from mlirml.ir.bindings import block_ops, defining_op, main_function, mlir, operations
from mlirml.passes import Pass, register

_SCALAR = ("arith.", "math.", "tensor.extract")


@register
@dataclass(frozen=True)
class MarkLoopsPass(Pass):
    """Mark loops over elements that one kernel can run as scatters and scans."""

    name = "mlirml-mark-loops"

    def run(self, module: mlir.Operation) -> None:
        main = main_function(module)
        with module.context:
            todo = [block for region in main.regions for block in region.blocks]
            while todo:
                for op in block_ops(todo.pop()):
                    if op.name == "scf.for" and not is_ordered(op):
                        mark(op)
                    if not is_ordered(op):
                        todo += [block for region in op.regions for block in region.blocks]


def mark(loop: mlir.Operation) -> None:
    """Mark a loop if it is of one of the two forms."""
    if is_nest(loop):
        loop.attributes[SCATTER] = mlir.UnitAttr.get()
    elif is_row(loop):
        loop.attributes[SCAN] = mlir.UnitAttr.get()


def is_nest(loop: mlir.Operation) -> bool:
    """True if loops, each around the next one, carry one tensor, into which the innermost stores one element last."""
    if len(loop.results) != 1 or not is_tensor(loop.results[0]) or not has_constant_bounds(loop):
        return False
    *ops, end = block_ops(loop.regions[0].blocks[0])
    carried = loop.regions[0].blocks[0].arguments[1]
    last = defining_op(end.operands[0])
    if last is None or last not in ops or not all(is_scalar(op) for op in ops if op != last):
        return False
    if last.name == "scf.for":
        return last.operands[3] == carried and reads_nothing(ops, last, carried) and is_nest(last)
    return bool(last.name == "tensor.insert" and last.operands[1] == carried)


def reads_nothing(ops: list[mlir.Operation], inner: mlir.Operation, carried: mlir.Value) -> bool:
    """True if what stands around a loop does not read the tensor: it may be read again in each round."""
    return all(operand != carried for op in ops if op != inner for operand in op.operands) and all(
        operand != carried for op in operations(inner) if op != inner for operand in op.operands
    )


def is_row(loop: mlir.Operation) -> bool:
    """True if a loop carries a number and a tensor, stores each number, and reads nothing of the tensor."""
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
    return alone and unread and has_constant_bounds(loop)


def is_scalar(op: mlir.Operation) -> bool:
    """True if an operation computes numbers of numbers."""
    return op.name.startswith(_SCALAR) and op.name != "tensor.extract_slice" and not op.regions


def is_tensor(value: mlir.Value) -> bool:
    return isinstance(value.type, mlir.RankedTensorType)
