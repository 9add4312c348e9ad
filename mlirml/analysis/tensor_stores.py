"""Stores into tensors between two operations: bufferization copies a tensor that is read after such a store."""

from __future__ import annotations

from mlirml.analysis.traits import CONTROL
from mlirml.ir.bindings import mlir

_STORES = {"tensor.insert": 1, "tensor.insert_slice": 1}


def stored_between(first: mlir.Operation, source: mlir.Value, reader: mlir.Operation) -> bool:
    """True if a tensor may be overwritten between an operation and a reader in its block, or in regions of that."""
    top = _ancestor_in(reader, first.block)
    if top is None:
        return True
    for use in source.uses:
        owner = use.owner.operation
        if not _writes(owner, use.operand_number):
            continue
        writer = _ancestor_in(owner, first.block)
        if writer is None:
            continue
        if first.is_before_in_block(writer) and not top.is_before_in_block(writer):
            return True
    return False


def _writes(op: mlir.Operation, operand: int) -> bool:
    """True if an operation may compute its result in the buffer of an operand."""
    if op.name in _STORES:
        return operand == _STORES[op.name]
    if op.name.startswith("linalg."):
        return operand >= len(op.operands) - len(op.results)
    return op.name in CONTROL or bool(op.regions)


def _ancestor_in(op: mlir.Operation, block: mlir.Block) -> mlir.Operation | None:
    """The ancestor of `op` (or `op` itself) in a block."""
    inner = op
    while inner.block != block:
        inner = inner.parent.operation
        if inner.name == "builtin.module":  # which is in no block: querying it would crash
            return None
    return inner
