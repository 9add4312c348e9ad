"""Loops with ordered stores that devices still run in parallel: scatters and scans."""

from __future__ import annotations

from mlirml.analysis.constants import is_constant
from mlirml.analysis.traits import TENSOR_STORES
from mlirml.analysis.values import walk
from mlirml.dialects.mlirml import DIMS, KERNEL
from mlirml.ir.bindings import block_ops, defining_op, mlir, operations

SCATTER, SCAN = "mlirml.scatter", "mlirml.scan"
"""Attributes of loops that store at computed indices, and that compute prefix sums along an axis."""

_INSIDE = ("arith.", "math.", "linalg.", "tensor.", "scf.for", "scf.yield")


def is_ordered(op: mlir.Operation) -> bool:
    """True if an operation is a scatter or a scan in the form that capture builds."""
    if op.name != "scf.for" or not (SCATTER in op.attributes or SCAN in op.attributes):
        return False
    for inner in operations(op):
        if not inner.name.startswith(_INSIDE):
            return False
        if inner.name == "scf.for" and not has_known_bounds(inner):
            return False
    return is_scatter(op) if SCATTER in op.attributes else is_scan(op)


def has_known_bounds(op: mlir.Operation) -> bool:
    """True if the trip count of a loop is static, or a size of a program of dynamic sizes."""
    *bounds, step = list(op.operands)[:3]
    return is_constant(step) and all(is_constant(bound) or is_size(bound) for bound in bounds)


def is_size(value: mlir.Value) -> bool:
    """True for a size that the host has at the start of a call: in a kernel function, an argument."""
    factors = [each for each in walk(value, _factors) if not _factors(each)]
    return all(_is_one_size(each) or (each != value and is_constant(each)) for each in factors)


def _factors(value: mlir.Value) -> list[mlir.Value]:
    op = defining_op(value)
    return list(op.operands) if op is not None and op.name == "arith.muli" else []


def _is_one_size(value: mlir.Value) -> bool:
    op = defining_op(value)
    if op is None:
        return KERNEL in value.owner.owner.operation.attributes
    table = defining_op(op.operands[0]) if op.name == "arith.index_cast" else None
    if table is None or table.name != "tensor.extract" or defining_op(table.operands[0]) is not None:
        return False
    function = table.operands[0].owner.owner.operation
    return DIMS in function.attributes and table.operands[0] == list(function.regions[0].blocks[0].arguments)[-1]


def is_scatter(op: mlir.Operation) -> bool:
    """True for perfectly nested loops that carry one tensor and end with a store into it."""
    if len(op.results) != 1 or not isinstance(op.results[0].type, mlir.RankedTensorType):
        return False
    stored = defining_op(block_ops(op.regions[0].blocks[0])[-1].operands[0])
    if stored is None:
        return False
    if stored.name == "scf.for":
        return is_scatter(stored)
    return stored.name in TENSOR_STORES


def is_scan(op: mlir.Operation) -> bool:
    """True if a loop carries scalars and stores each, or contains such a loop for each row, or carries whole rows."""
    *ops, end = block_ops(op.regions[0].blocks[0])
    tensors = [isinstance(result.type, mlir.RankedTensorType) for result in op.results]
    if len(tensors) > 1 and tensors[-1] and not any(tensors[:-1]):
        return all(store_of(end.operands[len(tensors) - 1], value) is not None for value in list(end.operands)[:-1])
    last = defining_op(end.operands[len(tensors) - 1])
    if last is None or not all(tensors):
        return False
    if len(tensors) == 1:
        alone = last.name == "scf.for" and sum(inner.name == "scf.for" for inner in ops) == 1
        return alone and len(last.results) > 1 and is_scan(last)
    made = defining_op(end.operands[0])
    whole = made is not None and made.name == "linalg.generic" and last.name == "tensor.insert_slice"
    return whole and len(tensors) == 2


def store_of(tensor: mlir.Value, value: mlir.Value) -> mlir.Operation | None:
    """The `tensor.insert` of `value` that made a tensor; None if another operation made it."""
    op = defining_op(tensor)
    while op is not None and op.name == "tensor.insert":
        if op.operands[0] == value:
            return op
        op = defining_op(op.operands[1])
    return None
