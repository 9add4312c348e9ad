"""Build fused operations: one `linalg.generic` for each cluster, in an order that respects all uses."""

from __future__ import annotations

from collections.abc import Iterator

from mlirml.ir import emit
from mlirml.ir.bindings import defining_op, mlir
from mlirml.pipelines.tensor.fusion.clusters import Cluster, Graph
from mlirml.pipelines.tensor.fusion.nodes import Clones, Input, Map, Node, Out, splat, through

Key = tuple[mlir.Value, Map]


def rewrite(graph: Graph) -> None:
    """Replace every cluster that gains from it, and order the block's operations."""
    clusters = {id(c): c for c in graph.cluster.values()}.values()
    fused = [cluster for cluster in clusters if gains(cluster)]
    while (widest := in_circle(graph, {id(cluster) for cluster in fused})) is not None:
        fused.remove(widest)
    if not fused:
        return
    builders = {id(cluster): Builder(graph, cluster) for cluster in fused}
    needed = needed_values(graph, builders)
    replaced: dict[mlir.Value, mlir.Value] = {}
    terminator = graph.ops[-1]
    for item in list(in_order(graph, set(builders))):
        if isinstance(item, Cluster):
            with mlir.InsertionPoint(terminator):
                builders[id(item)].build(needed, replaced)
        else:
            item.move_before(terminator)
    for old, new in replaced.items():
        old.replace_all_uses_with(new)
    for node in sorted((n for c in fused for n in c.members), key=lambda n: -n.position):
        node.op.erase()


def gains(cluster: Cluster) -> bool:
    """True if rebuilding changes the cluster."""
    return len(cluster.members) > 1 or any(node.untidy or node.inlined for node in cluster.members)


def needed_values(graph: Graph, builders: dict[int, Builder]) -> set[mlir.Value]:
    """The results that operations outside of their cluster use."""
    needed = {value for builder in builders.values() for value, _ in builder.loads}
    for position in range(len(graph.ops)):
        node = graph.nodes.get(position)
        if node is None:
            needed.update(graph.operands(position))
        elif id(graph.cluster[node]) not in builders:
            needed.update(node.dependencies())
        else:
            needed.update(node.captures)
            needed.update(out.init for out in node.outs)
    return needed


def in_circle(graph: Graph, fused: set[int]) -> Cluster | None:
    """A cluster that depends on itself through others, the largest of its cycle; None if there is none.

    The search for paths that `Graph` makes before it joins clusters does not see operations before them; such an
    operation may still depend on a cluster with members after it.
    """
    unit_of: dict[int, int | Cluster] = {}
    for position in range(len(graph.ops) - 1):
        node = graph.nodes.get(position)
        cluster = graph.cluster[node] if node is not None else None
        unit_of[position] = position if cluster is None or id(cluster) not in fused else cluster

    def needs(unit: int | Cluster) -> Iterator[int | Cluster]:
        uses = graph.operands(unit) if isinstance(unit, int) else graph.outside(unit)
        return iter([unit_of[graph.defined[value]] for value in uses if value in graph.defined])

    finished: set[int] = set()
    for start in unit_of.values():
        if _key(start) in finished:
            continue
        path = [(start, needs(start))]
        open_ = {_key(start): 0}
        while path:
            for other in path[-1][1]:
                if _key(other) in open_:
                    circle = [unit for unit, _ in path[open_[_key(other)] :] if isinstance(unit, Cluster)]
                    return max(circle, key=lambda cluster: (cluster.last - cluster.first, cluster.first))
                if _key(other) not in finished:
                    open_[_key(other)] = len(path)
                    path.append((other, needs(other)))
                    break
            else:
                unit, _ = path.pop()
                del open_[_key(unit)]
                finished.add(_key(unit))
    return None


def _key(unit: int | Cluster) -> int:
    """The position of an operation, or of the first member of a cluster."""
    return unit if isinstance(unit, int) else unit.first


def in_order(graph: Graph, fused: set[int]) -> Iterator[mlir.Operation | Cluster]:
    """Operations and clusters, each after the values it uses, otherwise in program order; without the terminator."""
    finished: set[int] = set()
    for start in range(len(graph.ops) - 1):
        stack = [(start, False)]
        while stack:
            position, ready = stack.pop()
            if position in finished:
                continue
            node = graph.nodes.get(position)
            cluster = graph.cluster[node] if node is not None else None
            if cluster is not None and id(cluster) not in fused:
                cluster = None
            if not ready:
                stack.append((position, True))
                uses = graph.operands(position) if cluster is None else graph.outside(cluster)
                needed = [graph.defined.get(value) for value in uses]
                stack += [(other, False) for other in needed if other is not None and other not in finished]
            elif cluster is None:
                finished.add(position)
                yield graph.ops[position]
            else:
                finished.update(member.position for member in cluster.members)
                yield cluster


class Builder:
    """Builds one cluster. Inputs are loads `(tensor, map over the loops of the cluster)`, each once."""

    def __init__(self, graph: Graph, cluster: Cluster) -> None:
        self.graph, self.cluster = graph, cluster
        self.members = sorted(cluster.members, key=lambda node: node.position)
        self.members_by_result = {out.result: (node, out) for node in self.members for out in node.outs}
        self.loads: dict[Key, mlir.Value] = {}
        self.values: dict[mlir.Value, mlir.Value] = {}
        self.inlined: dict[Key, mlir.Value] = {}
        self.identity = tuple(range(len(cluster.sizes)))
        for node in self.members:
            self.collect(node, cluster.loop_maps[node])

    def collect(self, node: Node, loop_map: tuple[int, ...], clones: Clones | None = None) -> None:
        """Collect the loads of a member, and of producers that are inlined into it, the `clones`."""
        is_clone, clones = clones is not None, set() if clones is None else clones
        for number, item in enumerate(node.inputs):
            if self.graph.is_inlined(node, number, is_clone):
                if splat(item.value) is None:
                    producer, out = self.graph.producer[item.value]
                    inner = producer, through(item, out, loop_map)
                    if inner not in clones:
                        clones.add(inner)
                        self.collect(*inner, clones)
            elif item.value not in self.members_by_result:
                self.loads[item.value, compose(item.map, loop_map)] = item.argument

    def build(self, needed: set[mlir.Value], replaced: dict[mlir.Value, mlir.Value]) -> None:
        """Build the operation; `replaced` maps old results to new ones and is extended by these."""
        results = [pair for node in self.members for pair in self.kept(node, needed)]
        if not results:
            return
        with fused_location(self.members):
            inits = [self.init(out, replaced) for _, out in results]
            self.drop_dead(needed)
            self.cover_loops([out for _, out in results])
            loads = [replaced.get(value, value) for value, _ in self.loads]
            op = self.create(loads, inits, [out for _, out in results], replaced)
        for (_, out), result in zip(results, op.results, strict=True):
            replaced[out.result] = result

    def drop_dead(self, needed: set[mlir.Value]) -> None:
        """Drop members whose results are only used by operations that recompute them."""
        wanted: set[mlir.Value] = set()  # only values used by members: `needed` is as long as the program
        live: list[Node] = []
        for node in reversed(self.members):
            if any(out.result in needed or out.result in wanted for out in node.outs):
                live.append(node)
                wanted.update(self.graph.uses(node))
        if len(live) < len(self.members):
            self.members = live[::-1]
            self.loads = {}
            for node in self.members:
                self.collect(node, self.cluster.loop_maps[node])

    def cover_loops(self, results: list[Out]) -> None:
        """Add an empty tensor as operand if no operand determines the extent of a reduced loop."""
        maps = [map_ for _, map_ in self.loads]
        maps += [compose(out.map, self.cluster.loop_maps[self.members_by_result[out.result][0]]) for out in results]
        covered = {d for map_ in maps for d in loops_of(map_)}
        for node in self.members:
            for shape in node.shapes:
                map_ = compose(shape.map, self.cluster.loop_maps[node])
                if not covered.issuperset(loops_of(map_)):
                    covered.update(loops_of(map_))
                    self.loads[emit.empty(shape.kind), map_] = node.outs[0].value

    def kept(self, node: Node, needed: set[mlir.Value]) -> list[tuple[Node, Out]]:
        """The results of a member to build: all of a reduction, whose accumulators may read each other."""
        used = [(node, out) for out in node.outs if out.result in needed]
        return used if node.is_elementwise or not used else [(node, out) for out in node.outs]

    def init(self, out: Out, replaced: dict[mlir.Value, mlir.Value]) -> mlir.Value:
        """The init of a reduction, an empty tensor for other results."""
        if out.argument is not None:
            return replaced.get(out.init, out.init)
        return emit.empty(out.result.type)

    def create(
        self,
        loads: list[mlir.Value],
        inits: list[mlir.Value],
        outputs: list[Out],
        replaced: dict[mlir.Value, mlir.Value],
    ) -> mlir.Operation:
        """Build the `linalg.generic` with the bodies of all members."""
        rank = len(self.identity)
        maps = [map_ for _, map_ in self.loads]
        maps += [compose(out.map, self.cluster.loop_maps[self.members_by_result[out.result][0]]) for out in outputs]
        # An unused reduction is dropped, and with it its iterators.
        reduced = (any(out.argument is not None for out in outputs) and self.cluster.reduced) or frozenset()
        attributes = {
            "indexing_maps": mlir.ArrayAttr.get([affine_map(map_, rank) for map_ in maps]),
            "iterator_types": emit.iterator_types(["reduction" if d in reduced else "parallel" for d in self.identity]),
            "operandSegmentSizes": emit.segments(len(loads), len(inits)),
        }
        results = [init.type for init in inits]
        op = emit.create("linalg.generic", [*loads, *inits], results, attributes, regions=1)
        types = [element_type(v) for v in (*loads, *inits)]
        block = emit.block(op, types)
        arguments = list(block.arguments)
        self.loads = dict(zip(self.loads, arguments, strict=False))
        accumulators = {out.result: a for out, a in zip(outputs, arguments[len(loads) :], strict=True)}
        with mlir.InsertionPoint(block):
            for node in self.members:
                self.add_member(node, block, accumulators, replaced)
            emit.create("linalg.yield", [self.values[out.result] for out in outputs])
        return op

    def add_member(
        self,
        node: Node,
        block: mlir.Block,
        accumulators: dict[mlir.Value, mlir.Value],
        replaced: dict[mlir.Value, mlir.Value],
    ) -> None:
        """Add the body of a member to the block: its operations are moved, or cloned if others inline it."""
        loop_map = self.cluster.loop_maps[node]
        environment = {item.argument: self.argument(node, n, loop_map, replaced) for n, item in enumerate(node.inputs)}
        for out in node.outs:
            if out.argument is not None:
                if out.result not in accumulators:
                    return  # an unused reduction
                environment[out.argument] = accumulators[out.result]
        if node.clones:
            self.clone_body(node, loop_map, environment, replaced)
        else:
            for old, new in environment.items():
                old.replace_all_uses_with(new)
            for value in node.captures:
                if value in replaced:
                    for op in node.body:
                        op.replace_uses_of_with(value, replaced[value])
            for op in node.body:
                block.append(op)
                renumber_index(op, loop_map)
        for out in node.outs:
            self.values[out.result] = environment.get(out.value, out.value)

    def clone_body(
        self,
        node: Node,
        loop_map: tuple[int, ...],
        environment: dict[mlir.Value, mlir.Value],
        replaced: dict[mlir.Value, mlir.Value],
    ) -> None:
        """Clone the body at the insertion point; its values are added to the environment."""
        for value in node.captures:
            if value in replaced:
                environment[value] = replaced[value]
        for op in node.body:
            emit.body_op(op, environment)
            copy = defining_op(environment[op.results[0]])
            assert copy is not None
            renumber_index(copy, loop_map)

    def argument(
        self,
        node: Node,
        number: int,
        loop_map: tuple[int, ...],
        replaced: dict[mlir.Value, mlir.Value],
        *,
        is_clone: bool = False,
    ) -> mlir.Value:
        """The scalar of an input of a member or a clone: loaded, computed by another member, or inlined."""
        item = node.inputs[number]
        if self.graph.is_inlined(node, number, is_clone):
            return self.inline(item, loop_map, replaced)
        if item.value in self.members_by_result:
            return self.values[item.value]
        return self.loads[item.value, compose(item.map, loop_map)]

    def inline(self, item: Input, loop_map: tuple[int, ...], replaced: dict[mlir.Value, mlir.Value]) -> mlir.Value:
        """The value of a producer, recomputed at the insertion point."""
        source = splat(item.value)
        if source is not None:
            if source.name == "linalg.fill":
                return replaced.get(source.operands[0], source.operands[0])
            return emit.constant(source.attributes["value"].get_splat_value())
        producer, out = self.graph.producer[item.value]
        there = through(item, out, loop_map)
        if (out.result, there) in self.inlined:
            return self.inlined[out.result, there]
        environment = {
            other.argument: self.argument(producer, n, there, replaced, is_clone=True)
            for n, other in enumerate(producer.inputs)
        }
        self.clone_body(producer, there, environment, replaced)
        self.inlined[out.result, there] = environment.get(out.value, out.value)
        return self.inlined[out.result, there]


def compose(map_: Map, loop_map: tuple[int, ...]) -> Map:
    """A map over the loops of a node as one over the loops of its cluster."""
    if isinstance(map_, tuple):
        return tuple(loop_map[d] for d in map_)
    loops = [mlir.AffineDimExpr.get(d) for d in loop_map]
    rank = max(loop_map, default=-1) + 1
    inner = mlir.AffineMap.get(rank, 0, loops)
    return mlir.AffineMap.get(rank, 0, [expression.compose(inner) for expression in map_.results])


def loops_of(map_: Map) -> list[int]:
    """The loops whose extents an operand determines."""
    if isinstance(map_, tuple):
        return list(map_)
    return [expression.position for expression in map_.results if isinstance(expression, mlir.AffineDimExpr)]


def affine_map(map_: Map, rank: int) -> mlir.Attribute:
    """The attribute of a map over `rank` loops."""
    results = [mlir.AffineDimExpr.get(d) for d in map_] if isinstance(map_, tuple) else map_.results
    return mlir.AffineMapAttr.get(mlir.AffineMap.get(rank, 0, list(results)))


def renumber_index(op: mlir.Operation, loop_map: tuple[int, ...]) -> None:
    """Renumber the loop of a `linalg.index`."""
    if op.name == "linalg.index":
        op.attributes["dim"] = emit.i64(loop_map[op.attributes["dim"].value])


def element_type(value: mlir.Value) -> mlir.Type:
    kind = value.type
    return kind.element_type if isinstance(kind, mlir.RankedTensorType) else kind


def fused_location(nodes: list[Node]) -> mlir.Location:
    """One location for all members."""
    locations = list(dict.fromkeys(node.op.location for node in nodes))
    return locations[0] if len(locations) == 1 else mlir.Location.fused(locations)
