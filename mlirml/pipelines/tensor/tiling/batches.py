"""Loops over the batch of batched contractions and the operations between them, a matrix at a time.

Before, in a loop over blocks of the batch:
    %c = linalg.generic ... -> tensor<25x64x40xf64>
    %q = linalg.contract ... ins(%l, %c) -> tensor<25x64x40xf64>
    %s = linalg.generic ... ins(%q) outs(%zero) -> tensor<40xf64>           // a sum over the batch
    %g = linalg.generic ... ins(%c, %q, %s) -> tensor<25x64x40xf64>
    %d = linalg.contract ... ins(%g, %c) outs(%sum) -> tensor<25x64x64xf64>
After:
    %q, %s = scf.for %k = 0 to 25 step 1 {
      %c = linalg.generic ... -> tensor<1x64x40xf64>
      ...
    }
    %d = scf.for %k = 0 to 25 step 1 iter_args(%t = %sum) {
      %c = linalg.generic ... -> tensor<1x64x40xf64>                        // cheap, and recomputed
      ...
    }

A sum over the batch is available after the loop: operations that depend on it are on the next level.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field

from mlirml.analysis.contractions import CONTRACTIONS
from mlirml.analysis.cost import bytes_of, is_costly
from mlirml.analysis.structured import indexing_maps
from mlirml.analysis.values import ancestor_in, uses_any, walk
from mlirml.core.dataclass import dataclass
from mlirml.ir.bindings import block_ops, defining_op, mlir, operations
from mlirml.passes import NoMatch
from mlirml.pipelines.tensor.tiling.cluster import Cluster, reach, tile_cluster

_CHEAP = 8
"""Bodies of at most this many operations are recomputed rather than their results stored."""


@dataclass
class Batch:
    """The operations with the batch dimension, and the level of each operation of their block.

    `recomputed` are the levels that read a result that is cheap to recompute from the inputs of the block.
    """

    all: Cluster
    levels: dict[mlir.Operation, int] = field(default_factory=dict)
    recomputed: dict[mlir.Operation, set[int]] = field(default_factory=dict)

    def levels_of(self, op: mlir.Operation) -> set[int]:
        """The levels on which an operation is computed."""
        return self.recomputed.get(op) or {self.levels[op]}

    def readers(self, value: mlir.Value) -> set[int]:
        """The levels on which a value is read."""
        block = value.owner.operation.block
        return {level for use in value.uses for level in self.levels_of(ancestor_in(use.owner.operation, block))}

    def kept(self) -> list[mlir.Value]:
        """The values that one level computes and another one reads."""
        return [
            result
            for op in self.all.members
            if op not in self.recomputed
            for result in op.results
            if result in self.all.parts and self.readers(result) - {self.levels[op]}
        ]

    def first(self, block: mlir.Block) -> Cluster:
        """The operations of the first level that has contractions."""
        members = self.all.members
        level = min(self.levels[op] for op in members if op.name in CONTRACTIONS)
        own = {op: member for op, member in members.items() if level in self.levels_of(op)}
        recomputed = {r for op in own if self.recomputed.get(op, {level}) != {level} for r in op.results}
        cluster = Cluster(self.all.size, self.all.parts, own, recomputed=recomputed)
        values = {result for op in own for result in op.results if result not in recomputed}
        for op in block_ops(block):
            if op not in own and uses_any(op, values):
                cluster.late.add(op)
                values.update(op.results)
        return cluster


def find_batch(block: mlir.Block, among: Cluster | None = None) -> Batch:
    """The batch of the contractions of a block, or of those of a cluster; raises `NoMatch` if there is none."""
    contractions = [op for op in block_ops(block) if op.name in CONTRACTIONS and (among is None or op in among.members)]
    for value, place in _batch_dims(contractions[0]) if contractions else ():
        found = reach(value, place)
        if among is not None:
            found.members = {op: member for op, member in found.members.items() if op in among.members}
        if found.size > 1 and all(op in found.members for op in contractions):
            batch = Batch(found)
            _level(batch, block)
            return batch
    raise NoMatch("no batch that all contractions have")


def _batch_dims(op: mlir.Operation) -> Iterator[tuple[mlir.Value, int]]:
    maps = indexing_maps(op)
    for place, expression in enumerate(maps[-1].results):
        if all(expression in list(map_.results) for map_ in maps):
            yield op.results[0], place


def _level(batch: Batch, block: mlir.Block) -> None:
    """Assign levels: operations that need a sum over the batch are a level higher than the operations of the sum."""
    members, parts = batch.all.members, batch.all.parts
    ops = block_ops(block)
    for op in ops:
        level = 0
        for inner in operations(op):
            for value in inner.operands:
                source = defining_op(value)
                if source is None or source not in batch.levels:
                    continue
                later = source in members and (op not in members or value not in parts or inner != op)
                level = max(level, batch.levels[source] + later)
        batch.levels[op] = level
    for op in reversed(ops):
        if op in members and _is_again(batch, op):
            levels = {level for result in op.results for level in batch.readers(result)}
            if levels:
                batch.recomputed[op] = levels
                batch.levels[op] = min(levels)


def _is_again(batch: Batch, op: mlir.Operation) -> bool:
    """True if an operation is cheap, and reads results of other members only if these are cheap, too."""

    def sources(each: mlir.Operation) -> list[mlir.Operation]:
        if each.name == "linalg.fill":
            return []
        found = map(defining_op, each.operands)
        return [source for source in found if source is not None and source in batch.all.members]

    return all(_may_be_again(batch, each) for each in walk(op, sources))


def _may_be_again(batch: Batch, op: mlir.Operation) -> bool:
    """True if an operation is cheap, apart from what it reads."""
    if op.name == "linalg.fill":
        return True
    if op.name != "linalg.generic" or batch.levels[op] or any(r not in batch.all.parts for r in op.results):
        return False
    body = block_ops(op.regions[0].blocks[0])
    if len(body) > _CHEAP or any(inner.name.startswith("tensor.") or is_costly(inner) for inner in body):
        return False
    return "reduction" not in str(op.attributes["iterator_types"])


def kept_bytes(block: mlir.Block, cluster: Cluster) -> int:
    """The bytes that a cluster stores if computed a matrix at a time; raises `NoMatch` without a batch."""
    return sum(bytes_of(value) for value in find_batch(block, cluster).kept() if value in cluster.parts)


def cut_batches(block: mlir.Block) -> None:
    """Replace the batched contractions of a block, if there are any, by loops over the batch."""
    while True:
        try:
            batch = find_batch(block)
        except NoMatch:
            return
        tile_cluster(batch.first(block), 1, is_last=False)
