"""The search for the partition of structured operations into loops that takes least by the cost model.

Greedy clusters are the first partition. A producer is then stored rather than recomputed in each consumer, or it is
recomputed there with what it is computed from, one such change at a time, the one with the largest estimated gain
first. `Graph` makes the clusters that follow from it, so that each partition is a legal one; it is kept if loops take
less in all. The last one replaces the greedy one if the loops that differ take clearly less. The time of loops is the
larger one of their arithmetic and of their traffic. A value that one loop stores and another reads comes from the cache
if both work row by row, since their loops over rows are joined later (`codegen/cpu/elementwise/rows.py`), and with
those of contractions (`mlirml-block-examples`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cached_property

from mlirml.analysis.contractions import CONTRACTIONS
from mlirml.analysis.cost import bytes_of, element_bytes, vector_cycles
from mlirml.analysis.costs import WORTH, WORTH_OF_LOOPS, costs, is_worth
from mlirml.core.dataclass import dataclass, replace
from mlirml.ir.bindings import mlir
from mlirml.pipelines.tensor.fusion.clusters import Choices, Cluster, Graph, stream_count
from mlirml.pipelines.tensor.fusion.merge import Builder, needed_values
from mlirml.pipelines.tensor.fusion.nodes import FREE, Clones, Map, Node, splat, through

MOST_GRAPHS, MOST_NODES = 16, 512
"""The graphs that a search makes for one block, and the nodes of all of them together."""
LEAST_NS = 1000.0
"""Blocks whose loops take less than this are left as they are: calling their program takes as long."""
LEAST_PART = 0.01
"""The part of the time of a block that a change must gain."""
_MOST_RECOUNTS = 4
_FEWEST_ROWS, _SHORTEST_ROW = 32, 32
"""Rows whose loops are joined, as in `codegen/cpu/elementwise/rows.py`."""
_ACROSS = 2.0
"""The traffic of a tensor that is read across its rows, of which lines are read in part, relative to one in order."""

_STORED = 2.0
"""The accesses of a line that is stored to memory: it is read first, but results are stored past the cache."""
_SHORT = 2.0
"""The arithmetic of short rows relative to that of long ones, of which vectors are full."""
_ACCESS = 0.5
"""Cycles of a load or store of a vector of 64 bytes that the first cache has."""


def within_streams(graph: Graph) -> Graph:
    """The graph with clusters that do not have too many memory streams in the end.

    A long chain of operations has many values that are used again while it grows, and few once it is complete.
    """
    for _ in range(_MOST_RECOUNTS):
        crowded = crowded_clusters(graph)
        if not crowded:
            return graph
        counted = frozenset(node.position for cluster in crowded for node in cluster.members)
        graph = graph.with_choices(replace(graph.choices, counted=graph.choices.counted | counted))
    return graph.with_choices(replace(graph.choices, counted=frozenset(graph.nodes)))


def crowded_clusters(graph: Graph) -> list[Cluster]:
    """The clusters with too many memory streams that have not counted them."""
    clusters = {id(cluster): cluster for cluster in graph.cluster.values()}
    open_ = [cluster for cluster in clusters.values() if not cluster.counted]
    if all(stream_count(cluster, set(), set()) <= graph.max_operands for cluster in open_):
        return []
    builders = {key: Builder(graph, cluster) for key, cluster in clusters.items()}
    needed = needed_values(graph, builders)
    found = []
    for cluster in open_:
        builder = builders[id(cluster)]
        builder.drop_dead(needed)
        stores = sum(out.result in needed for node in builder.members for out in node.outs)
        if len({value for value, _ in builder.loads}) + stores > graph.max_operands:
            found.append(cluster)
    return found


def best_partition(graph: Graph) -> Graph:
    """The graph with the cheapest clusters that are found."""
    if len(graph.nodes) < 2:
        return graph
    prices = Prices()
    first = now = Partition(graph, prices)
    if first.total < LEAST_NS:
        return graph
    left = min(MOST_GRAPHS, MOST_NODES // len(graph.nodes))
    changes, tried = now.changes(), set[Choices]()
    while left > 0 and changes:
        found = changes.pop()
        if found in tried:
            continue
        tried.add(found)
        left -= 1
        other = Partition(within_streams(graph.with_choices(found)), prices)
        if other.total + LEAST_NS < now.total:
            now, changes = other, other.changes()
    return now.graph if now.is_better(first) else graph


class Prices:
    """The sizes of tensors and the times of bodies, each of which is asked of the IR once for all partitions."""

    def __init__(self) -> None:
        self._sizes: dict[mlir.Value, tuple[int, int]] = {}
        self._points: dict[int, float] = {}

    def bytes_of(self, value: mlir.Value) -> int:
        """The size of a tensor."""
        return self._size(value)[0]

    def access_ns(self, value: mlir.Value) -> float:
        """Nanoseconds of loading or storing an element, in vectors, that the first cache has."""
        return costs().vector_ns(_ACCESS, self._size(value)[1])

    def way_ns(self, value: mlir.Value, *, is_near: bool, lines: float = 1.0) -> float:
        """The traffic of a value between two loops, with so many accesses of each line in memory.

        It stays in the cache if that has it twice, or if it is near: the other loop reads it row by row.
        """
        size = self.bytes_of(value)
        rate = costs().level_byte_ns(2 * size)
        if is_near or rate == costs().cache_byte_ns:
            return size * costs().cache_byte_ns
        return size * rate * lines

    def point_ns(self, node: Node) -> float:
        """Nanoseconds of the body of a node for one point, in vectors of its widest elements."""
        found = self._points.get(node.position)
        if found is None:
            values = [*(item.argument for item in node.inputs), *(out.value for out in node.outs)]
            widest = max(element_bytes(value.type) for value in values)
            cycles = sum(vector_cycles(op.name) for op in node.body if op.name not in FREE)
            found = self._points[node.position] = costs().vector_ns(cycles, widest)
        return found

    def _size(self, value: mlir.Value) -> tuple[int, int]:
        found = self._sizes.get(value)
        if found is None:
            found = self._sizes[value] = bytes_of(value), element_bytes(value.type.element_type)
        return found


@dataclass(frozen=True)
class Loops:
    """A cluster as loops: the bodies that it computes, with those it recomputes, what it reads, and what it stores."""

    bodies: tuple[tuple[Node, tuple[int, ...]], ...]
    reads: tuple[tuple[mlir.Value, Map], ...]
    stores: tuple[mlir.Value, ...]


class Partition:
    """The clusters of a graph with the time that each takes; `times` has it by what a cluster computes."""

    def __init__(self, graph: Graph, prices: Prices) -> None:
        self.graph, self.prices = graph, prices
        self.has_contractions = any(op.name in CONTRACTIONS for op in graph.ops)
        self.clusters = list({id(cluster): cluster for cluster in graph.cluster.values()}.values())
        builders = {id(cluster): Builder(graph, cluster) for cluster in self.clusters}
        needed = needed_values(graph, builders)
        self.loops = {id(c): self._loops(builders[id(c)], needed) for c in self.clusters}
        self.stored = {value: c for c in self.clusters for value in self.loops[id(c)].stores}
        self.readers: dict[mlir.Value, list[tuple[Cluster, Map]]] = {}
        for cluster in self.clusters:
            for value, map_ in self.loops[id(cluster)].reads:
                self.readers.setdefault(value, []).append((cluster, map_))
        self.times = {self._key(cluster): self._time(cluster) for cluster in self.clusters}
        self.total = sum(self.times.values())

    def is_better(self, other: Partition) -> bool:
        """True if the loops that differ from those of another partition take clearly less."""
        mine = sum(time for key, time in self.times.items() if other.times.get(key) != time)
        theirs = sum(time for key, time in other.times.items() if self.times.get(key) != time)
        # What is recomputed is added to loops that may be limited by arithmetic.
        return is_worth(mine, theirs, WORTH if self.graph.choices.recomputed else WORTH_OF_LOOPS)

    def changes(self) -> list[Choices]:
        """Choices that differ in one node and may gain enough by an estimate, the best ones last."""
        least = LEAST_PART * self.total
        found = sorted(self._changes(), key=lambda pair: pair[0])
        return [choices for gain, choices in found if gain > least]

    def _changes(self) -> Iterator[tuple[float, Choices]]:
        choices = self.graph.choices
        for node in self.graph.nodes.values():
            if len(node.outs) != 1 or not node.is_elementwise or not node.body:
                continue
            if (gain := self._gain_of_storing(node)) > 0:
                stored = frozenset({node.position})
                yield gain, replace(choices, stored=choices.stored | stored, recomputed=choices.recomputed - stored)
            elif self._can_be_recomputed(node):
                cone = self._cone(node)
                if (gain := self._gain_of_recomputing(node, cone)) > 0:
                    positions = frozenset(other.position for other in cone)
                    recomputed, stored = choices.recomputed | positions, choices.stored - positions
                    yield gain, replace(choices, recomputed=recomputed, stored=stored)

    def _cone(self, node: Node) -> list[Node]:
        """A member of a cluster, and those that its result is computed from there."""
        cluster, found = self.graph.cluster[node], {node: None}
        todo = [node]
        while todo:
            for item in todo.pop().inputs:
                producer = self.graph.producer.get(item.value)
                if producer is not None and producer[0] not in found and self.graph.cluster[producer[0]] is cluster:
                    found[producer[0]] = None
                    todo.append(producer[0])
        return list(found)

    def _loops(self, builder: Builder, needed: set[mlir.Value]) -> Loops:
        builder.drop_dead(needed)
        stores = tuple(out.result for node in builder.members for out in node.outs if out.result in needed)
        bodies: dict[tuple[Node, tuple[int, ...]], None] = {}
        if stores:
            for node in builder.members:
                self._add_bodies(node, builder.cluster.loop_maps[node], bodies)
        return Loops(tuple(bodies), tuple(builder.loads) if stores else (), stores)

    def _add_bodies(
        self,
        node: Node,
        loop_map: tuple[int, ...],
        bodies: dict[tuple[Node, tuple[int, ...]], None],
        clones: Clones | None = None,
    ) -> None:
        """Add the body of a node, and those of what is recomputed in it, each once for one point."""
        is_clone, clones = clones is not None, set() if clones is None else clones
        bodies[node, loop_map] = None
        for number, item in enumerate(node.inputs):
            if self.graph.is_inlined(node, number, is_clone) and splat(item.value) is None:
                producer, out = self.graph.producer[item.value]
                inner = producer, through(item, out, loop_map)
                if inner not in clones:
                    clones.add(inner)
                    self._add_bodies(*inner, bodies, clones)

    def _key(self, cluster: Cluster) -> tuple[object, ...]:
        loops = self.loops[id(cluster)]
        return tuple((node.position, loop_map) for node, loop_map in loops.bodies), loops.stores

    def _time(self, cluster: Cluster) -> float:
        loops = self.loops[id(cluster)]
        if not loops.stores:
            return 0.0
        accessed = sum(map(self.prices.bytes_of, (*(value for value, _ in loops.reads), *loops.stores)))
        rate = costs().level_byte_ns(accessed)
        traffic = 0.0
        for value, map_ in loops.reads:
            writer = self.stored.get(value)
            if writer is None:
                traffic += self.prices.bytes_of(value) * rate * _order(map_)
            else:
                is_near = self._share_rows(value, writer, cluster, map_)
                traffic += self.prices.way_ns(value, is_near=is_near) * _order(map_)
        for value in loops.stores:
            readers = self.readers.get(value, ())
            if not readers:
                traffic += self.prices.bytes_of(value) * rate
            else:
                is_near = any(self._share_rows(value, cluster, reader, map_) for reader, map_ in readers)
                traffic += self.prices.way_ns(value, is_near=is_near, lines=_STORED)
        work = sum(self.prices.point_ns(node) for node, _ in loops.bodies)
        work += sum(map(self.prices.access_ns, (*(value for value, _ in loops.reads), *loops.stores)))
        if cluster.sizes and cluster.sizes[-1] < _SHORTEST_ROW:
            work *= _SHORT
        return costs().loops_ns(math.prod(cluster.sizes) * work, traffic)

    def _share_rows(self, value: mlir.Value, writer: Cluster, reader: Cluster, map_: Map) -> bool:
        """True if the loops over rows of the two clusters are joined, so that a row is read when it is in the cache."""
        node, out = self.graph.producer.get(value, (None, None))
        if node is None or out is None or not isinstance(out.map, tuple) or not isinstance(map_, tuple) or not map_:
            return False
        shape = value.type.shape
        dim = next((d for d, size in enumerate(shape) if size > 1), 0)
        rows, length = shape[dim] if shape else 1, math.prod(shape[dim + 1 :])
        if rows < _FEWEST_ROWS or length < _SHORTEST_ROW or not _is_in_order(map_):
            return False
        first = writer.loop_maps[node][out.map[dim]], map_[dim]
        reductions = [cluster.reduced or frozenset() for cluster in (writer, reader)]
        are_joined = self.has_contractions or any(reductions)
        return are_joined and not any(d in reduced for d, reduced in zip(first, reductions, strict=True))

    @cached_property
    def _recomputed_points(self) -> dict[Node, int]:
        """The number of points at which each node is recomputed, in clusters of which it is no member."""
        points: dict[Node, int] = {}
        for cluster in self.clusters:
            members, size = set(cluster.members), math.prod(cluster.sizes)
            for node, _ in self.loops[id(cluster)].bodies:
                if node not in members:
                    points[node] = points.get(node, 0) + size
        return points

    def _gain_of_storing(self, node: Node) -> float:
        """The nanoseconds that storing the result of a producer saves, if nothing else changes."""
        each = self.prices.point_ns(node) + (len(node.inputs) - 1) * self.prices.access_ns(node.outs[0].result)
        points = self._recomputed_points.get(node, 0)
        size = math.prod(node.sizes)
        return each * (points - size) - 2 * self.prices.bytes_of(node.outs[0].result) * costs().cache_byte_ns

    def _can_be_recomputed(self, node: Node) -> bool:
        value = node.outs[0].result
        # Contractions compute what reads them as they store it, and their loops over rows are joined with others.
        if self.has_contractions or self.graph.producer.get(value, (None,))[0] is not node:
            return False
        if node.position in self.graph.choices.recomputed:
            return False
        # Elements that are read across rows are computed one at a time, not in vectors.
        maps = [map_ for _, map_ in self.readers.get(value, ())]
        return value in self.stored and bool(maps) and all(map(_is_in_order, maps)) and not self.graph.stays(value)

    def _gain_of_recomputing(self, node: Node, cone: list[Node]) -> float:
        """The nanoseconds that recomputing a result in the clusters that read it saves, if nothing else changes."""
        if any(op.name.startswith("tensor.") for other in cone for op in other.body):
            return 0.0
        value = node.outs[0].result
        readers = [cluster for cluster, _ in self.readers[value]]
        traffic = self.prices.bytes_of(value) * (1 + len(readers)) * costs().memory_byte_ns
        each = sum(map(self.prices.point_ns, cone))
        return traffic - each * sum(math.prod(cluster.sizes) for cluster in readers)


def _order(map_: Map) -> float:
    """The traffic of a read relative to one in the order of memory."""
    return 1.0 if not isinstance(map_, tuple) or _is_in_order(map_) else _ACROSS


def _is_in_order(map_: Map) -> bool:
    """True if the dims of a tensor have the order of the loops."""
    return isinstance(map_, tuple) and map_ == tuple(sorted(map_))
