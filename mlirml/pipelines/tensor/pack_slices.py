"""Pack slices: a slice of the last dimension that loops read with a stride is copied once, if that makes them faster.

Before:
    %a = tensor.extract_slice %u[0, 0, 1] [79, 11, 1] [1, 1, 1] : tensor<81x11x3xf64> to tensor<79x11xf64>
    %b = tensor.extract_slice %u[2, 0, 1] [79, 11, 1] [1, 1, 1] : tensor<81x11x3xf64> to tensor<79x11xf64>
    %y = linalg.generic ... ins(%a, %b) ...
After:
    %part = tensor.extract_slice %u[0, 0, 1] [81, 11, 1] [1, 1, 1] : tensor<81x11x3xf64> to tensor<81x11xf64>
    %packed = linalg.generic ... ins(%part) outs(%empty) { linalg.yield } -> tensor<81x11xf64>
    %a = tensor.extract_slice %packed[0, 0] [79, 11] [1, 1] : tensor<81x11xf64> to tensor<79x11xf64>
    %b = tensor.extract_slice %packed[2, 0] [79, 11] [1, 1] : tensor<81x11xf64> to tensor<79x11xf64>
    %y = linalg.generic ... ins(%a, %b) ...

Arrays of which the last index is the step of time, the coordinate or the channel are read so. LLVM makes no vectors of
loops over short rows with a stride, and those over long ones take more instructions for each vector.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress

from mlirml.analysis.cost import instructions
from mlirml.analysis.structured import is_parallel
from mlirml.analysis.values import is_static_tensor
from mlirml.core.dataclass import dataclass
from mlirml.ir import emit
from mlirml.ir.bindings import block_ops, mlir, named_operations
from mlirml.ir.rank_zero import slice_offsets
from mlirml.passes import NoMatch, Pass, register

_FEWEST = 1024
"""The fewest elements of a slice that is copied."""
_SHORT = 32
"""The longest row of which LLVM makes no vectors."""
_SCALAR, _STRIDED, _MOST = 1.0, 2.0, 32.0
"""The gain for each element that is read in short rows, for each instruction of the loop up to `_MOST`, and for one in
long rows.
"""
_COPIED = 12.0
"""The price of copying an element, in the same unit: fractions of a nanosecond."""


@dataclass(frozen=True)
class Slice:
    """A slice of the last dimension: `op` takes `sizes` elements at `offsets` of the others; packing it has a gain."""

    op: mlir.Operation
    offsets: tuple[int, ...]
    sizes: tuple[int, ...]
    gain: float


@register(when=("tensor.extract_slice",), optional=True)
class PackSlicesPass(Pass):
    """Copy slices of the last dimension that loops read with a stride."""

    def run(self, module: mlir.Operation) -> None:
        groups: list[tuple[mlir.Value, int, mlir.Block, list[Slice]]] = []
        for op in named_operations(module, ("tensor.extract_slice",)):
            with suppress(NoMatch):
                last, found = match_slice(op)
                key = op.operands[0], last, op.block
                for *other, slices in groups:
                    if tuple(other) == key:
                        slices.append(found)
                        break
                else:
                    groups.append((*key, [found]))
        for source, last, _, slices in groups:
            with suppress(NoMatch):
                pack(source, last, slices)


def match_slice(op: mlir.Operation) -> tuple[int, Slice]:
    """The index in the last dimension, and the slice; raises `NoMatch` for others."""
    source, result = op.operands[0], op.results[0]
    if not is_static_tensor(source) or not is_static_tensor(result) or len(source.type.shape) < 2:
        raise NoMatch("of dynamic sizes, or of a vector")
    offsets, sizes = slice_offsets(op), list(op.attributes["static_sizes"])
    shape = list(result.type.shape)
    if sizes[-1] != 1 or source.type.shape[-1] == 1 or set(op.attributes["static_strides"]) != {1}:
        raise NoMatch("not of one index of the last dimension")
    if any(not isinstance(offset, int) for offset in offsets) or not shape or shape[-1] == 1 or sizes[:-1] != shape:
        raise NoMatch("dynamic, or of other dimensions too")
    *others, last = (int(offset) for offset in offsets)
    return last, Slice(op, tuple(others), tuple(sizes[:-1]), math.prod(shape) * gain_of(op))


def gain_of(op: mlir.Operation) -> float:
    """The gain for each element of a slice if it is packed; raises `NoMatch` if it is read otherwise than by loops."""
    result, gain = op.results[0], 0.0
    for use in result.uses:
        reader = use.owner.operation
        if reader.name != "linalg.generic" or use.operand_number >= len(reader.operands) - len(reader.results):
            raise NoMatch("read by another operation")
        if not is_parallel(reader):
            raise NoMatch("read by a reduction")
        if result.type.shape[-1] <= _SHORT:
            gain += min(_SCALAR * instructions(block_ops(reader.regions[0].blocks[0])), _MOST)
        else:
            gain += _STRIDED
    return gain


def pack(source: mlir.Value, last: int, slices: Sequence[Slice]) -> None:
    """Read slices of one index from a copy of what they cover; raises `NoMatch` if that does not pay."""
    lows = [min(numbers) for numbers in zip(*(each.offsets for each in slices))]
    ends = [[low + size for low, size in zip(each.offsets, each.sizes)] for each in slices]
    sizes = [max(numbers) - low for low, numbers in zip(lows, zip(*ends))]
    count = math.prod(sizes)
    if count < _FEWEST or sum(each.gain for each in slices) < _COPIED * count:
        raise NoMatch("few elements, or few reads of them")
    with slices[0].op.location, mlir.InsertionPoint(slices[0].op):
        part = emit.extract_slice(source, [*lows, last], [*sizes, 1], sizes)
        identity = mlir.AffineMap.get_identity(len(sizes))
        packed = emit.generic(
            [part], [emit.empty(part.type)], [identity] * 2, ["parallel"] * len(sizes), lambda arguments: arguments[:1]
        ).results[0]
    for each in slices:
        with each.op.location, mlir.InsertionPoint(each.op):
            offsets = [offset - low for offset, low in zip(each.offsets, lows)]
            each.op.results[0].replace_all_uses_with(emit.extract_slice(packed, offsets, each.sizes))
        each.op.erase()
