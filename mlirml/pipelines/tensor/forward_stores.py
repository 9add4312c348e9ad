"""Forward stores: a store whose result is only read by slices is removed; they read its source or its destination.

Before:
    %t = tensor.insert_slice %s into %d[%i, 0] [1, 8] [1, 1] : tensor<8xf32> into tensor<4x8xf32>
    %j = arith.subi %i, %c1 : index
    %a = tensor.extract_slice %t[%j, 0] [1, 8] [1, 1] : tensor<4x8xf32> to tensor<8xf32>
    %b = tensor.extract %t[%i, %c2] : tensor<4x8xf32>
    %r = linalg.generic ... ins(%s, %a, %b)
    %u = tensor.insert_slice %r into %d[%i, 0] [1, 8] [1, 1] : tensor<8xf32> into tensor<4x8xf32>
After:
    %j = arith.subi %i, %c1 : index
    %a = tensor.extract_slice %d[%j, 0] [1, 8] [1, 1] : tensor<4x8xf32> to tensor<8xf32>
    %b = tensor.extract %s[%c2] : tensor<8xf32>
    %r = linalg.generic ... ins(%s, %a, %b)
    %u = tensor.insert_slice %r into %d[%i, 0] [1, 8] [1, 1] : tensor<8xf32> into tensor<4x8xf32>

Canonicalization makes a store that overwrites an earlier one start from the tensor before the earlier one. Both then
start from `%d`, and bufferization would copy it as a whole in each iteration of a loop if the first result is read.
`mlirml-bufferize` restores the order of such stores if a read cannot be forwarded.
"""

from __future__ import annotations

from collections.abc import Sequence

from mlirml.analysis.distances import Box, Distances, box_of, numbers_of
from mlirml.analysis.traits import TENSOR_READS
from mlirml.core.affine import Linear
from mlirml.core.dataclass import dataclass
from mlirml.ir import emit
from mlirml.ir.bindings import mlir, named_operations, replace_op
from mlirml.passes import Pass, register
from mlirml.passes.presence import LOOP_OR_REQUEST

_DYNAMIC = mlir.ShapedType.get_dynamic_size()


@register(when=(*LOOP_OR_REQUEST, "tensor.insert_slice"), optional=True)
class ForwardStoresPass(Pass):
    """Remove insert_slice operations whose reads can all be forwarded to the source or the destination."""

    def run(self, module: mlir.Operation) -> None:
        distances = Distances()
        # Last stores first: a read that is forwarded to the destination may be forwarded again.
        for store in reversed(named_operations(module, ("tensor.insert_slice",))):
            reads = match_reads(store, distances)
            if reads:
                for read in reads:
                    build_read(store, read)
                store.erase()


@dataclass(frozen=True)
class Read:
    """A read of a stored tensor: `offsets` are those in the source of the store, None for one of the destination."""

    op: mlir.Operation
    offsets: tuple[int | mlir.Value, ...] | None


def match_reads(store: mlir.Operation, distances: Distances) -> list[Read]:
    """The reads of a stored tensor, if each is either disjoint from the stored slice or contained in it."""
    box = box_of(store, distances)
    if box is None:
        return []
    found = []
    for use in store.results[0].uses:
        read = match_read(store, box, use.owner.operation, distances)
        if read is None:
            return []
        found.append(read)
    return found


def match_read(store: mlir.Operation, box: Box, op: mlir.Operation, distances: Distances) -> Read | None:
    """Match one read; None for other uses, and for slices of unknown position."""
    if op.name not in TENSOR_READS:
        return None
    other = box_of(op, distances)
    if other is None:
        return None
    if distances.are_disjoint(box, other):
        return Read(op, None)
    if any(step != 1 for step in box.steps):
        return None
    for dim in range(len(box.steps)):
        begins = distances.least(other.offsets[dim] - box.offsets[dim]) >= 0
        if not begins or distances.least(box.last(dim) - other.last(dim)) < 0:
            return None
    kept = kept_dims(store, store.operands[0].type.shape)
    if op.name == "tensor.extract_slice" and kept_dims(op, op.results[0].type.shape) != kept:
        return None
    offsets = [offset_in(store, op, box, other, dim) for dim in kept]
    found = tuple(offset for offset in offsets if offset is not None)
    return Read(op, found) if len(found) == len(offsets) else None


def offset_in(store: mlir.Operation, op: mlir.Operation, box: Box, other: Box, dim: int) -> int | mlir.Value | None:
    """The offset of a read in the source of a store, along a dimension of the tensor; None if it is unknown."""
    difference = other.offsets[dim] - box.offsets[dim]
    if difference.is_constant:
        return difference.constant
    offset = numbers_of(op, "static_offsets", 1)[dim]
    return offset if box.offsets[dim] == Linear() else None


def kept_dims(op: mlir.Operation, shape: Sequence[int]) -> list[int]:
    """The dimensions of a tensor that a slice of it keeps; the others have size 1."""
    kept: list[int] = []
    for dim, size in enumerate(op.attributes["static_sizes"]):
        if len(kept) < len(shape) and shape[len(kept)] == size:
            kept.append(dim)
    return kept


def build_read(store: mlir.Operation, read: Read) -> None:
    """Replace a read of the stored tensor by one of the store's destination or source."""
    op = read.op
    if read.offsets is None:
        op.operands[0] = store.operands[1]
        return
    source = store.operands[0]
    with op.location, mlir.InsertionPoint(op):
        if op.name == "tensor.extract":
            indices = [emit.index(offset) if isinstance(offset, int) else offset for offset in read.offsets]
            new = emit.value("tensor.extract", [source, *indices], op.results[0].type)
        else:
            new = slice_of(source, op, read.offsets)
    replace_op(op, new)


def slice_of(source: mlir.Value, op: mlir.Operation, offsets: Sequence[int | mlir.Value]) -> mlir.Value:
    """A slice of `source` with the sizes and strides of `op`, and other offsets."""
    skipped = 1 + list(op.attributes["static_offsets"]).count(_DYNAMIC)
    kept = kept_dims(op, op.results[0].type.shape)
    sizes = [numbers_of(op, "static_sizes", skipped)[dim] for dim in kept]
    steps = [op.attributes["static_strides"][dim] for dim in kept]
    return emit.slice_op("tensor.extract_slice", [source], op.results[0].type, offsets, sizes, steps)
