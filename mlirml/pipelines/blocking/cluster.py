"""Which structured operations may go through one dimension together, block by block."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import field

from mlirml.dataclass import dataclass
from mlirml.ir import block_ops, defining_op, linalg, mlir, operations
from mlirml.passes import NoMatch
from mlirml.pipelines.fusion.nodes import loop_sizes

CONTRACTIONS = (
    "linalg.batch_matmul", "linalg.batch_matvec", "linalg.batch_vecmat", "linalg.contract", "linalg.dot",
    "linalg.matmul", "linalg.matvec", "linalg.vecmat",
)  # fmt: skip
_STARTS = ("tensor.empty", "linalg.fill")


@dataclass(frozen=True)
class Member:
    """A structured operation of a cluster: its maps, and which of its loops is the one that is cut into blocks."""

    op: mlir.Operation
    maps: tuple[mlir.AffineMap, ...]
    loop: int

    @property
    def inputs(self) -> int:
        """How many operands are inputs; the others are inits."""
        return len(self.op.operands) - len(self.op.results)

    def place(self, number: int) -> int | None:
        """The dimension of an operand that the loop goes through."""
        found = [d for d, e in enumerate(self.maps[number].results) if _is_dim(e, self.loop)]
        return found[0] if found else None


@dataclass
class Cluster:
    """Operations along one dimension of `size`; `carried` are the tensors that have it, and where.

    `late` are operations of the block that need what only the whole dimension gives.
    """

    size: int
    carried: dict[mlir.Value, int] = field(default_factory=dict)
    members: dict[mlir.Operation, Member] = field(default_factory=dict)
    late: set[mlir.Operation] = field(default_factory=set)

    def made(self, value: mlir.Value) -> bool:
        """Whether a member computes a value."""
        op = defining_op(value)
        return op is not None and op in self.members

    def reduced(self) -> list[mlir.Value]:
        """The results that do not have the dimension."""
        return [r for m in self.members.values() for r in m.op.results if r not in self.carried]

    def escaping(self) -> list[mlir.Value]:
        """The results that have it and are used by others."""
        return [
            r
            for m in self.members.values()
            for r in m.op.results
            if r in self.carried and any(_owner(use) not in self.members for use in r.uses)
        ]

    def inner(self) -> list[mlir.Value]:
        """Tensors that need not be there as a whole."""
        outside = set(self.escaping())
        return [
            r
            for m in self.members.values()
            for r in m.op.results
            if r in self.carried and r not in outside and m.op.name not in _STARTS
        ]

    def still(self) -> list[mlir.Value]:
        """Tensors without the dimension that members read, or add up in."""
        found: dict[mlir.Value, None] = {}
        for member in self.members.values():
            found.update(
                (x, None)
                for x in member.op.operands
                if x not in self.carried and isinstance(x.type, mlir.RankedTensorType)
            )
        return list(found)


def grow(seed: mlir.Value, dim: int) -> Cluster:
    """The operations of the block of `seed` that go through dimension `dim` of it with its producer.

    Raises `NoMatch` where a tensor has the dimension twice.
    """
    cluster = Cluster(seed.type.shape[dim])
    block = seed.owner.operation.block
    todo = [(seed, dim)]
    while todo:
        value, place = todo.pop()
        known = cluster.carried.get(value)
        if known is not None:
            if known != place:
                raise NoMatch("a tensor has the dimension twice")
            continue
        cluster.carried[value] = place
        producer = defining_op(value)
        if producer is not None and producer.block == block:
            number = list(producer.results).index(value)
            todo += _join(cluster, producer, len(producer.operands) - len(producer.results) + number, place)
        for use in value.uses:
            owner = _owner(use)
            if owner.block == block:
                todo += _join(cluster, owner, use.operand_number, place)
    _set_apart(cluster, block)
    return cluster


def _join(cluster: Cluster, op: mlir.Operation, number: int, place: int) -> Iterator[tuple[mlir.Value, int]]:
    """Take an operation in, whose operand `number` has the dimension at `place`; gives what else has it."""
    if not op.name.startswith("linalg.") or not op.results or op.name == "linalg.map":
        return
    member = cluster.members.get(op)
    if member is None:
        member = _member(op, number, place)
        if member is None:
            return
        cluster.members[op] = member
    elif member.place(number) != place:
        raise NoMatch("an operation reads the dimension at two places")
    first = member.inputs
    for operand, value in enumerate(op.operands):
        there = member.place(operand)
        if there is not None:
            yield value, there
            if operand >= first:
                yield op.results[operand - first], there


def _member(op: mlir.Operation, number: int, place: int) -> Member | None:
    maps = tuple(m.value for m in linalg.get_indexing_maps(op))
    if "linalg.memoized_indexing_maps" in op.attributes:
        del op.attributes["linalg.memoized_indexing_maps"]
    expression = maps[number].results[place]
    if not isinstance(expression, mlir.AffineDimExpr):
        return None
    member = Member(op, maps, expression.position)
    if not all(isinstance(r.type, mlir.RankedTensorType) and r.type.has_static_shape for r in op.results):
        return None
    for map_ in maps:
        for e in map_.results:
            if not isinstance(e, mlir.AffineDimExpr) and not isinstance(e, mlir.AffineConstantExpr):
                return None
        if sum(_is_dim(e, member.loop) for e in map_.results) > 1:
            return None
    if any(inner.name == "linalg.index" for inner in operations(op)):
        return None
    return member


def _set_apart(cluster: Cluster, block: mlir.Block) -> None:
    """Take out the members that need a result over the whole dimension, and note all operations that do."""
    late_values: set[mlir.Value] = set()
    for op in block_ops(block):
        member = cluster.members.get(op)
        used = [x for inner in operations(op) for x in inner.operands]
        late = any(x in late_values for x in used)
        if member is not None:  # what a body reads at any place of is needed whole
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


def sizes_of(member: Member) -> tuple[int, ...]:
    """The extents of the loops of a member."""
    return loop_sizes(list(member.op.operands), list(member.maps), member.maps[0].n_dims)


def bytes_of(value: mlir.Value) -> int:
    """What a tensor takes in memory."""
    kind = value.type.element_type
    width = 8 if isinstance(kind, (mlir.IndexType, mlir.ComplexType)) else max(1, kind.width // 8)
    return int(width * math.prod(value.type.shape))


def _owner(use: mlir.OpOperand) -> mlir.Operation:
    """The operation of a use that stands in the block of the value."""
    op: mlir.Operation = use.owner.operation if hasattr(use.owner, "operation") else use.owner
    return op


def _is_dim(expression: mlir.AffineExpr, loop: int) -> bool:
    return isinstance(expression, mlir.AffineDimExpr) and expression.position == loop
