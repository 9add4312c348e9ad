"""Choose the tensors that are computed together, the boxes, and the tensors that are stored in memory."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import field

from mlirml.analysis.cost import instructions
from mlirml.core.dataclass import dataclass
from mlirml.ir.bindings import block_ops, mlir
from mlirml.passes import NoMatch
from mlirml.pipelines.tensor.stencils.graph import Access, Box, Compute, Constant, Point, Put, Split, StencilGraph, Take
from mlirml.pipelines.tensor.stencils.in_place_stores import is_in_place, stores_into_carried

_READ, _STREAM, _STORE = 1, 4, 6
"""The costs of reading an element, of each tensor that is read, and of each that is stored."""
MOST_READS, MOST_OPS, _MOST_BOXES = 40, 192, 40
TRIES = 8
"""The number of tensors that are tried as candidates at a time, and the maximum number of stored ones."""
_MOST_EFFORT = 300_000
"""The number of elements that are followed to find what is computed and read, about a second; fluids take 70,000."""
_NOTHING = Constant(None)


@dataclass
class Terms:
    """The elements from which elements are computed: in order, each once."""

    computed: dict[Point, None] = field(default_factory=dict)
    read: dict[Point, None] = field(default_factory=dict)
    ops: int = 0

    def cost(self) -> int:
        tensors = {value for value, _ in self.read}
        return self.ops + _READ * len(self.read) + _STREAM * len(tensors)

    def excess(self, share: int = 1) -> int:
        """The excess over the limits of one loop, or over a fraction of them."""
        return max(0, len(self.read) - MOST_READS // share) + max(0, self.ops - MOST_OPS // share)


@dataclass
class Group:
    """Tensors of one shape that are computed in the same loops, and the boxes of these."""

    roots: list[mlir.Value]
    boxes: list[Box] = field(default_factory=list)


@dataclass
class _Inner:
    """The largest box of some roots, the terms of it, and the values that were computed and stored to find it."""

    box: Box
    terms: Terms
    computed: set[mlir.Value]
    kept: set[mlir.Value]


class Plan:
    """The tensors of a block to be computed, in an order that respects their dependences.

    `roots` are stored in memory, `wanted` are the roots that are recomputed, `stored` the roots into which slices are
    stored in place.
    """

    def __init__(self, graph: StencilGraph, least: int) -> None:
        self.graph = graph
        self.least = least
        self._weights: dict[mlir.Value, int] = {}
        self._known: dict[tuple[mlir.Value, ...], list[_Inner]] = {}
        self._effort = 0
        self.roots = {v for v, n in graph.nodes.items() if not isinstance(n, Constant) and self._leaves(v)}
        self.stored: set[mlir.Value] = set()
        for root in self._in_order(self.roots):
            self._store(root)
        self.wanted = self._wanted()
        self.groups: list[Group] = []

    def _leaves(self, value: mlir.Value) -> bool:
        """True if a tensor has users that do not trace its elements."""
        for use in value.uses:
            results = use.owner.operation.results
            if len(results) != 1 or value not in self.graph.sources(results[0]):
                return True
        return False

    def _store(self, root: mlir.Value) -> None:
        """Keep the stores of slices into a root, if they should be in place: their sources may be recomputed."""
        stores = stores_into_carried(self.graph, root)
        if not stores:
            return
        before = set(self.roots)
        self.roots.update(stores)
        if not is_in_place(self.graph, stores, self._reads, lambda value: self._is_wanted(value, self._tree(value))):
            self.roots = before
            return
        self.stored.update(stores)
        sources = [source for store in stores for source in self.graph.sources(store)]
        self.roots.update(source for source in sources if isinstance(self.graph.nodes.get(source), Compute))

    def _reads(self, value: mlir.Value) -> Iterable[Point]:
        return self.inner([value])[1].read

    def _wanted(self) -> set[mlir.Value]:
        """The roots that are computed from tensors composed of others."""
        while True:
            trees = {root: self._tree(root) for root in self.roots}
            wanted = {root for root, tree in trees.items() if self._is_wanted(root, tree)}
            recomputed = wanted.union(*(trees[root] for root in wanted))
            shared = [
                value
                for value in recomputed - self.roots
                if any(use.owner.operation.results[0] not in recomputed for use in value.uses)
                and any(isinstance(self.graph.nodes[x], Compute) for x in (value, *self._tree(value)))
            ]
            if not shared:
                return wanted
            self.roots.update(shared)

    def _tree(self, root: mlir.Value) -> set[mlir.Value]:
        """The values from which a root is computed, up to other roots."""
        found: set[mlir.Value] = set()
        todo = list(self.graph.sources(root))
        while todo:
            value = todo.pop()
            if value not in found and value not in self.roots and self._is_followed(value):
                found.add(value)
                todo += self.graph.sources(value)
        return found

    def _is_followed(self, value: mlir.Value) -> bool:
        return not isinstance(self.graph.nodes.get(value, _NOTHING), Constant)

    def _is_wanted(self, root: mlir.Value, tree: set[mlir.Value]) -> bool:
        if root in self.stored or math.prod(root.type.shape) < self.least:
            return False
        if not isinstance(self.graph.nodes.get(root), Compute | Put):
            return False
        if not any(isinstance(self.graph.nodes[value], Put) for value in tree):
            return False
        return any(self._reads_put(value, tree) for value in (root, *tree))

    def _reads_put(self, value: mlir.Value, tree: set[mlir.Value]) -> bool:
        """True for an elementwise operation that reads a tensor composed of slices."""
        if not isinstance(self.graph.nodes[value], Compute):
            return False
        todo = list(self.graph.sources(value))
        while todo:
            source = todo.pop()
            if source in tree and isinstance(self.graph.nodes[source], Put):
                return True
            if source in tree and isinstance(self.graph.nodes[source], Take):
                todo += self.graph.sources(source)
        return False

    def choose(self) -> None:
        """Store tensors in memory as long as that takes less time, and group the computations.

        Raises `NoMatch` if there is no good choice.
        """
        groups, price = self._grouped()
        for _ in range(TRIES):
            best = None
            for value in self._candidates(groups):
                self.keep(value)
                try:
                    tried = self._grouped()
                    if tried[1] < price:
                        best, (groups, price) = value, tried
                except NoMatch:
                    pass
                self.keep(value, False)
            if best is None:
                break
            self.keep(best)
        if price[0]:
            raise NoMatch("too much for a loop")
        for group in groups:
            group.boxes = self._boxes(group.roots)
        self.groups = groups

    def recomputed(self) -> set[mlir.Value]:
        """The tensors that are recomputed, and those from which they are computed."""
        return self.wanted.union(*(self._tree(root) for root in self.wanted))

    def weight(self, value: mlir.Value) -> int:
        """The cost of computing an element from the elements it reads."""
        found = self._weights.get(value)
        if found is None:
            body = block_ops(value.owner.operation.regions[0].blocks[0])
            found = self._weights[value] = instructions(body)
        return found

    def keep(self, value: mlir.Value, keep: bool = True) -> None:
        """Store a tensor in memory, or undo that."""
        for values in (self.roots, self.wanted):
            if keep:
                values.add(value)
            else:
                values.remove(value)

    def _candidates(self, groups: Iterable[Group]) -> list[mlir.Value]:
        """The values that are computed at more than one offset, the most expensive first."""
        times: dict[mlir.Value, int] = {}
        for group in groups:
            for value, _ in self.inner(group.roots)[1].computed:
                times[value] = times.get(value, 0) + 1
        often = [value for value, count in times.items() if count > 1 and value not in self.roots]
        return sorted(often, key=lambda value: -times[value] * self.weight(value))[:TRIES]

    def _grouped(self) -> tuple[list[Group], tuple[int, int]]:
        """The groups for the current roots; their excess over the limits, and their cost."""
        levels, by_key = self._levels(), dict[tuple[tuple[int, ...], int], list[mlir.Value]]()
        for root in self._in_order(self.wanted):
            by_key.setdefault((tuple(root.type.shape), levels[root]), []).append(root)
        alive = self._alive()
        groups = []
        for (_, level), roots in by_key.items():
            together = self._together(roots, level, levels, alive)
            groups += [Group(roots)] if together else [Group([root]) for root in roots]
        groups.sort(key=lambda group: self.graph.position[group.roots[-1]])
        excess = cost = 0
        for group in groups:
            _, terms = self.inner(group.roots)
            excess += terms.excess()
            cost += (terms.cost() + _STORE * len(group.roots)) * math.prod(group.roots[0].type.shape)
        return groups, (excess, cost)

    def _in_order(self, values: Iterable[mlir.Value]) -> list[mlir.Value]:
        return sorted(values, key=lambda value: self.graph.position[value])

    def _levels(self) -> dict[mlir.Value, int]:
        """For each value the length of the longest chain of wanted roots that it depends on, itself included."""
        levels: dict[mlir.Value, int] = {}
        for number, op in enumerate(self.graph.ops):
            level = max((levels.get(value, 0) for value in self.graph.operands(number)), default=0)
            for result in op.results:
                levels[result] = level + (result in self.wanted)
        return levels

    def _alive(self) -> set[mlir.Value]:
        """The values that are used by operations other than wanted roots and the operations computing these."""
        alive: set[mlir.Value] = set()
        for number in range(len(self.graph.ops) - 1, -1, -1):
            results = self.graph.ops[number].results
            followed = len(results) == 1 and results[0] in self.graph.nodes
            if not followed or (results[0] in alive and results[0] not in self.wanted):
                alive.update(self.graph.operands(number))
        return alive

    def _together(
        self, roots: Sequence[mlir.Value], level: int, levels: dict[mlir.Value, int], alive: set[mlir.Value]
    ) -> bool:
        """True if roots can all be computed at the position of the last one."""
        first, last = self.graph.position[roots[0]], self.graph.position[roots[-1]]
        for op in self.graph.ops[first:last]:
            for result in op.results:
                if levels[result] < level or result in roots:
                    continue
                if result in self.wanted or result in alive or result not in self.graph.nodes:
                    return False
            if not op.results:
                return False
        return True

    def inner(self, roots: Sequence[mlir.Value]) -> tuple[Box, Terms]:
        """A large box in which every element is computed in the same way, and its terms.

        A cached result is valid as long as no value computed for it is stored now, and the stored ones still are.
        """
        known = self._known.setdefault(tuple(roots), [])
        kept = self.roots.difference(roots)
        for inner in known:
            if kept.isdisjoint(inner.computed) and kept.issuperset(inner.kept):
                return inner.box, inner.terms
        box: Box = tuple((0, size) for size in roots[0].type.shape)
        computed, read = set[mlir.Value](), set[mlir.Value]()
        while True:
            terms, cut = Terms(), None
            try:
                self.terms(roots, box, terms)
            except Split as split:
                cut = split
            computed.update(value for value, _ in terms.computed)
            read.update(value for value, _ in terms.read)
            if cut is None:
                break
            box = max(halves(box, cut), key=volume)
        known.append(_Inner(box, terms, computed, read & kept))
        return box, terms

    def _boxes(self, roots: Sequence[mlir.Value]) -> list[Box]:
        """Boxes in which every element is computed in the same way, which together cover all elements."""
        todo: list[Box] = [tuple((0, size) for size in roots[0].type.shape)]
        found: list[Box] = []
        while todo:
            box = todo.pop()
            try:
                self.terms(roots, box)
            except Split as split:
                todo += reversed(halves(box, split))
                if len(todo) + len(found) > _MOST_BOXES:
                    raise NoMatch("too many boxes") from None
                continue
            found.append(box)
        return found

    def terms(self, roots: Sequence[mlir.Value], box: Box, terms: Terms | None = None) -> Terms:
        """The terms of the roots in a box; raises `Split` if they are not the same in all of it."""
        terms = Terms() if terms is None else terms
        kept = self.roots.difference(roots)
        todo = [self.graph.reduce((root, start(box)), box, kept) for root in roots]
        while todo:
            point = todo.pop()
            if isinstance(point, Constant) or point in terms.computed or point in terms.read:
                continue
            if point[0] in kept or not isinstance(self.graph.nodes.get(point[0]), Compute):
                terms.read[point] = None
            else:
                terms.computed[point] = None
                terms.ops += self.weight(point[0])
                sources = [self.graph.reduce(source, box, kept) for source in self.graph.reads(point)]
                self._effort += len(sources)
                todo += sources
                if self._effort > _MOST_EFFORT:
                    raise NoMatch("too many elements to choose from")
        return terms


def start(box: Box) -> Access:
    """The element at the loop indices."""
    return tuple((loop, 0) for loop in range(len(box)))


def halves(box: Box, split: Split) -> list[Box]:
    """The two parts of a split box."""

    (low, high), loop = box[split.loop], split.loop
    return [(*box[:loop], part, *box[loop + 1 :]) for part in ((low, split.at), (split.at, high))]


def volume(box: Box) -> int:
    return math.prod(high - low for low, high in box)
