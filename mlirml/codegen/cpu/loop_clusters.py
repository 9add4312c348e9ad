"""Convolutions and chains of loops as programs of their own, which a tuner measures.

A convolution comes with its padding, its bias and the elementwise operation after it. A chain is what elementwise
operations and reductions compute of each other directly, as the rows of a softmax, without those that the kernel of a
contraction or a convolution includes. Equal programs have equal names (`contract/cluster.py`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

from mlirml.analysis.cost import bytes_of
from mlirml.analysis.structured import indexing_maps, is_parallel, reductions_of, sizes_of
from mlirml.codegen.cpu.contract.cluster import is_elementwise, members_of, program_text, reads_arguments_only
from mlirml.codegen.cpu.contract.problem import CONTRACTIONS
from mlirml.core.dataclass import dataclass
from mlirml.ir.bindings import block_ops, defining_op, mlir, operations
from mlirml.passes.presence import ANY_WINDOW

LEAST_POINTS = 1 << 15
"""Chains with fewer points of iteration spaces take less than a call of their program does."""
LEAST_STREAM = 1 << 20
"""The bytes of a result from which it may be worth storing it past the cache."""


@dataclass(frozen=True)
class Cluster:
    """Operations of one block in their order, and the text of their program."""

    members: tuple[mlir.Operation, ...]
    text: str

    @property
    def points(self) -> int:
        """The points of all iteration spaces."""
        loops = (member for member in self.members if member.name.startswith("linalg."))
        return sum(math.prod(sizes_of(member)) for member in loops)


def window_clusters(module: mlir.Operation) -> list[Cluster]:
    """The convolutions and poolings of a module."""
    found = [_with_text(_window_members(op)) for op in operations(module) if is_window(op)]
    return [cluster for cluster in found if cluster is not None]


def chain_clusters(module: mlir.Operation) -> list[Cluster]:
    """The chains of a module that are worth tuning."""
    taken = {result for op in operations(module) if is_window(op) for m in _window_members(op) for result in m.results}
    contractions = (op for op in operations(module) if op.name in CONTRACTIONS)
    taken |= {result for op in contractions for member in members_of(op) for result in member.results}
    blocks = [block for op in operations(module) for region in op.regions for block in region.blocks]
    found = [_with_text(chain) for block in blocks for chain in _chains(block, taken)]
    return [cluster for cluster in found if cluster is not None and cluster.points >= LEAST_POINTS]


def is_window(op: mlir.Operation) -> bool:
    """True for a convolution or pooling."""
    if op.name != "linalg.generic":
        return bool(op.name.startswith(ANY_WINDOW))
    maps = indexing_maps(op)
    windows = [e for e in maps[0].results if isinstance(e, mlir.AffineAddExpr)]
    return len(op.operands) == 3 and bool(windows)


def has_row_sums(cluster: Cluster) -> bool:
    """True if several operations, one of them a reduction, may share a loop over rows."""
    return len(cluster.members) > 1 and not all(map(is_parallel, cluster.members))


def has_column_sums(cluster: Cluster) -> bool:
    """True if a reduction adds up rows: its innermost loop is parallel."""
    return any(any(reduced := reductions_of(member)) and not reduced[-1] for member in cluster.members)


def has_large_results(cluster: Cluster) -> bool:
    """True if a result may be worth storing past the cache."""
    return any(bytes_of(value) >= LEAST_STREAM for value in returned_by(cluster.members))


def returned_by(members: Iterable[mlir.Operation]) -> list[mlir.Value]:
    """The results that other operations use."""
    own = list(members)
    results = [result for member in own for result in member.results]
    return [value for value in results if any(use.owner.operation not in own for use in value.uses)]


def _with_text(members: list[mlir.Operation]) -> Cluster | None:
    text = program_text(members, returned_by(members))
    return Cluster(tuple(members), text) if text is not None else None


def _window_members(op: mlir.Operation) -> list[mlir.Operation]:
    producers = [owner for value in op.operands if (owner := defining_op(value)) is not None and _is_part(owner, op)]
    uses = [use.owner.operation for result in op.results for use in result.uses]
    consumers = [use for use in uses if len(uses) == 1 and use.block == op.block and is_elementwise(use)]
    ops = block_ops(op.block)
    return sorted([*producers, op, *consumers], key=ops.index)


def _is_part(owner: mlir.Operation, op: mlir.Operation) -> bool:
    """True for the padding or the bias of a convolution."""
    if owner.block != op.block or sum(1 for result in owner.results for _ in result.uses) != 1:
        return False
    return is_elementwise(owner) or (owner.name == "tensor.pad" and len(owner.operands) == 1)


def _chains(block: mlir.Block, taken: set[mlir.Value]) -> Iterator[list[mlir.Operation]]:
    """The operations of a block that read each other's results, directly or through others of them."""
    chains: list[list[mlir.Operation]] = []
    chain_of: dict[mlir.Value, list[mlir.Operation]] = {}
    for op in block_ops(block):
        if op.name != "linalg.generic" or not op.results or is_window(op) or op.results[0] in taken:
            continue
        if not reads_arguments_only(op):
            continue
        joined = [op]
        for value in op.operands:
            other = chain_of.get(value)
            if other is not None and other is not joined:
                joined = other + joined if joined == [op] else other + [m for m in joined if m not in other]
                chains = [chain for chain in chains if chain is not other]
                for member in joined:
                    chain_of |= dict.fromkeys(member.results, joined)
        chain_of |= dict.fromkeys(op.results, joined)
        chains = [chain for chain in chains if chain is not joined] + [joined]
    ops = block_ops(block)
    for chain in chains:
        yield sorted(chain, key=ops.index)
