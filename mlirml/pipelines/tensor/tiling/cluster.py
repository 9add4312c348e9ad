"""Clusters: operations of a block that are tiled together along one dimension, and the loop over their tiles."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field

from mlirml.analysis.dimensions import SLICES, Member, Part, Parts, follow
from mlirml.analysis.traits import RESHAPES
from mlirml.analysis.values import used_values
from mlirml.core.dataclass import dataclass
from mlirml.ir import emit
from mlirml.ir.bindings import block_ops, defining_op, mlir
from mlirml.passes import NoMatch
from mlirml.pipelines.tensor.tiling.tile import Tile

_NO_RESULTS = ("tensor.empty", "linalg.fill", *SLICES, *RESHAPES)


@dataclass
class Cluster:
    """Operations along one dimension of `size`, and the `parts` of the tensors that have it.

    `late` are operations of the block that depend on complete results, `recomputed` are results that others recompute,
    or read from outside.
    """

    size: int
    parts: dict[mlir.Value, Parts] = field(default_factory=dict)
    members: dict[mlir.Operation, Member] = field(default_factory=dict)
    late: set[mlir.Operation] = field(default_factory=set)
    recomputed: set[mlir.Value] = field(default_factory=set)

    def made(self, value: mlir.Value) -> bool:
        """True if a member computes a value."""
        op = defining_op(value)
        return op is not None and op in self.members

    def reduced(self) -> list[mlir.Value]:
        """The results without the dimension."""
        return [r for op in self.members for r in op.results if r not in self.parts]

    def escaping(self) -> list[mlir.Value]:
        """The results with the dimension that have users outside of the cluster."""
        kept = (r for op in self.members for r in op.results if r in self.parts and r not in self.recomputed)
        return [r for r in kept if any(use.owner.operation not in self.members for use in r.uses)]

    def inner(self) -> list[mlir.Value]:
        """The tensors of which only a tile needs to exist at a time."""
        outside = {*self.escaping(), *self.reduced()}
        return [r for op in self.members if op.name not in _NO_RESULTS for r in op.results if r not in outside]

    def still(self) -> list[mlir.Value]:
        """The tensors without the dimension that members read, or accumulate into."""
        read = dict.fromkeys(value for op in self.members for value in op.operands if value not in self.parts)
        return [value for value in read if isinstance(value.type, mlir.RankedTensorType)]

    def ordered(self) -> list[Member]:
        """The members in program order."""
        block = next(iter(self.members)).block
        return [self.members[op] for op in block_ops(block) if op in self.members]

    def init(self, value: mlir.Value) -> mlir.Value:
        """The init of a result of a structured operation."""
        op = value.owner.operation
        return op.operands[self.members[op].inputs + list(op.results).index(value)]


def grow(seed: mlir.Value, dim: int) -> Cluster:
    """The operations of the block of `seed` that can be tiled along dimension `dim` of it together with its producer.

    Raises `NoMatch` if a tensor has the dimension twice.
    """
    cluster = reach(seed, dim)
    _set_apart(cluster, seed.owner.operation.block)
    return cluster


def reach(seed: mlir.Value, dim: int) -> Cluster:
    """The same cluster, including the operations that need a complete result."""
    shape = seed.type.shape
    cluster, block = Cluster(shape[dim]), seed.owner.operation.block
    todo: list[tuple[mlir.Value, Parts]] = [
        (seed, tuple(Part(0, shape[d]) if d == dim else None for d in range(len(shape))))
    ]
    while todo:
        value, parts = todo.pop()
        known = cluster.parts.get(value)
        if known is not None:
            if known != parts:
                raise NoMatch("a tensor has the dimension twice")
            continue
        cluster.parts[value] = parts
        producer = defining_op(value)
        if producer is not None and producer.block == block:
            position = len(producer.operands) + list(producer.results).index(value)
            todo += _join(cluster, producer, position, parts)
        for use in value.uses:
            owner = use.owner.operation
            if owner.block == block:
                todo += _join(cluster, owner, use.operand_number, parts)
    return cluster


def _join(cluster: Cluster, op: mlir.Operation, position: int, parts: Parts) -> Iterator[tuple[mlir.Value, Parts]]:
    """Add an operation whose operand or result at `position` has the dimension; yields the other values with it."""
    member = cluster.members.get(op)
    if member is None:
        try:
            member = follow(op, {position: parts})
        except NoMatch:
            return
        cluster.members[op] = member
    elif member.parts[position] != parts:
        raise NoMatch("an operation reads the dimension at two positions")
    yield from (item for item in zip([*op.operands, *op.results], member.parts, strict=True) if any(item[1]))


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
        late_values.update(r for r in op.results if r not in cluster.parts)


def tile_cluster(cluster: Cluster, length: int, is_last: bool = True, rest_apart: bool = False) -> list[mlir.Operation]:
    """Replace the members by a loop over tiles, followed by the remainder after the last full tile.

    The remainder is a loop, too, if `rest_apart`.
    """
    members, reduced, escaping = cluster.ordered(), cluster.reduced(), cluster.escaping()
    last = members[-1].op
    after = block_ops(last.block)[block_ops(last.block).index(last) + 1]
    written = {value: init for value in escaping if (init := _written(cluster, value)) is not None}

    def build(start: mlir.Value | int, length: int, carried: list[mlir.Value]) -> list[mlir.Value]:
        sums, wholes = carried[: len(reduced)], dict(zip(escaping, carried[len(reduced) :], strict=True))
        into = {written[value]: whole for value, whole in wholes.items() if value in written}
        tile = Tile([cluster.size], [length], [start], is_last, escaping, dict(zip(reduced, sums)), into)
        for member in members:
            tile.add(member)
        stored = [tile.insert(value, cluster.parts[value], whole) for value, whole in wholes.items()]
        return [*(tile.values[value, (None,) * value.type.rank] for value in reduced), *stored]

    full = cluster.size - cluster.size % length
    with members[0].op.location, mlir.InsertionPoint(after):
        inits = [cluster.init(value) for value in reduced]
        inits += [written.get(value) or emit.empty(value.type) for value in escaping]
        zero, end, step = emit.index(0), emit.index(full), emit.index(length)
        results = emit.for_loop(zero, end, step, lambda start, carried: build(start, length, carried), inits)
        loops = [results[0].owner.operation]
        if full < cluster.size and rest_apart:
            one, rest = emit.index(1), cluster.size - full
            results = emit.for_loop(emit.index(0), one, emit.index(1), lambda _, c: build(full, rest, c), results)
            loops.append(results[0].owner.operation)
        elif full < cluster.size:
            results = build(full, cluster.size - full, results)
    for op in block_ops(last.block)[: block_ops(last.block).index(last)]:
        if op in cluster.late:  # they depend on results of the loop
            op.move_before(after)
    for old, new in zip([*reduced, *escaping], results, strict=True):
        for use in list(old.uses):
            if use.owner.operation not in cluster.members:
                use.owner.operation.operands[use.operand_number] = new
    for member in reversed(members):
        if not cluster.recomputed.intersection(member.op.results):
            member.op.erase()
    return loops


def _written(cluster: Cluster, value: mlir.Value) -> mlir.Value | None:
    """The tensor from outside that only a member uses, as the init of its result."""
    if value.owner.operation.name in (*SLICES, *RESHAPES):
        return None
    init = cluster.init(value)
    outside = init in cluster.parts and not cluster.made(init)
    source = defining_op(init)
    if (
        not outside
        or (source is not None and source.name in ("tensor.empty", "linalg.fill"))
        or len(list(init.uses)) != 1
    ):
        return None
    return init
