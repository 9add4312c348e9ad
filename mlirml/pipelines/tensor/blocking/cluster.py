"""Which structured operations may go through one dimension together, block by block."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import field

from mlirml.analysis.values import used_values
from mlirml.core.dataclass import dataclass
from mlirml.ir.bindings import block_ops, defining_op, linalg, mlir, operations
from mlirml.passes import NoMatch

CONTRACTIONS = (
    "linalg.batch_matmul", "linalg.batch_matvec", "linalg.batch_vecmat", "linalg.contract", "linalg.dot",
    "linalg.matmul", "linalg.matvec", "linalg.vecmat",
)  # fmt: skip
SLICES = ("tensor.extract_slice", "tensor.insert_slice")
_STARTS = ("tensor.empty", "linalg.fill")


@dataclass(frozen=True)
class Member:
    """An operation of a cluster, and where its operands and results have the dimension that is cut into blocks.

    A structured operation has maps, and the dimension is one of its loops; a slice takes all of the dimension.
    """

    op: mlir.Operation
    places: tuple[int | None, ...]
    result_places: tuple[int | None, ...]
    maps: tuple[mlir.AffineMap, ...] = ()
    loop: int = -1

    @property
    def inputs(self) -> int:
        """How many operands are inputs; the others are inits."""
        return len(self.op.operands) - len(self.op.results)


@dataclass
class Cluster:
    """Operations along one dimension of `size`; `carried` are the tensors that have it, and where.

    `late` are operations of the block that need what only the whole dimension gives, `again` are results that others
    compute again, or read from outside.
    """

    size: int
    carried: dict[mlir.Value, int] = field(default_factory=dict)
    members: dict[mlir.Operation, Member] = field(default_factory=dict)
    late: set[mlir.Operation] = field(default_factory=set)
    again: set[mlir.Value] = field(default_factory=set)

    def made(self, value: mlir.Value) -> bool:
        """True if a member computes a value."""
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
            if r in self.carried and r not in self.again and any(owner_of(use) not in self.members for use in r.uses)
        ]

    def inner(self) -> list[mlir.Value]:
        """Tensors that need not be there as a whole."""
        outside = set(self.escaping())
        return [
            r
            for m in self.members.values()
            for r in m.op.results
            if r in self.carried and r not in outside and m.op.name not in (*_STARTS, *SLICES)
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
    cluster = reach(seed, dim)
    _set_apart(cluster, seed.owner.operation.block)
    return cluster


def reach(seed: mlir.Value, dim: int) -> Cluster:
    """The same, with the operations that need a result over the whole dimension."""
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
            todo += _join(cluster, producer, number, place, of_result=True)
        for use in value.uses:
            owner = owner_of(use)
            if owner.block == block:
                todo += _join(cluster, owner, use.operand_number, place)
    return cluster


def _join(
    cluster: Cluster, op: mlir.Operation, number: int, place: int, of_result: bool = False
) -> Iterator[tuple[mlir.Value, int]]:
    """Take an operation in, whose operand or result `number` has the dimension at `place`; gives what else has it."""
    member = cluster.members.get(op)
    if member is None:
        if op.name in SLICES:
            member = _slice(op, place, number == 0 and of_result is (op.name == "tensor.extract_slice"))
        elif op.name.startswith("linalg.") and op.results and op.name != "linalg.map":
            member = _member(op, number + (len(op.operands) - len(op.results) if of_result else 0), place)
        if member is None:
            return
        cluster.members[op] = member
    elif (member.result_places if of_result else member.places)[number] != place:
        raise NoMatch("an operation reads the dimension at two places")
    for values, places in ((op.operands, member.places), (op.results, member.result_places)):
        yield from ((value, there) for value, there in zip(values, places) if there is not None)


def _slice(op: mlir.Operation, place: int, of_part: bool) -> Member | None:
    """A static slice that takes all of the dimension, which the part or the whole has at `place`."""
    takes = op.name == "tensor.extract_slice"
    if len(op.operands) != (1 if takes else 2):
        return None
    whole, part = (op.operands[0], op.results[0]) if takes else (op.operands[1], op.operands[0])
    kept = kept_dims(op, part.type.shape)
    if of_part:
        place, inner = kept[place], place
    elif place in kept:
        inner = kept.index(place)
    else:
        return None
    offsets, sizes, strides = numbers_of(op)
    if (offsets[place], sizes[place], strides[place]) != (0, whole.type.shape[place], 1):
        return None
    return Member(op, (place,), (inner,)) if takes else Member(op, (inner, place), (place,))


def numbers_of(op: mlir.Operation) -> tuple[list[int], list[int], list[int]]:
    """The static offsets, sizes and strides of a slice."""
    offsets, sizes, strides = (
        list(mlir.DenseI64ArrayAttr(op.attributes[f"static_{name}"])) for name in ("offsets", "sizes", "strides")
    )
    return offsets, sizes, strides


def kept_dims(op: mlir.Operation, part: Sequence[int]) -> list[int]:
    """For each dimension of a slice the one of the tensor: some of size 1 may be left out."""
    kept: list[int] = []
    for dim, size in enumerate(numbers_of(op)[1]):
        if len(kept) < len(part) and part[len(kept)] == size:
            kept.append(dim)
    return kept


def _member(op: mlir.Operation, number: int, place: int) -> Member | None:
    maps = tuple(m.value for m in linalg.get_indexing_maps(op))
    if "linalg.memoized_indexing_maps" in op.attributes:
        del op.attributes["linalg.memoized_indexing_maps"]
    expression = maps[number].results[place]
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
    places = [next((d for d, e in enumerate(map_.results) if _is_dim(e, loop)), None) for map_ in maps]
    return Member(op, tuple(places), tuple(places[len(op.operands) - len(op.results) :]), maps, loop)


def index_of(op: mlir.Operation) -> int:
    """Which loop a `linalg.index` is about."""
    return int(mlir.IntegerAttr(op.attributes["dim"]).value)


def _set_apart(cluster: Cluster, block: mlir.Block) -> None:
    """Take out the members that need a result over the whole dimension, and note all operations that do."""
    late_values: set[mlir.Value] = set()
    for op in block_ops(block):
        member = cluster.members.get(op)
        used = used_values(op)
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


def bytes_of(value: mlir.Value) -> int:
    """What a tensor takes in memory."""
    kind = value.type.element_type
    width = 8 if isinstance(kind, (mlir.IndexType, mlir.ComplexType)) else max(1, kind.width // 8)
    return int(width * math.prod(value.type.shape))


def owner_of(use: mlir.OpOperand) -> mlir.Operation:
    """The operation of a use that stands in the block of the value."""
    op: mlir.Operation = use.owner.operation if hasattr(use.owner, "operation") else use.owner
    return op


def _is_dim(expression: mlir.AffineExpr, loop: int) -> bool:
    return isinstance(expression, mlir.AffineDimExpr) and expression.position == loop


def owner_in(use: mlir.OpOperand, block: mlir.Block) -> mlir.Operation:
    """The operation of a block that a use stands in."""
    op = owner_of(use)
    while op.block != block:
        op = op.parent.operation
    return op
