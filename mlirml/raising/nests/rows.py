"""Access elements of slices that are read and stored element by element directly in the whole array.

    %row = tensor.extract_slice %a[%i, 0] [1, 8] [1, 1]
    %x = tensor.extract %row[%j]                               %x = tensor.extract %a[%i, %j]
    %new = tensor.insert %v into %row[%k]                      %b = tensor.insert %v into %a[%i, %k]
    %b = tensor.insert_slice %new into %a[%i, 0] [1, 8] [1, 1]

An element is read from the array only where the array has not changed since the slice, so that no copy of the whole
array is needed. Elements of an array that is computed in the same iteration, such as a transpose, are computed one by
one: an iteration would compute all of it otherwise.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeGuard

from mlirml.analysis.tensor_stores import stored_between
from mlirml.analysis.traits import BRANCHES
from mlirml.ir import emit
from mlirml.ir.bindings import defining_op, mlir, replace_op
from mlirml.ir.erase import is_unused
from mlirml.ir.rank_zero import slice_offsets
from mlirml.raising.nests.computed import element_at, is_worth_reading, sources_of

_DYNAMIC = (mlir.ShapedType.get_dynamic_size(), -(2**63))


def read_in_place(ops: Sequence[mlir.Operation]) -> None:
    """Read elements of slices, and of arrays that are computed one by one, from the arrays that these are of."""
    for op in [op for op in ops if op.name == "tensor.extract"]:
        read: mlir.Operation | None = op
        while read is not None and read.name == "tensor.extract":
            found = _read_in_source(read)
            if found is None:
                break
            row = defining_op(read.operands[0])
            replace_op(read, found)
            if row is not None and is_unused(row):
                row.erase()
            read = defining_op(found)


def _read_in_source(op: mlir.Operation) -> mlir.Value | None:
    """The element that an operation reads of a slice or a computed array, read from its source; None otherwise."""
    row, indices = defining_op(op.operands[0]), list(op.operands)[1:]
    if _is_slice(row) and not stored_between(row, row.operands[0], op):
        with op.location, mlir.InsertionPoint(op):
            indices = indices_in_source(row, row.results[0].type, indices)
            return emit.value("tensor.extract", [row.operands[0], *indices], op.results[0].type)
    if row is None or not is_worth_reading(row) or not _in_one_iteration(row, op):
        return None
    if any(stored_between(row, source, op) for source in sources_of(row)):
        return None
    with op.location, mlir.InsertionPoint(op):
        return element_at(row, indices)


def _in_one_iteration(row: mlir.Operation, reader: mlir.Operation) -> bool:
    """True if only branches are around a reader in the block of an operation."""
    inner = reader
    while inner.block != row.block:
        inner = inner.parent.operation
        if inner.name not in BRANCHES:
            return False
    return True


def _is_slice(op: mlir.Operation | None) -> TypeGuard[mlir.Operation]:
    return op is not None and op.name == "tensor.extract_slice" and has_static_strides(op)


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
    replace_op(op, whole)


def has_static_strides(row: mlir.Operation) -> bool:
    """True if the strides of a slice are static."""
    return not any(stride in _DYNAMIC for stride in row.attributes["static_strides"])
