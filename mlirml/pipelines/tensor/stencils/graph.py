"""Elementwise operations of a block connected by slices, and the elements from which an element is computed."""

from __future__ import annotations

from collections.abc import Container, Iterator
from typing import TypeAlias

from mlirml.analysis.dimensions import kept_dims, slice_numbers
from mlirml.analysis.values import used_values
from mlirml.core.dataclass import dataclass
from mlirml.core.no_match import NoMatch
from mlirml.ir.bindings import block_ops, defining_op, mlir
from mlirml.pipelines.tensor.fusion.nodes import splat

Access: TypeAlias = "tuple[tuple[int | None, int], ...]"
"""For each dimension of a tensor the index of a read: a loop, or None, plus a constant."""
Box: TypeAlias = "tuple[tuple[int, int], ...]"
"""For each loop the first index, and the one after the last."""
Point: TypeAlias = "tuple[mlir.Value, Access]"

_MOST_ELEMENTS = 64
"""The maximum number of stores of single elements in a block, such as boundary values: each read visits all of them."""


class Split(Exception):
    """The elements that are read differ within a box, before and from index `at` of a loop."""

    def __init__(self, loop: int, at: int) -> None:
        super().__init__(loop, at)
        self.loop, self.at = loop, at


@dataclass(frozen=True)
class Compute:
    """An elementwise operation: its inputs, and the loops that index each of their dimensions."""

    op: mlir.Operation
    inputs: tuple[tuple[mlir.Value, tuple[int, ...]], ...]


@dataclass(frozen=True)
class Take:
    """A slice of `source`: its offsets, and the dimensions that it keeps."""

    source: mlir.Value
    offsets: tuple[int, ...]
    kept: tuple[int, ...]


@dataclass(frozen=True)
class Put:
    """`into` with `source` inserted at `offsets`; `into` may be a scalar, which is a splat."""

    source: mlir.Value
    into: mlir.Value
    offsets: tuple[int, ...]
    sizes: tuple[int, ...]
    kept: tuple[int, ...]


@dataclass(frozen=True)
class Constant:
    """A splat of a scalar; None for an uninitialized tensor."""

    scalar: mlir.Value | mlir.Attribute | None


Node: TypeAlias = "Compute | Take | Put | Constant"


class StencilGraph:
    """The definitions of the tensors of a block; tensors that are not in `nodes` are read from memory."""

    def __init__(self, block: mlir.Block) -> None:
        self.ops = block_ops(block)
        self.position: dict[mlir.Value, int] = {}
        self.nodes: dict[mlir.Value, Node] = {}
        self._operands: dict[int, list[mlir.Value]] = {}
        followed = sum(map(stores_one, self.ops)) <= _MOST_ELEMENTS
        for number, op in enumerate(self.ops):
            for result in op.results:
                self.position[result] = number
            if len(op.results) == 1 and is_static(op.results[0]) and (followed or not stores_one(op)):
                node = match_node(op)
                if node is not None:
                    self.nodes[op.results[0]] = node

    def reduce(self, point: Point, box: Box, kept: Container[mlir.Value]) -> Point | Constant:
        """The element that an element is equal to through slices: computed, read, or a constant; `kept` ones are read.

        Raises `Split` if it is not the same for all of the box.
        """
        value, access = point
        while True:
            if value in kept:
                return value, access
            node = self.nodes.get(value)
            if isinstance(node, Constant):
                return node
            if isinstance(node, Take):
                there: list[tuple[int | None, int]] = [(None, offset) for offset in node.offsets]
                for dim, (loop, shift) in zip(node.kept, access, strict=True):
                    there[dim] = (loop, shift + node.offsets[dim])
                value, access = node.source, tuple(there)
            elif isinstance(node, Put):
                if is_inside(node, access, box):
                    value = node.source
                    access = tuple((access[d][0], access[d][1] - node.offsets[d]) for d in node.kept)
                elif isinstance(node.into.type, mlir.RankedTensorType):
                    value = node.into
                else:
                    return Constant(node.into)
            else:
                return value, access

    def reads(self, point: Point) -> Iterator[Point]:
        """The elements that computing an element reads."""
        value, access = point
        node = self.nodes[value]
        assert isinstance(node, Compute)
        for source, loops in node.inputs:
            yield source, tuple(access[loop] for loop in loops)

    def sources(self, value: mlir.Value) -> tuple[mlir.Value, ...]:
        """The tensors from which one is computed or composed."""
        node = self.nodes.get(value)
        if isinstance(node, Compute):
            return tuple(source for source, _ in node.inputs)
        if isinstance(node, Take):
            return (node.source,)
        if isinstance(node, Put):
            return (node.source, node.into)
        return ()

    def operands(self, number: int) -> list[mlir.Value]:
        """The values that an operation and its regions use."""
        found = self._operands.get(number)
        if found is None:
            found = self._operands[number] = used_values(self.ops[number])
        return found


def is_inside(node: Put, access: Access, box: Box) -> bool:
    """True if a read is inside of the inserted slice for all of a box, False for nothing of it; raises `Split`."""
    result, split = True, None
    for (loop, shift), offset, size in zip(access, node.offsets, node.sizes, strict=True):
        low, high = (shift, shift + 1) if loop is None else (box[loop][0] + shift, box[loop][1] + shift)
        if high <= offset or low >= offset + size:
            return False
        if (low < offset or high > offset + size) and split is None:
            assert loop is not None
            result, split = False, Split(loop, (offset if low < offset else offset + size) - shift)
    if split is not None:
        raise split
    return result


def stores_one(op: mlir.Operation) -> bool:
    """True if an operation stores a single element into a tensor."""
    return op.name == "tensor.insert_slice" and set(mlir.DenseI64ArrayAttr(op.attributes["static_sizes"])) <= {1}


def is_static(value: mlir.Value) -> bool:
    return isinstance(value.type, mlir.RankedTensorType) and bool(value.type.has_static_shape)


def match_node(op: mlir.Operation) -> Node | None:
    """The definition of an operation's result, if its elements can be traced through it."""
    if op.name == "linalg.generic":
        return match_compute(op)
    if op.name in ("tensor.extract_slice", "tensor.insert_slice"):
        return match_slice(op)
    if op.name == "tensor.pad":
        return match_pad(op)
    if op.name == "tensor.empty":
        return Constant(None)
    filled = splat(op.results[0])
    if filled is None:
        return None
    if filled.name == "linalg.fill":
        return Constant(filled.operands[0])
    return Constant(mlir.DenseElementsAttr(filled.attributes["value"]).get_splat_value())


def match_compute(op: mlir.Operation) -> Compute | None:
    """A generic of parallel loops in the order of its result, which reads neither its init nor loop indices."""
    maps = [attribute.value for attribute in op.attributes["indexing_maps"]]
    body = op.regions[0].blocks[0]
    if maps[-1] != mlir.AffineMap.get_identity(maps[-1].n_dims) or any(True for _ in body.arguments[-1].uses):
        return None
    if any("parallel" not in str(kind) for kind in op.attributes["iterator_types"]):
        return None
    if any(inner.name == "linalg.index" or inner.regions or not inner.results for inner in block_ops(body)[:-1]):
        return None
    inputs = []
    for operand, map_ in zip(list(op.operands)[:-1], maps[:-1], strict=True):
        results = list(map_.results)
        if not is_static(operand) or not all(isinstance(e, mlir.AffineDimExpr) for e in results):
            return None
        inputs.append((operand, tuple(e.position for e in results)))
    return Compute(op, tuple(inputs))


def match_slice(op: mlir.Operation) -> Take | Put | None:
    """A slice with unit strides and static offsets."""
    offsets, sizes, strides = map(tuple, slice_numbers(op))
    takes = op.name == "tensor.extract_slice"
    if (
        len(op.operands) > (1 if takes else 2)
        or any(stride != 1 for stride in strides)
        or not is_static(op.operands[0])
    ):
        return None
    part = (op.results[0] if takes else op.operands[0]).type.shape
    try:
        kept = kept_dims(op, part)
    except NoMatch:
        return None
    if takes:
        return Take(op.operands[0], offsets, kept)
    return Put(op.operands[0], op.operands[1], offsets, sizes, kept)


def match_pad(op: mlir.Operation) -> Put | None:
    """A pad by one scalar from outside."""
    filler = block_ops(op.regions[0].blocks[0])[-1].operands[0]
    owner = defining_op(filler)
    body = op.regions[0].blocks[0]
    if len(op.operands) > 1 or not is_static(op.operands[0]):
        return None
    if filler.owner == body or (owner is not None and owner.block == body):
        return None
    low = tuple(mlir.DenseI64ArrayAttr(op.attributes["static_low"]))
    high = tuple(mlir.DenseI64ArrayAttr(op.attributes["static_high"]))
    if any(number < 0 for number in (*low, *high)):
        return None
    sizes = tuple(op.operands[0].type.shape)
    return Put(op.operands[0], filler, low, sizes, tuple(range(len(sizes))))
