"""Find stores of slices that should be in place: a large tensor stays in its buffer, and only slices are written."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence

from mlirml.analysis.traits import SEQUENTIAL_LOOPS
from mlirml.ir.bindings import mlir
from mlirml.pipelines.tensor.stencils.graph import Access, Point, Put, StencilGraph, Take

_TEMPORARY = 2
"""The cost factor of elements that are stored to a temporary first, or computed twice."""


def stores_into_carried(graph: StencilGraph, last: mlir.Value) -> list[mlir.Value]:
    """The results of the stores between a loop-carried tensor and `last`, the last one first."""
    found: list[mlir.Value] = []
    value = last
    while isinstance(node := graph.nodes.get(value), Put):
        found.append(value)
        value = node.into
    block = graph.ops[-1].block
    is_carried = value.owner == block and block.owner.operation.name in SEQUENTIAL_LOOPS
    return found if is_carried and isinstance(value.type, mlir.RankedTensorType) else []


def is_in_place(
    graph: StencilGraph,
    stores: Sequence[mlir.Value],
    reads: Callable[[mlir.Value], Iterable[Point]],
    gains: Callable[[mlir.Value], bool],
) -> bool:
    """True if storing slices takes less time than recomputing the whole tensor.

    That is so if the old contents are not read after a store, nor, except for small slices, while it is computed.
    `reads` returns the elements from which an element of a tensor is computed. Large slices are better computed
    together with other tensors if they gain from being recomputed: common elements would have to be computed twice.
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


def readers(graph: StencilGraph, value: mlir.Value, new: mlir.Value) -> Iterator[int]:
    """The positions of operations that read a tensor, directly or through slices, except for the store giving `new`."""
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
    """True if the read is the overwritten element itself, or does not overlap the written slice."""
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
