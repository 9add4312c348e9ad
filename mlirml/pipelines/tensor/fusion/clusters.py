"""Decide which structured operations are fused: clusters that become one loop nest."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from copy import copy
from dataclasses import field

from mlirml.analysis.values import used_values
from mlirml.core.dataclass import dataclass
from mlirml.ir.bindings import block_ops, mlir
from mlirml.passes import NoMatch
from mlirml.pipelines.bufferize.out_parameters import computes_tensor, slice_of
from mlirml.pipelines.tensor.fusion.nodes import (
    Clones,
    Input,
    MapCache,
    Node,
    Out,
    is_permutation,
    match_node,
    may_fuse,
    splat,
    through,
)
from mlirml.pipelines.tensor.fusion.prologues import full_input, scales_a_matrix

_SEARCH = 512
"""The number of operations that a search for a path may visit; beyond, the operations are not fused."""
_WITH_REDUCTIONS = 192
"""The most operations of a cluster with reductions, whose accumulators stay in registers."""
_NEAR = 64
"""The maximum distance, in operations, of a sibling."""


@dataclass(frozen=True)
class Choices:
    """Differences from the greedy choices: the positions of producers that are stored although they are cheap, of those
    that are recomputed although they are not, with what they are computed from, and of members of clusters that count
    their memory streams as they grow.
    """

    stored: frozenset[int] = frozenset()
    recomputed: frozenset[int] = frozenset()
    counted: frozenset[int] = frozenset()


@dataclass(eq=False)
class Cluster:
    """Nodes that share one iteration space. `loop_maps[n]` maps the loops of member `n` to those of the cluster."""

    sizes: tuple[int, ...]
    members: list[Node] = field(default_factory=list)
    loop_maps: dict[Node, tuple[int, ...]] = field(default_factory=dict)
    results: set[mlir.Value] = field(default_factory=set)
    reads: set[mlir.Value] = field(default_factory=set)
    shared: set[mlir.Value] = field(default_factory=set)
    reduced: frozenset[int] | None = None
    closed: bool = False
    counted: bool = False
    ops: int = 0
    first: int = 1 << 60
    last: int = -1
    outside: list[mlir.Value] | None = None

    def put(self, node: Node, loop_map: tuple[int, ...]) -> None:
        """Add a member."""
        self.members.append(node)
        self.loop_maps[node] = loop_map
        self.results.update(out.result for out in node.outs)
        self.reads.update(item.value for item in node.inputs)
        self.shared.update(out.result for out in node.outs if is_shared(out.result))
        self.ops += len(node.body)
        self.first, self.last = min(self.first, node.position), max(self.last, node.position)
        self.outside = None
        if not node.is_elementwise:
            self.reduced = frozenset(loop_map[d] for d in node.reduced)
        self.closed |= node.is_search

    def ends_in(self, node: Node) -> bool:
        """True if `node` is the only user outside of the results of the members."""
        return not self.shared and self.results - self.reads <= {item.value for item in node.inputs}


def is_shared(value: mlir.Value) -> bool:
    """True if a value has more than one use; a single use is assumed to be in its cluster."""
    uses = iter(value.uses)
    next(uses, None)
    return next(uses, None) is not None


def stream_count(one: Cluster, reads: set[mlir.Value], shared: set[mlir.Value]) -> int:
    """An upper bound for the memory streams of a cluster with additional members that read and share these values."""
    return len((one.reads | reads) - one.results) + len(one.shared | shared)


def match_nodes(ops: Sequence[mlir.Operation]) -> Iterator[Node]:
    """The nodes of the operations that can be fused."""
    maps = MapCache()
    for number, op in enumerate(ops):
        if op.name.startswith("linalg."):
            with suppress(NoMatch):
                yield match_node(op, number, maps)


class Graph:
    """The operations of one block, and the clusters of its structured ones."""

    def __init__(self, block: mlir.Block, max_ops: int, max_operands: int, *, prologues: bool = False) -> None:
        self.ops = block_ops(block)
        self.max_ops, self.max_operands, self.prologues = max_ops, max_operands, prologues
        # Operations cannot be keys: their hash changes when they are modified.
        self.defined = {result: number for number, op in enumerate(self.ops) for result in op.results}
        self._operands: dict[int, list[mlir.Value]] = {}
        self.checked, self.stored = self.positions_of_checks_and_stores(block)
        self.partition(match_nodes(self.ops), Choices())

    def partition(self, nodes: Iterable[Node], choices: Choices) -> None:
        """Put nodes into clusters, each in turn where it fits, but for the choices."""
        self.choices = choices
        self.nodes: dict[int, Node] = {}
        self.producer: dict[mlir.Value, tuple[Node, Out]] = {}
        self.cluster: dict[Node, Cluster] = {}
        self._readers: dict[mlir.Value, list[Node]] = {}
        for node in nodes:
            self.add(node)

    def with_choices(self, choices: Choices) -> Graph:
        """The graph of the same operations with other choices."""
        other = copy(self)
        other.partition([node.unfused(node.position in choices.recomputed) for node in self.nodes.values()], choices)
        return other

    def positions_of_checks_and_stores(self, block: mlir.Block) -> tuple[set[int], set[int]]:
        """The positions of operations that checked values depend on, and of those that stores into arguments depend on.

        Both are empty if an operation is in both, or if all results are new arrays. If the checks come first, the
        stores are made in the memory of the arguments; fused with them, in a new array, which is copied.
        """
        owner = block.owner.operation
        checks = [op for op in self.ops if op.name == "cf.assert"]
        if not checks or "mlirml.writebacks" not in owner.attributes:
            return set(), set()
        written = [self.ops[-1].operands[number] for number in list(owner.attributes["mlirml.writebacks"])[::2]]
        slices = slice_of([op.operands[0] for op in checks]), slice_of(written)
        checked, stored = ({op for op in found if computes_tensor(op)} for found in slices)
        if checked & stored:
            return set(), set()
        return self.positions_of(checked), self.positions_of(stored)

    def positions_of(self, ops: Iterable[mlir.Operation]) -> set[int]:
        return {self.defined[op.results[0]] for op in ops}

    def mixes(self, *members: Node) -> bool:
        """True if some of these nodes compute checked values and others stored values."""
        return any(x.position in self.checked for x in members) and any(x.position in self.stored for x in members)

    def add(self, node: Node) -> None:
        """Add a node to a cluster."""
        self.nodes[node.position] = node
        self.count_inlined(node)
        self.join(node)
        for item in node.inputs:
            self._readers.setdefault(item.value, []).append(node)
        if node.is_elementwise:
            for out in node.outs:
                if is_permutation(out.map, node.rank):
                    self.producer[out.result] = (node, out)

    def count_inlined(self, node: Node) -> None:
        """Choose the producers that are recomputed inside `node`, and compute the cost of the node with them."""
        for number, item in enumerate(node.inputs):
            found = self.producer.get(item.value)
            if splat(item.value) is not None:
                node.inlined.add(number)
            elif found is not None and self.is_cheap(found[0]) and not self.is_full(node, item, found):
                if self.starts_a_window(node):
                    continue
                self.inline(node, number)

    def inline(self, node: Node, number: int) -> None:
        """Recompute the producer of an input inside `node`."""
        producer = self.producer[node.inputs[number].value][0]
        node.inlined.add(number)
        producer.clones += 1
        if node in self.cluster:
            self.cluster[node].outside = None
        if node.cost is not None:
            node.cost = None if producer.cost is None else node.cost + producer.cost

    def is_cheap(self, producer: Node) -> bool:
        """True if a producer is recomputed rather than stored, where it is in no cluster with its reader."""
        if producer.position in self.choices.stored:
            return False
        return producer.position in self.choices.recomputed or producer.is_cheap()

    def needs_no_more(self, producer: Node) -> bool:
        """True if recomputing a producer reads no more tensors from memory than its result, or takes less anyway."""
        if producer.position in self.choices.recomputed:
            return True
        return sum(1 for item in producer.inputs if item.value in self.producer) <= 1

    def stays(self, value: mlir.Value) -> bool:
        """True if a value has to be in memory, since an operation that is never fused reads it."""
        return any(not may_fuse(use.owner.operation) for use in value.uses)

    def starts_a_window(self, node: Node) -> bool:
        """True if a node only repeats elements as the init of an operation that is never fused, a convolution: its
        kernel reads what is repeated.
        """
        uses = [use for out in node.outs for use in out.result.uses]
        last = [use.operand_number == len(use.owner.operands) - 1 for use in uses]
        return not node.body and bool(uses) and all(last) and not any(may_fuse(use.owner.operation) for use in uses)

    def is_full(self, node: Node, item: Input, found: tuple[Node, Out]) -> bool:
        """True if a node reads each element of its producer once."""
        return is_permutation(item.map, node.rank) and found[0].rank == node.rank

    def join(self, node: Node) -> None:
        """Join the clusters of producers, or of a node that reads the same tensor; else start a new cluster."""
        if self.prologues and self.is_prologue(node):
            self.start(node)
            self.cluster[node].closed = True
            return
        for number, item in enumerate(node.inputs):
            found = self.producer.get(item.value)
            if found is None or number in node.inlined or not self.is_full(node, item, found):
                continue
            producer, out = found
            target = self.cluster[producer]
            mine = self.cluster.get(node)
            if mine is target:
                continue
            loop_map = self.consumer_loop_map(node, item, target.loop_maps[producer], out)
            if mine is None:
                joined = self.try_join(node, loop_map, target)
            else:
                joined = self.try_merge(mine, target, dict(zip(mine.loop_maps[node], loop_map, strict=True)))
            if not joined and self.is_cheap(producer) and self.needs_no_more(producer) and not self.stays(item.value):
                self.inline(node, number)
        if node not in self.cluster and not self.join_sibling(node):
            self.start(node)

    def is_prologue(self, node: Node) -> bool:
        """True if a matrix-vector product can compute a node as a prologue, of a matrix that is in memory anyway."""
        source = full_input(node)
        return source is not None and self.stays(source) and scales_a_matrix(node)

    def start(self, node: Node) -> None:
        """Start a cluster of one node."""
        cluster = Cluster(node.sizes)
        self.put(node, tuple(range(node.rank)), cluster)

    def put(self, node: Node, loop_map: tuple[int, ...], cluster: Cluster) -> None:
        cluster.put(node, loop_map)
        cluster.counted |= self.counts(node)
        self.cluster[node] = cluster

    def counts(self, node: Node) -> bool:
        """True if clusters with this member count their memory streams as they grow."""
        return node.position in self.choices.counted

    def consumer_loop_map(self, node: Node, item: Input, loop_map: tuple[int, ...], out: Out) -> tuple[int, ...]:
        """The loops of `node` in the cluster of a producer that it reads."""
        assert isinstance(item.map, tuple) and isinstance(out.map, tuple)
        mine = [0] * node.rank
        for theirs, own in zip(out.map, item.map, strict=True):
            mine[own] = loop_map[theirs]
        return tuple(mine)

    def join_sibling(self, node: Node) -> bool:
        """Join a cluster that reads one of the same tensors in the same way."""
        tried: set[int] = set()
        for item in node.inputs:
            if not is_permutation(item.map, node.rank):
                continue
            for reader in reversed(self._readers.get(item.value, ())[-4:]):
                cluster = self.cluster[reader]
                if id(cluster) in tried or node.position - cluster.last > _NEAR or reader.rank != node.rank:
                    continue
                tried.add(id(cluster))
                for other in reader.inputs:
                    if other.value == item.value and is_permutation(other.map, node.rank):
                        loop_map = self.sibling_loop_map(node, item, other, cluster.loop_maps[reader])
                        if self.try_join(node, loop_map, cluster):
                            return True
        return self.join_pairs(node)

    def join_pairs(self, node: Node) -> bool:
        """Join a reduction over the same pairs of elements, `sum(f(x[i], y[j]) for j)`, none of whose operands has both
        loops: the common part of their bodies, such as a distance, is computed once."""
        if node.is_elementwise or node.is_search:
            return False
        mine = {(item.value, item.map) for item in node.inputs}
        for item in node.inputs:
            for reader in reversed(self._readers.get(item.value, ())[-4:]):
                alike = (reader.sizes, reader.reduction) == (node.sizes, node.reduction)
                if not alike or node.position - self.cluster[reader].last > _NEAR:
                    continue
                both = mine & {(other.value, other.map) for other in reader.inputs}
                if len({loop for _, map_ in both if isinstance(map_, tuple) for loop in map_}) < node.rank:
                    continue
                if self.try_join(node, self.cluster[reader].loop_maps[reader], self.cluster[reader]):
                    return True
        return False

    def sibling_loop_map(self, node: Node, item: Input, other: Input, loop_map: tuple[int, ...]) -> tuple[int, ...]:
        assert isinstance(item.map, tuple) and isinstance(other.map, tuple)
        mine = [0] * node.rank
        for own, theirs in zip(item.map, other.map, strict=True):
            mine[own] = loop_map[theirs]
        return tuple(mine)

    def try_join(self, node: Node, loop_map: tuple[int, ...], target: Cluster) -> bool:
        """Add a node to a cluster if that is legal and the cluster does not get too big.

        Argmax reductions share loops only with their producers.
        """
        if self.checked and self.mixes(node, *target.members):
            return False
        if target.closed or (node.is_search and (target.reduced is not None or not target.ends_in(node))):
            return False
        reduced = frozenset(loop_map[d] for d in node.reduced)
        if reduced and target.reduced is not None and reduced != target.reduced:
            return False
        reads = {item.value for item in node.inputs}
        shared = {out.result for out in node.outs if is_shared(out.result)}
        if target.ops + len(node.body) > self.most(target.reduced or reduced):
            return False
        if (target.counted or self.counts(node)) and stream_count(target, reads, shared) > self.max_operands:
            return False
        if not self.edges_agree(node, loop_map, target):
            return False
        if self.depends([v for v in self.uses(node) if v not in target.results], target):
            return False
        self.put(node, loop_map, target)
        return True

    def try_merge(self, one: Cluster, other: Cluster, loops: dict[int, int]) -> bool:
        """Merge cluster `one` into `other`; `loops` maps the loops of `one`."""
        if self.checked and self.mixes(*one.members, *other.members):
            return False
        if one.closed or other.closed or one.ops + other.ops > self.most(one.reduced or other.reduced):
            return False
        if one.reduced is not None and other.reduced not in (None, frozenset(loops[d] for d in one.reduced)):
            return False
        streams = stream_count(other, one.reads, one.shared) - len(one.results & one.reads)
        if (one.counted or other.counted) and streams > self.max_operands:
            return False
        loop_maps = {node: tuple(loops[d] for d in one.loop_maps[node]) for node in one.members}
        if not all(self.edges_agree(node, loop_maps[node], other) for node in one.members):
            return False
        if self.depends([v for v in self.outside(one) if v not in other.results], other):
            return False
        if self.depends([v for v in self.outside(other) if v not in one.results], one):
            return False
        for node in one.members:
            self.put(node, loop_maps[node], other)
        return True

    def most(self, reduced: frozenset[int] | None) -> int:
        """The most operations of a cluster that reduces these loops."""
        return min(self.max_ops, _WITH_REDUCTIONS) if reduced else self.max_ops

    def is_inlined(self, node: Node, number: int, is_clone: bool) -> bool:
        """True if a node recomputes the producer of an input; clones do it of more inputs than the node itself."""
        if number in node.inlined:
            return True
        found = self.producer.get(node.inputs[number].value) if is_clone and self.choices.recomputed else None
        return found is not None and found[0].position in self.choices.recomputed

    def edges_agree(self, node: Node, loop_map: tuple[int, ...], target: Cluster, clones: Clones | None = None) -> bool:
        """True if all values that a node uses of a cluster are computed at the same point of the iteration space.

        The operands of inlined producers are checked, too: they must not be partial sums. `clones` are those that
        have been, if the node is one.
        """
        is_clone, clones = clones is not None, set() if clones is None else clones
        for number, item in enumerate(node.inputs):
            found = self.producer.get(item.value)
            if self.is_inlined(node, number, is_clone):
                if found is None:
                    continue
                inner = found[0], through(item, found[1], loop_map)
                if inner not in clones:
                    clones.add(inner)
                    if not self.edges_agree(*inner, target, clones):
                        return False
                continue
            if item.value not in target.results:
                continue
            if found is None or not self.is_full(node, item, found):
                return False
            if self.consumer_loop_map(node, item, target.loop_maps[found[0]], found[1]) != loop_map:
                return False
        others = [*(out.init for out in node.outs), *node.captures]
        return not any(value in target.results for value in others)

    def uses(self, node: Node, clones: set[Node] | None = None) -> list[mlir.Value]:
        """The values that a node uses, through inlined producers; `clones` are those before, if the node is one."""
        is_clone, clones = clones is not None, set() if clones is None else clones
        used = [*(out.init for out in node.outs), *node.captures]
        for number, item in enumerate(node.inputs):
            found = self.producer.get(item.value)
            if not self.is_inlined(node, number, is_clone):
                used.append(item.value)
            elif found is not None:
                if found[0] not in clones:
                    clones.add(found[0])
                    used += self.uses(found[0], clones)
            elif (source := splat(item.value)) is not None:
                used += list(source.operands)[:1]  # the scalar of a fill
        return used

    def outside(self, cluster: Cluster) -> list[mlir.Value]:
        """The values that the members of a cluster use and that it does not compute."""
        if cluster.outside is None:
            used = dict.fromkeys(value for node in cluster.members for value in self.uses(node))
            cluster.outside = [value for value in used if value not in cluster.results]
        return cluster.outside

    def depends(self, values: Iterable[mlir.Value], target: Cluster) -> bool:
        """True if one of the values depends on a result of the cluster, or if the search would take too long."""
        todo = list(values)
        seen: set[int] = set()
        visited = 0
        while todo:
            value = todo.pop()
            position = self.defined.get(value)
            if position is None or position in seen:
                continue
            if value in target.results:
                return True
            seen.add(position)
            node = self.nodes.get(position)
            cluster = self.cluster.get(node) if node is not None else None
            if cluster is None:
                if position > target.first:
                    todo += self.operands(position)
            elif cluster.last > target.first:
                seen.update(member.position for member in cluster.members)
                todo += self.outside(cluster)
            visited += 1
            if visited > _SEARCH:
                return True
        return False

    def operands(self, position: int) -> list[mlir.Value]:
        """The values that an operation and its regions use."""
        found = self._operands.get(position)
        if found is None:
            found = self._operands[position] = used_values(self.ops[position])
        return found
