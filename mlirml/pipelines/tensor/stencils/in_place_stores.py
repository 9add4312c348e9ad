"""Tell stores of slices that happen in place: a large tensor stays where it is, and only the slices are written."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence

from mlirml.ir.bindings import mlir
from mlirml.pipelines.tensor.stencils.graph import Access, Point, Put, ShiftGraph, Take

_LOOPS = ("scf.for", "scf.while")
_TEMPORARY = 2
"""How often elements are moved that are stored to a temporary first, or computed twice."""


def stores_into_carried(graph: ShiftGraph, last: mlir.Value) -> list[mlir.Value]:
    """The results of the stores that make `last` of a tensor that a loop carries, the last one first."""
    found: list[mlir.Value] = []
    value = last
    while isinstance(node := graph.nodes.get(value), Put):
        found.append(value)
        value = node.into
    block = graph.ops[-1].block
    is_carried = value.owner == block and block.owner.operation.name in _LOOPS
    return found if is_carried and isinstance(value.type, mlir.RankedTensorType) else []


def is_in_place(
    graph: ShiftGraph,
    stores: Sequence[mlir.Value],
    reads: Callable[[mlir.Value], Iterable[Point]],
    gains: Callable[[mlir.Value], bool],
) -> bool:
    """True if to store slices takes less than to write all of the tensor anew.

    That is so where the old contents are not needed behind a store, nor, but for small slices, while it is computed.
    `reads` gives what an element of a tensor is computed from. Large slices are better computed together with other
    tensors where they gain from being computed anew: what they share would have to be computed twice.
    """
    puts = {value: node for value in stores if isinstance(node := graph.nodes[value], Put)}
    versions = {*stores, *(put.into for put in puts.values())}
    moved, whole = 0, math.prod(list[int](stores[0].type.shape))
    for value, put in puts.items():
        if any(position > graph.position[value] for position in readers(graph, put.into, value)):
            return False
        if gains(put.source) or not all(is_apart(put, at) for read, at in reads(put.source) if read in versions):
            moved += _TEMPORARY * math.prod(put.sizes)
    return moved < whole


def readers(graph: ShiftGraph, value: mlir.Value, new: mlir.Value) -> Iterator[int]:
    """Where a tensor is read, itself or through slices, but for the store into it that makes `new`."""
    for use in value.uses:
        op = use.owner.operation
        while op.block != graph.ops[-1].block:
            op = op.parent.operation
        if not op.results:
            yield len(graph.ops)
        elif op.results[0] != new:
            yield graph.position[op.results[0]]
            if isinstance(graph.nodes.get(op.results[0]), Take):
                yield from readers(graph, op.results[0], new)


def is_apart(put: Put, access: Access) -> bool:
    """True if what is read for an element that is stored is what it takes the place of, or outside of the slice."""
    own: list[tuple[int | None, int]] = [(None, offset) for offset in put.offsets]
    for number, dim in enumerate(put.kept):
        own[dim] = (number, put.offsets[dim])
    if tuple(own) == access:
        return True
    for (loop, shift), offset, size in zip(access, put.offsets, put.sizes, strict=True):
        extent = 1 if loop is None else put.source.type.shape[loop]
        if shift + extent <= offset or shift >= offset + size:
            return True
    return False
