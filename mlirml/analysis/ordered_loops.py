"""Loops with ordered stores that devices still run in parallel: scatters and scans."""

from __future__ import annotations

from mlirml.analysis.traits import TENSOR_STORES
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
        if inner.name == "scf.for" and not has_constant_bounds(inner):
            return False
    return is_scatter(op) if SCATTER in op.attributes else is_scan(op)


def has_constant_bounds(op: mlir.Operation) -> bool:
    """True if the trip count of a loop is static."""
    owners = [defining_op(operand) for operand in list(op.operands)[:3]]
    return all(owner is not None and owner.name == "arith.constant" for owner in owners)


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
