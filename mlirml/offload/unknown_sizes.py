"""Tensors of dynamic size between kernels are replaced by slices of tensors of static size.

Before:
    %s = linalg.generic {...} ins(%x : tensor<?xf32>) outs(...) -> tensor<?xf32>
    %r = tensor.insert_slice %s into %a[%i] [%n] [1] : tensor<?xf32> into tensor<64xf32>
    %t = linalg.generic {...} ins(%s, ...) ...
After: kernels read `%s` from the tensor that it was stored into
    %s = linalg.generic {...} ins(%x : tensor<?xf32>) outs(...) -> tensor<?xf32>
    %r = tensor.insert_slice %s into %a[%i] [%n] [1] : tensor<?xf32> into tensor<64xf32>
    %v = tensor.extract_slice %r[%i] [%n] [1] : tensor<64xf32> to tensor<?xf32>
    %t = linalg.generic {...} ins(%v, ...) ...

A tensor that is not stored is inserted into an empty tensor, as large as its upper bound.
"""

from __future__ import annotations

from mlirml.analysis.bounds import DYNAMIC, bound, is_dynamic, size_operand
from mlirml.analysis.values import is_before
from mlirml.ir import emit
from mlirml.ir.bindings import block_ops, defining_op, mlir


def keep_in_known_sizes(block: mlir.Block) -> None:
    """Replace uses of dynamic tensors that a block computes by slices of tensors of static size."""
    for op in block_ops(block):
        if not op.name.startswith("linalg."):
            continue
        for number, result in enumerate(op.results):
            users = [use.owner.operation for use in result.uses]
            if is_dynamic(result) and (len(users) > 1 or any(user.name != "tensor.insert_slice" for user in users)):
                read_from_store(op, number)


def read_from_store(op: mlir.Operation, number: int) -> None:
    """Make the users of a result read it from the tensor it is stored into, if its size has an upper bound."""
    result = op.results[number]
    stores = [use.owner.operation for use in result.uses if use.owner.name == "tensor.insert_slice"]
    stores = [store for store in stores if store.operands[0] == result and not is_dynamic(store.results[0])]
    first = next((store for store in stores if store.block == op.block), None)
    if first is None or any(is_before(use.owner.operation, first) for use in result.uses):
        first = stored_whole(op, number)
    if first is None:
        return
    with op.location, mlir.InsertionPoint.after(first):
        names = ("static_offsets", "static_sizes", "static_strides")
        attributes = {name: first.attributes[name] for name in names}
        segments = list(first.attributes["operandSegmentSizes"])
        attributes["operandSegmentSizes"] = emit.segments(1, *segments[2:])
        operands = [first.results[0], *list(first.operands)[2:]]
        part = emit.value("tensor.extract_slice", operands, result.type, **attributes)
    result.replace_all_uses_except(part, [first])


def stored_whole(op: mlir.Operation, number: int) -> mlir.Operation | None:
    """A store of a result at the start of a tensor of its largest size; None if no upper bound is known."""
    result = op.results[number]
    bounds = [bound(result, dim) for dim in range(result.type.rank)]
    known = [size for size in bounds if size is not None]
    with op.location, mlir.InsertionPoint.after(op):
        sizes = [size_of(result, dim) for dim, size in enumerate(result.type.shape) if size == DYNAMIC]
        if len(known) < len(bounds) or any(size is None for size in sizes):
            return None
        rank = len(known)
        whole = emit.empty(mlir.RankedTensorType.get(known, result.type.element_type))
        attributes = {
            "static_offsets": mlir.DenseI64ArrayAttr.get([0] * rank),
            "static_sizes": mlir.DenseI64ArrayAttr.get(list(result.type.shape)),
            "static_strides": mlir.DenseI64ArrayAttr.get([1] * rank),
            "operandSegmentSizes": emit.segments(1, 1, 0, len(sizes), 0),
        }
        return emit.create("tensor.insert_slice", [result, whole, *sizes], [whole.type], attributes)


def size_of(tensor: mlir.Value, dim: int) -> mlir.Value | None:
    """The dynamic size of a dimension, as an operand of the tensor's producer; None if there is none."""
    op = defining_op(tensor)
    if op is None:
        return None
    if op.name.startswith("linalg."):
        return size_of(op.operands[len(op.operands) - len(op.results) + list(op.results).index(tensor)], dim)
    if op.name == "tensor.extract_slice":
        sizes = [size_operand(op, d, 1) for d in range(len(op.attributes["static_sizes"]))]
        found = [size for size in sizes if not isinstance(size, int)]
    elif op.name == "tensor.empty":
        found = list(op.operands)
    else:
        return None
    return found[sum(size == DYNAMIC for size in tensor.type.shape[:dim])]
