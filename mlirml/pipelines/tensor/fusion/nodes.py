"""Nodes of fusion: the summary of one structured operation on tensors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from typing import TypeAlias

from mlirml.analysis.cost import is_costly
from mlirml.analysis.costs import costs
from mlirml.core.dataclass import dataclass, replace
from mlirml.ir.bindings import block_ops, defining_op, linalg, mlir
from mlirml.passes import NoMatch

Map: TypeAlias = "tuple[int, ...] | mlir.AffineMap"
"""A projected permutation as loop numbers, or any other map."""


_NAMED = ("linalg.transpose", "linalg.broadcast", "linalg.copy", "linalg.map")
FREE = ("arith.constant", "linalg.index")


@dataclass(frozen=True)
class Input:
    """An operand: the argument of the body that reads it, and its map."""

    value: mlir.Value
    map: Map
    argument: mlir.Value


@dataclass(frozen=True)
class Out:
    """A result: its map, its init and the argument that reads the init (None if nothing does)."""

    result: mlir.Value
    map: Map
    init: mlir.Value
    argument: mlir.Value | None
    value: mlir.Value


@dataclass(frozen=True)
class Shape:
    """An operand that determines the extents of some loops by its type."""

    kind: mlir.Type
    map: Map


@dataclass(eq=False)
class Node:
    """A structured operation: iteration space, inputs, results and body.

    `cost` counts the operations of the body and of producers to inline into it; None if one of them is expensive.
    """

    op: mlir.Operation
    position: int
    sizes: tuple[int, ...]
    reduction: tuple[bool, ...]
    inputs: tuple[Input, ...]
    outs: tuple[Out, ...]
    body: tuple[mlir.Operation, ...]
    captures: tuple[mlir.Value, ...]
    shapes: tuple[Shape, ...]
    untidy: bool
    cost: int | None = None
    clones: int = 0
    inlined: set[int] = field(default_factory=set)

    @property
    def rank(self) -> int:
        return len(self.sizes)

    @property
    def is_elementwise(self) -> bool:
        return not any(self.reduction)

    @property
    def is_search(self) -> bool:
        """True for a reduction whose accumulators depend on each other, such as argmax."""
        return len(self.outs) > 1 and not self.is_elementwise

    @property
    def reduced(self) -> tuple[int, ...]:
        return tuple(d for d, reduced in enumerate(self.reduction) if reduced)

    def dependencies(self) -> list[mlir.Value]:
        """Every value from outside that the operation uses."""
        return [*(i.value for i in self.inputs), *(o.init for o in self.outs), *self.captures]

    def unfused(self, is_cloned: bool) -> Node:
        """The node before producers were inlined into it, and it into others, unless that is known."""
        return replace(self, cost=own_cost(self.body), clones=int(is_cloned), inlined=set())

    def is_cheap(self) -> bool:
        """True if recomputing it several times costs less than storing its result."""
        return self.is_elementwise and self.cost is not None and costs().is_cheap(self.cost) and len(self.outs) == 1


Clones: TypeAlias = "set[tuple[Node, tuple[int, ...]]]"
"""Producers that are inlined into a node, and their loops: those that a walk over them has visited."""


def is_permutation(map_: Map, rank: int) -> bool:
    """True if a map has every one of `rank` loops once."""
    return isinstance(map_, tuple) and len(map_) == rank


def read_map(map_: mlir.AffineMap) -> Map:
    """The loop numbers of a map that is a projected permutation, else the map."""
    results = map_.results
    if all(isinstance(expression, mlir.AffineDimExpr) for expression in results):
        dims = tuple(expression.position for expression in results)
        if len(set(dims)) == len(dims):
            return dims
    return map_


def is_window(map_: Map) -> bool:
    """True if a map adds loops, as those of convolutions and poolings do."""
    return not isinstance(map_, tuple) and any(
        isinstance(e, mlir.AffineAddExpr) and not isinstance(e.rhs, mlir.AffineConstantExpr) for e in map_.results
    )


class MapCache:
    """Reads indexing maps, each distinct attribute once."""

    def __init__(self) -> None:
        self._seen: dict[mlir.Attribute, tuple[Map, int]] = {}

    def read(self, attribute: mlir.Attribute) -> tuple[Map, int]:
        """The map and its number of loops."""
        found = self._seen.get(attribute)
        if found is None:
            map_ = attribute.value
            found = self._seen[attribute] = (read_map(map_), map_.n_dims)
        return found


def may_fuse(op: mlir.Operation) -> bool:
    """True for an elementwise operation or a reduction, judged by its name."""
    return op.name == "linalg.generic" or op.name in _NAMED


def match_node(op: mlir.Operation, position: int, maps: MapCache) -> Node:
    """Match a generic, or a named operation that only moves data; raises NoMatch for other operations."""
    if not may_fuse(op):
        raise NoMatch("not an elementwise operation or reduction")
    results, operands = list(op.results), list(op.operands)
    if not results:
        raise NoMatch("the operation has no tensor results")
    attribute = op.attributes["indexing_maps"] if op.name == "linalg.generic" else linalg.get_indexing_maps(op)
    read = [maps.read(item) for item in attribute]
    if any(is_window(map_) for map_, _ in read):
        raise NoMatch("a window slides over an operand: it has a schedule of its own")
    rank = read[0][1]
    first_out = len(operands) - len(results)
    block = op.regions[0].blocks[0]
    arguments, ops = list(block.arguments), block_ops(block)
    out_map = read[first_out][0]
    if len({is_permutation(map_, rank) for map_, _ in read[first_out:]}) > 1:
        raise NoMatch("some of its results are reductions, others are not: it is the result of fusion")
    sizes = loop_sizes(operands, [map_ for map_, _ in read], rank)
    reduction = reductions(op, out_map, rank)
    yields = list(ops[-1].operands)
    used = [any(True for _ in argument.uses) for argument in arguments]
    inputs = [Input(operands[n], read[n][0], arguments[n]) for n in range(first_out) if used[n]]
    outputs = []
    for n, result in enumerate(results):
        number = first_out + n
        argument = arguments[number] if used[number] else None
        if argument is not None and not any(reduction):
            inputs.append(Input(operands[number], read[number][0], argument))
            argument = None
        outputs.append(Out(result, read[number][0], operands[number], argument, yields[n]))
    keys = {(item.value, item.map) for item in inputs}
    untidy = len(inputs) < first_out or len(keys) < len(inputs) or op.name in _NAMED
    captures = captured(ops[:-1], arguments, yields)
    return Node(
        op,
        position,
        sizes,
        reduction,
        tuple(inputs),
        tuple(outputs),
        tuple(ops[:-1]),
        captures,
        tuple(Shape(operands[n].type, read[n][0]) for n in range(first_out)) if any(reduction) else (),
        untidy,
        own_cost(ops[:-1]),
    )


def loop_sizes(operands: Sequence[mlir.Value], maps: Sequence[Map], rank: int) -> tuple[int, ...]:
    """The extent of every loop."""
    sizes = [-1] * rank
    for operand, map_ in zip(reversed(operands), reversed(maps), strict=True):
        if -1 not in sizes:
            break
        if not isinstance(operand.type, mlir.RankedTensorType):
            continue
        for expression, size in zip(map_ if isinstance(map_, tuple) else map_.results, operand.type.shape, strict=True):
            if isinstance(expression, int):
                sizes[expression] = size
            elif isinstance(expression, mlir.AffineDimExpr):
                sizes[expression.position] = size
    if -1 in sizes or any(size < 0 for size in sizes):
        raise NoMatch("an extent is not known")
    return tuple(sizes)


def reductions(op: mlir.Operation, out_map: Map, rank: int) -> tuple[bool, ...]:
    """For each loop True if it is a reduction."""
    if is_permutation(out_map, rank):
        return (False,) * rank
    if op.name == "linalg.generic":
        return tuple("reduction" in str(kind) for kind in op.attributes["iterator_types"])
    return (False,) * rank


def captured(
    ops: Sequence[mlir.Operation], arguments: Sequence[mlir.Value], yields: Sequence[mlir.Value]
) -> tuple[mlir.Value, ...]:
    """Values from outside that the body uses; NoMatch for a body with regions."""
    local = set(arguments)
    outside: dict[mlir.Value, None] = {}
    for op in ops:
        if op.regions:
            raise NoMatch("the body has regions")
        for operand in op.operands:
            if operand not in local:
                outside[operand] = None
        local.update(op.results)
    for value in yields:
        if value not in local:
            outside[value] = None
    return tuple(outside)


def own_cost(ops: Sequence[mlir.Operation]) -> int | None:
    """The number of operations of a body; None if one of them is expensive."""
    cost = 0
    for op in ops:
        name = op.name
        if name in FREE:
            continue
        if name.startswith("tensor.") or is_costly(op):
            return None
        cost += 1
    return cost


def through(item: Input, out: Out, loop_map: tuple[int, ...]) -> tuple[int, ...]:
    """The loops of a producer in the cluster, through an input that reads it."""
    assert isinstance(item.map, tuple) and isinstance(out.map, tuple)
    there = [0] * len(out.map)
    for theirs, own in zip(out.map, item.map, strict=True):
        there[theirs] = loop_map[own]
    return tuple(there)


def splat(value: mlir.Value) -> mlir.Operation | None:
    """The `linalg.fill` or splat `arith.constant` that defines a tensor."""
    op = defining_op(value)
    if op is None:
        return None
    if op.name == "linalg.fill":
        return op
    if op.name == "arith.constant":
        attribute = op.attributes["value"]
        if isinstance(attribute, mlir.DenseElementsAttr) and attribute.is_splat:
            return op
    return None
