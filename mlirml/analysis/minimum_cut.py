"""The minimum cut of a network (Dinic, Algorithm for solution of a problem of maximum flow, 1970).

Libraries for graphs take longer to import than a whole gradient to compile.
"""

from __future__ import annotations

from collections.abc import Hashable


class Network:
    """A flow network: nodes, identified by the keys that edges name, and edges with capacities."""

    def __init__(self) -> None:
        self._numbers: dict[Hashable, int] = {}
        self._edges: list[list[int]] = []  # of each node; an edge with an even index is followed by its reverse
        self._heads: list[int] = []
        self._room: list[int] = []
        self._endless: list[int] = []

    def add_edge(self, tail: Hashable, head: Hashable, capacity: int | None = None) -> None:
        """Add an edge; without a capacity it is unbounded."""
        if capacity is None:
            self._endless.append(len(self._heads))
        for start, end, room in ((tail, head, capacity or 0), (head, tail, 0)):
            self._edges[self._number(start)].append(len(self._heads))
            self._heads.append(self._number(end))
            self._room.append(room)

    def minimum_cut(self, begin: Hashable, end: Hashable) -> set[Hashable] | None:
        """The nodes on the sink side of a minimum cut, the one closest to `end`; None where nothing bounds the flow."""
        source, sink = self._number(begin), self._number(end)
        bound = sum(self._room)
        for edge in self._endless:
            self._room[edge] = bound + 1
        flow = 0
        while levels := self._levels(source, sink):
            while pushed := self._push(source, sink, levels):
                flow += pushed
                if flow > bound:
                    return None
        sink_side = self._sink_side(sink)
        return {node for node, number in self._numbers.items() if number in sink_side}

    def _number(self, node: Hashable) -> int:
        number = self._numbers.setdefault(node, len(self._edges))
        if number == len(self._edges):
            self._edges.append([])
        return number

    def _levels(self, source: int, sink: int) -> list[list[int]]:
        """For each node the edges on shortest paths from `source`; empty where none leads to `sink`."""
        level = {source: 0}
        found = [source]
        for node in found:
            for edge in self._edges[node]:
                head = self._heads[edge]
                if self._room[edge] and head not in level:
                    level[head] = level[node] + 1
                    found.append(head)
        if sink not in level:
            return []
        far = len(level) + 1
        return [
            [e for e in edges if self._room[e] and level.get(self._heads[e], 0) == level.get(node, far) + 1]
            for node, edges in enumerate(self._edges)
        ]

    def _push(self, source: int, sink: int, levels: list[list[int]]) -> int:
        """Augment along one path of `levels`, from which dead ends are removed; returns the flow added."""
        way: list[int] = []
        node = source
        while node != sink:
            edges = levels[node]
            while edges and not self._room[edges[-1]]:
                edges.pop()
            if edges:
                way.append(edges[-1])
            elif way:
                node = self._heads[way.pop() ^ 1]
                levels[node].pop()
                continue
            else:
                return 0
            node = self._heads[way[-1]]
        pushed = min(self._room[edge] for edge in way)
        for edge in way:
            self._room[edge] -= pushed
            self._room[edge ^ 1] += pushed
        return pushed

    def _sink_side(self, sink: int) -> set[int]:
        """The nodes from which the residual network reaches `sink`."""
        sink_side, found = {sink}, [sink]
        for node in found:
            for edge in self._edges[node]:
                tail = self._heads[edge]
                if tail not in sink_side and self._room[edge ^ 1]:
                    sink_side.add(tail)
                    found.append(tail)
        return sink_side
