"""Clusters: structured operations that can be tiled together along one dimension."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import field

from mlirml.analysis.structured import indexing_maps
from mlirml.analysis.values import used_values
from mlirml.core.dataclass import dataclass
from mlirml.ir.bindings import block_ops, defining_op, mlir, operations
from mlirml.passes import NoMatch

SLICES = ("tensor.extract_slice", "tensor.insert_slice")
_STARTS = ("tensor.empty", "linalg.fill")


@dataclass(frozen=True)
class Member:
    """An operation of a cluster, and the positions of the tiled dimension in its operands and results.

    A structured operation has maps, and the dimension is one of its loops; a slice keeps the dimension whole.
    """

    op: mlir.Operation
    axes: tuple[int | None, ...]
    result_axes: tuple[int | None, ...]
    maps: tuple[mlir.AffineMap, ...] = ()
    loop: int = -1

    @property
    def inputs(self) -> int:
        """The number of operands that are inputs; the others are inits."""
        return len(self.op.operands) - len(self.op.results)


@dataclass
class Cluster:
    """Operations along one dimension of `size`; `carried` maps the tensors that have it to its position in them.

    `late` are operations of the block that depend on complete results, `recomputed` are results that others recompute,
    or read from outside.
    """

    size: int
    carried: dict[mlir.Value, int] = field(default_factory=dict)
    members: dict[mlir.Operation, Member] = field(default_factory=dict)
    late: set[mlir.Operation] = field(default_factory=set)
    recomputed: set[mlir.Value] = field(default_factory=set)

    def made(self, value: mlir.Value) -> bool:
        """True if a member computes a value."""
        op = defining_op(value)
        return op is not None and op in self.members

    def reduced(self) -> list[mlir.Value]:
        """The results without the dimension."""
        return [r for m in self.members.values() for r in m.op.results if r not in self.carried]

    def escaping(self) -> list[mlir.Value]:
        """The results with the dimension that have users outside of the cluster."""
        return [
            r
            for m in self.members.values()
            for r in m.op.results
            if r in self.carried
            and r not in self.recomputed
            and any(owner_of(use) not in self.members for use in r.uses)
        ]

    def inner(self) -> list[mlir.Value]:
        """The tensors of which only a block needs to exist at a time."""
        outside = set(self.escaping())
        return [
            r
            for m in self.members.values()
            for r in m.op.results
            if r in self.carried and r not in outside and m.op.name not in (*_STARTS, *SLICES)
        ]

    def still(self) -> list[mlir.Value]:
        """The tensors without the dimension that members read, or accumulate into."""
        found: dict[mlir.Value, None] = {}
        for member in self.members.values():
            found.update(
                (x, None)
                for x in member.op.operands
                if x not in self.carried and isinstance(x.type, mlir.RankedTensorType)
            )
        return list(found)


def grow(seed: mlir.Value, dim: int) -> Cluster:
    """The operations of the block of `seed` that can be tiled along dimension `dim` of it together with its producer.

    Raises `NoMatch` if a tensor has the dimension twice.
    """
    cluster = reach(seed, dim)
    _set_apart(cluster, seed.owner.operation.block)
    return cluster


def reach(seed: mlir.Value, dim: int) -> Cluster:
    """The same cluster, including the operations that need a complete result."""
    cluster = Cluster(seed.type.shape[dim])
    block = seed.owner.operation.block
    todo = [(seed, dim)]
    while todo:
        value, axis = todo.pop()
        known = cluster.carried.get(value)
        if known is not None:
            if known != axis:
                raise NoMatch("a tensor has the dimension twice")
            continue
        cluster.carried[value] = axis
        producer = defining_op(value)
        if producer is not None and producer.block == block:
            number = list(producer.results).index(value)
            todo += _join(cluster, producer, number, axis, of_result=True)
        for use in value.uses:
            owner = owner_of(use)
            if owner.block == block:
                todo += _join(cluster, owner, use.operand_number, axis)
    return cluster


def _join(
    cluster: Cluster, op: mlir.Operation, number: int, axis: int, of_result: bool = False
) -> Iterator[tuple[mlir.Value, int]]:
    """Add `op`, whose operand/result `number` has the tiled dim at position `axis`; yields the other values with it."""
    member = cluster.members.get(op)
    if member is None:
        if op.name in SLICES:
            member = _slice(op, axis, number == 0 and of_result is (op.name == "tensor.extract_slice"))
        elif op.name.startswith("linalg.") and op.results and op.name != "linalg.map":
            member = _member(op, number + (len(op.operands) - len(op.results) if of_result else 0), axis)
        if member is None:
            return
        cluster.members[op] = member
    elif (member.result_axes if of_result else member.axes)[number] != axis:
        raise NoMatch("an operation reads the dimension at two positions")
    for values, axes in ((op.operands, member.axes), (op.results, member.result_axes)):
        yield from ((value, there) for value, there in zip(values, axes) if there is not None)


def _slice(op: mlir.Operation, axis: int, of_part: bool) -> Member | None:
    """A static slice that keeps the whole dimension, which is at `axis` of the slice or of the tensor."""
    takes = op.name == "tensor.extract_slice"
    if len(op.operands) != (1 if takes else 2):
        return None
    whole, part = (op.operands[0], op.results[0]) if takes else (op.operands[1], op.operands[0])
    kept = kept_dims(op, part.type.shape)
    if of_part:
        axis, inner = kept[axis], axis
    elif axis in kept:
        inner = kept.index(axis)
    else:
        return None
    offsets, sizes, strides = numbers_of(op)
    if (offsets[axis], sizes[axis], strides[axis]) != (0, whole.type.shape[axis], 1):
        return None
    return Member(op, (axis,), (inner,)) if takes else Member(op, (inner, axis), (axis,))


def numbers_of(op: mlir.Operation) -> tuple[list[int], list[int], list[int]]:
    """The static offsets, sizes and strides of a slice."""
    offsets, sizes, strides = (
        list(mlir.DenseI64ArrayAttr(op.attributes[f"static_{name}"])) for name in ("offsets", "sizes", "strides")
    )
    return offsets, sizes, strides


def kept_dims(op: mlir.Operation, part: Sequence[int]) -> list[int]:
    """For each dimension of a slice the one of the tensor: some of size 1 may be dropped."""
    kept: list[int] = []
    for dim, size in enumerate(numbers_of(op)[1]):
        if len(kept) < len(part) and part[len(kept)] == size:
            kept.append(dim)
    return kept


def _member(op: mlir.Operation, number: int, axis: int) -> Member | None:
    maps = tuple(indexing_maps(op))
    expression = maps[number].results[axis]
    if not isinstance(expression, mlir.AffineDimExpr):
        return None
    loop = expression.position
    if not all(isinstance(r.type, mlir.RankedTensorType) and r.type.has_static_shape for r in op.results):
        return None
    for map_ in maps:
        for e in map_.results:
            if not isinstance(e, mlir.AffineDimExpr) and not isinstance(e, mlir.AffineConstantExpr):
                return None
        if sum(_is_dim(e, loop) for e in map_.results) > 1:
            return None
    if any(inner.name == "linalg.index" and index_of(inner) == loop for inner in operations(op)):
        return None
    axes = [next((d for d, e in enumerate(map_.results) if _is_dim(e, loop)), None) for map_ in maps]
    return Member(op, tuple(axes), tuple(axes[len(op.operands) - len(op.results) :]), maps, loop)


def index_of(op: mlir.Operation) -> int:
    """The loop whose index a `linalg.index` returns."""
    return int(mlir.IntegerAttr(op.attributes["dim"]).value)


def _set_apart(cluster: Cluster, block: mlir.Block) -> None:
    """Remove the members that need a complete result, and record all operations that do."""
    late_values: set[mlir.Value] = set()
    for op in block_ops(block):
        member = cluster.members.get(op)
        used = used_values(op)
        late = any(x in late_values for x in used)
        if member is not None:  # a tensor that a body captures must be complete
            late = late or any(cluster.made(x) for x in used[len(op.operands) :])
        if member is None:
            late = late or any(cluster.made(x) for x in used)
        elif late:
            del cluster.members[op]
        if member is None or late:
            if late:
                cluster.late.add(op)
                late_values.update(op.results)
            continue
        late_values.update(r for r in op.results if r not in cluster.carried)


def bytes_of(value: mlir.Value) -> int:
    """The size of a tensor in bytes."""
    element_type = value.type.element_type
    width = 8 if isinstance(element_type, (mlir.IndexType, mlir.ComplexType)) else max(1, element_type.width // 8)
    return int(width * math.prod(value.type.shape))


def owner_of(use: mlir.OpOperand) -> mlir.Operation:
    """The operation of a use, which must be in the block of the value."""
    op: mlir.Operation = use.owner.operation if hasattr(use.owner, "operation") else use.owner
    return op


def _is_dim(expression: mlir.AffineExpr, loop: int) -> bool:
    return isinstance(expression, mlir.AffineDimExpr) and expression.position == loop


def owner_in(use: mlir.OpOperand, block: mlir.Block) -> mlir.Operation:
    """The operation of a block that is or contains a use."""
    op = owner_of(use)
    while op.block != block:
        op = op.parent.operation
    return op
