"""Unroll windows: a reduction over a small window around each element becomes one elementwise operation.

Before:
    %s = linalg.generic {maps = [(i, k) -> (i + k), (i, k) -> (i)], iterators = ["parallel", "reduction"]}
        ins(%x : tensor<100xf32>) outs(%zeros : tensor<98xf32>) { %0 = arith.addf %out, %in }
After:
    %x0 = tensor.extract_slice %x[0] [98] [1]
    %x1 = tensor.extract_slice %x[1] [98] [1]
    %x2 = tensor.extract_slice %x[2] [98] [1]
    %s = linalg.generic {maps = [(i) -> (i), ...], iterators = ["parallel"]} ins(%zeros, %x0, %x1, %x2 : ...) outs(%e) {
      %0 = arith.addf %zero, %in0
      %1 = arith.addf %0, %in1
      %2 = arith.addf %1, %in2
    }

In this form a stencil can be fused with its neighbours and vectorised along the elements, and a time loop over it can
be tiled. The order of the reduction is preserved. Poolings of many rows or images are not unrolled: `mlirml-lower-conv`
has kernels for them, which take half the time.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping

from mlirml.core.dataclass import dataclass
from mlirml.core.no_match import matched
from mlirml.ir import emit
from mlirml.ir.bindings import block_ops, mlir, named_operations, replace_op
from mlirml.passes import NoMatch, Pass, register
from mlirml.passes.presence import LOOP_OR_REQUEST


@register(when=(*LOOP_OR_REQUEST, "linalg.window"), optional=True)
class UnrollWindowsPass(Pass):
    """Unroll windows of at most `most` elements."""

    most: int = 32

    def run(self, module: mlir.Operation) -> None:
        for op, window in matched(match_window, named_operations(module, ("linalg.generic",)), self.most):
            with op.location, mlir.InsertionPoint(op):
                result = build_unrolled(op, window)
            replace_op(op, result)


@dataclass(frozen=True)
class Window:
    """A reduction over a window: the extents of the loops, the loops over the window, the read operands, and for
    each dimension of each operand the loops whose sum indexes it."""

    sizes: tuple[int, ...]
    window_loops: tuple[int, ...]
    read: tuple[int, ...]
    accesses: tuple[tuple[tuple[int, ...], ...], ...]


def match_window(op: mlir.Operation, most: int) -> Window:
    """Match a reduction with one result over a small window of static shape; raises `NoMatch`."""
    iterator_types = [str(iterator) for iterator in op.attributes["iterator_types"]]
    window_loops = tuple(d for d, iterator in enumerate(iterator_types) if "reduction" in iterator)
    operands = list(op.operands)
    if not window_loops or len(op.results) != 1:
        raise NoMatch("not a reduction of one result")
    if not all(isinstance(x.type, mlir.RankedTensorType) and x.type.has_static_shape for x in operands):
        raise NoMatch("an operand is no tensor of known shape")
    accesses = tuple(dimensions_of(item.value) for item in op.attributes["indexing_maps"])
    out = [loop for added in accesses[-1] for loop in added]
    is_covered = sorted([*out, *window_loops]) == list(range(len(iterator_types)))
    if any(len(added) > 1 for added in accesses[-1]) or not is_covered:
        raise NoMatch("the result is spread out")
    sizes = [0] * len(iterator_types)
    for operand, dimensions in zip(operands, accesses, strict=True):
        for (loop, *more), extent in zip(dimensions, operand.type.shape, strict=True):
            if not more:
                sizes[loop] = extent
    count = 1
    for loop in window_loops:
        count *= sizes[loop]
    if 0 in sizes or not 1 < count <= most:
        raise NoMatch("the window has no extent that is known, or is big")
    block = op.regions[0].blocks[0]
    read = tuple(n for n, argument in enumerate(list(block.arguments)[:-1]) if any(True for _ in argument.uses))
    windows = [n for n in read if any(len(added) > 1 for added in accesses[n])]
    if not windows or any(inner.regions for inner in block_ops(block)):
        raise NoMatch("nothing slides")
    for n in read:
        if any(len(added) > 1 and (added[0] in window_loops) == (added[1] in window_loops) for added in accesses[n]):
            raise NoMatch("two loops of the window, or two other loops, index one dimension")
        loops = {loop for added in accesses[n] for loop in added}
        if n in windows and len(accesses[n][-1]) > 1 and any(len(added) == 1 for added in accesses[n]):
            raise NoMatch("a pooling of many rows or images, which has kernels of its own")
        if n not in windows and loops & set(window_loops) and not loops <= set(window_loops):
            raise NoMatch("a convolution of several channels")
    return Window(tuple(sizes), window_loops, read, accesses)


def dimensions_of(map_: mlir.AffineMap) -> tuple[tuple[int, ...], ...]:
    """For each result of a map the loops whose sum it is, at most two."""
    found = []
    for expression in map_.results:
        parts = [expression]
        if isinstance(expression, mlir.AffineAddExpr):
            parts = [expression.lhs, expression.rhs]
        if not all(isinstance(part, mlir.AffineDimExpr) for part in parts):
            raise NoMatch("a stride, or a constant index")
        found.append(tuple(part.position for part in parts))
    return tuple(found)


def build_unrolled(op: mlir.Operation, window: Window) -> mlir.Value:
    """The same result without loops over the window."""
    operands, out = list(op.operands), op.operands[len(op.operands) - 1]
    kept = [loop for loop in range(len(window.sizes)) if loop not in window.window_loops]
    number = {loop: mlir.AffineDimExpr.get(n) for n, loop in enumerate(kept)}
    inputs, maps = [out], [map_of(window.accesses[-1], number, len(kept))]
    all_offsets = list(itertools.product(*(range(window.sizes[loop]) for loop in window.window_loops)))
    for offsets in all_offsets:
        indices = dict(zip(window.window_loops, offsets, strict=True))
        for n in window.read:
            inputs.append(slice_at(operands[n], window.accesses[n], indices, window.sizes))
            maps.append(map_of(window.accesses[n], number, len(kept)))
    result = emit.empty(out.type)
    block = op.regions[0].blocks[0]

    def body(arguments: list[mlir.Value]) -> list[mlir.Value]:
        value, *rest = arguments[:-1]
        elements = iter(rest)
        for offsets in all_offsets:
            indices = dict(zip(window.window_loops, offsets, strict=True))
            value = clone_body(block, window, [next(elements) for _ in window.read], value, indices, kept)
        return [value]

    both = [*maps, map_of(window.accesses[-1], number, len(kept))]
    return emit.generic(inputs, [result], both, ["parallel"] * len(kept), body).results[0]


def clone_body(
    block: mlir.Block,
    window: Window,
    elements: list[mlir.Value],
    value: mlir.Value,
    indices: Mapping[int, int],
    kept: list[int],
) -> mlir.Value:
    """The body for one element of the window."""
    arguments = list(block.arguments)
    environment = {arguments[n]: element for n, element in zip(window.read, elements, strict=True)}
    environment[arguments[-1]] = value
    *inner, final = block_ops(block)
    for op in inner:
        if op.name != "linalg.index":
            emit.body_op(op, environment)
            continue
        loop = op.attributes["dim"].value
        index = indices.get(loop)
        environment[op.results[0]] = (
            emit.index(index)
            if index is not None
            else emit.value("linalg.index", (), mlir.IndexType.get(), dim=emit.i64(kept.index(loop)))
        )
    yielded = final.operands[0]
    return environment.get(yielded, yielded)


def map_of(
    dimensions: tuple[tuple[int, ...], ...], number: Mapping[int, mlir.AffineDimExpr], loops: int
) -> mlir.AffineMap:
    """The map of an operand's slice; dimensions that only the window indexes have been dropped."""
    results = [number[loop] for added in dimensions for loop in added if loop in number]
    return mlir.AffineMap.get(loops, 0, results)


def slice_at(
    operand: mlir.Value, dimensions: tuple[tuple[int, ...], ...], indices: Mapping[int, int], sizes: tuple[int, ...]
) -> mlir.Value:
    """The slice of an operand that is read for one element of the window."""
    offsets = [sum(indices.get(loop, 0) for loop in added) for added in dimensions]
    outer = [next((loop for loop in added if loop not in indices), None) for added in dimensions]
    extents = [1 if loop is None else sizes[loop] for loop in outer]
    shape = [extent for extent, loop in zip(extents, outer, strict=True) if loop is not None]
    if not any(loop in indices for added in dimensions for loop in added):
        return operand
    return emit.extract_slice(operand, offsets, extents, shape)
