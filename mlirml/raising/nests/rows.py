"""Access elements of slices that are read and stored element by element directly in the whole array.

    %row = tensor.extract_slice %a[%i, 0] [1, 8] [1, 1]
    %x = tensor.extract %row[%j]                               %x = tensor.extract %a[%i, %j]
    %new = tensor.insert %v into %row[%k]                      %b = tensor.insert %v into %a[%i, %k]
    %b = tensor.insert_slice %new into %a[%i, 0] [1, 8] [1, 1]

An element is read from the array only where the array has not changed since the slice, so that no copy of the whole
array is needed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeGuard

from mlirml.analysis.traits import CONTROL
from mlirml.ir import emit
from mlirml.ir.bindings import defining_op, mlir
from mlirml.ir.rank_zero import slice_offsets

_DYNAMIC = (mlir.ShapedType.get_dynamic_size(), -(2**63))
_STORES = {"tensor.insert": 1, "tensor.insert_slice": 1}


def read_in_place(ops: Sequence[mlir.Operation]) -> None:
    """Read elements of slices from the arrays that these are slices of."""
    for op in ops:
        if op.name != "tensor.extract":
            continue
        row = defining_op(op.operands[0])
        while _is_slice(row) and not _stored_between(row, op):
            with op.location, mlir.InsertionPoint(op):
                indices = indices_in_source(row, row.results[0].type, list(op.operands)[1:])
                new = emit.create("tensor.extract", [row.operands[0], *indices], [op.results[0].type])
            op.results[0].replace_all_uses_with(new.results[0])
            op, row = new, defining_op(row.operands[0])


def _is_slice(op: mlir.Operation | None) -> TypeGuard[mlir.Operation]:
    return op is not None and op.name == "tensor.extract_slice" and has_static_strides(op)


def _stored_between(row: mlir.Operation, reader: mlir.Operation) -> bool:
    """True if the source of a slice may be overwritten between the slice and a reader of it."""
    top = _ancestor_in(reader, row.block)
    if top is None:
        return True
    for use in row.operands[0].uses:
        owner = use.owner.operation
        if not _writes(owner, use.operand_number):
            continue
        inside = _ancestor_in(owner, row.block)
        if inside is None:
            continue
        if row.is_before_in_block(inside) and not top.is_before_in_block(inside):
            return True
    return False


def _writes(op: mlir.Operation, operand: int) -> bool:
    """True if an operation may compute its result in the buffer of an operand."""
    if op.name in _STORES:
        return operand == _STORES[op.name]
    return op.name in CONTROL or op.name.startswith("linalg.") or bool(op.regions)


def _ancestor_in(op: mlir.Operation, block: mlir.Block) -> mlir.Operation | None:
    """The ancestor of `op` (or `op` itself) in a block."""
    inner = op
    while inner.block != block:
        inner = inner.parent.operation
        if inner.name == "builtin.module":  # which is in no block: querying it would crash
            return None
    return inner


def indices_in_source(row: mlir.Operation, type_: mlir.Type, indices: Sequence[mlir.Value]) -> list[mlir.Value]:
    """The indices in the source of an element of a slice of type `type_`; index arithmetic is built here."""
    sizes, strides = list(row.attributes["static_sizes"]), list(row.attributes["static_strides"])
    found: list[mlir.Value] = []
    left = list(zip(type_.shape, indices, strict=True))
    for size, stride, offset in zip(sizes, strides, slice_offsets(row), strict=True):
        # A dimension that the type of the slice lacks has size 1.
        inner = left.pop(0)[1] if left and left[0][0] in (size, *_DYNAMIC) else None
        found.append(_moved(inner, stride, offset))
    return found


def _moved(inner: mlir.Value | None, stride: int, offset: int | mlir.Value) -> mlir.Value:
    """`inner * stride + offset`."""
    if inner is None:
        return offset if isinstance(offset, mlir.Value) else emit.index(offset)
    if stride != 1:
        inner = emit.same_type("arith.muli", inner, emit.index(stride))
    if isinstance(offset, mlir.Value):
        return emit.same_type("arith.addi", inner, offset)
    return inner if offset == 0 else emit.same_type("arith.addi", inner, emit.index(offset))


def store_in_place(ops: Sequence[mlir.Operation]) -> None:
    """Store the changed elements of a row that is extracted and inserted back directly into the array itself."""
    for op in ops:
        if op.name == "tensor.insert_slice":
            chain = _stores_to_row(op)
            if chain:
                _store_elements(op, chain)


def _stores_to_row(op: mlir.Operation) -> list[mlir.Operation]:
    """The stores between a row and its new contents, in order; none if it has other uses."""
    chain = []
    value, inner = op.operands[0], defining_op(op.operands[0])
    while inner is not None and inner.name == "tensor.insert" and inner.block == op.block:
        if sum(1 for _ in value.uses) != 1:
            return []
        chain.append(inner)
        value = inner.operands[1]
        inner = defining_op(value)
    same = (
        inner is not None
        and inner.name == "tensor.extract_slice"
        and inner.operands[0] == op.operands[1]
        and inner.block == op.block
        and has_static_strides(inner)
        and list(inner.operands)[1:] == list(op.operands)[2:]
        and all(
            list(inner.attributes[name]) == list(op.attributes[name])
            for name in ("static_offsets", "static_sizes", "static_strides")
        )
    )
    return chain[::-1] if same else []


def _store_elements(op: mlir.Operation, chain: Sequence[mlir.Operation]) -> None:
    row = defining_op(chain[0].operands[1])
    assert row is not None
    whole = op.operands[1]
    with op.location, mlir.InsertionPoint(op):
        for store in chain:
            indices = indices_in_source(row, row.results[0].type, list(store.operands)[2:])
            whole = emit.value("tensor.insert", [store.operands[0], whole, *indices], whole.type)
    op.results[0].replace_all_uses_with(whole)
    op.erase()


def has_static_strides(row: mlir.Operation) -> bool:
    """True if the strides of a slice are static."""
    return not any(stride in _DYNAMIC for stride in row.attributes["static_strides"])
