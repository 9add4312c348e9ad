"""Pack slices: a slice of the last dimensions that loops read with a stride is copied once, if that makes them faster.

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
    """A slice at one index of the last dimensions, `last`: `op` takes `sizes` elements at `offsets` of the others.

    Packing it has a gain.
    """

    op: mlir.Operation
    last: tuple[int, ...]
    offsets: tuple[int, ...]
    sizes: tuple[int, ...]
    gain: float


@register(when=("tensor.extract_slice",), optional=True)
class PackSlicesPass(Pass):
    """Copy slices at one index of the last dimensions that loops read with a stride."""

    def run(self, module: mlir.Operation) -> None:
        groups: list[list[Slice]] = []
        for op in named_operations(module, ("tensor.extract_slice",)):
            with suppress(NoMatch):
                found = match_slice(op)
                group = next((slices for slices in groups if are_together(slices[0], found)), None)
                if group is None:
                    groups.append(group := [])
                group.append(found)
        for slices in groups:
            with suppress(NoMatch):
                pack(slices)


def are_together(one: Slice, other: Slice) -> bool:
    """True for slices of the same tensor, at the same index of its last dimensions, in one block."""
    return (one.op.operands[0], one.last, one.op.block) == (other.op.operands[0], other.last, other.op.block)


def match_slice(op: mlir.Operation) -> Slice:
    """A slice of static sizes; raises `NoMatch` for others."""
    source, result = op.operands[0], op.results[0]
    if not is_static_tensor(source) or not is_static_tensor(result):
        raise NoMatch("of dynamic sizes")
    sizes, shape = list(op.attributes["static_sizes"]), tuple(result.type.shape)
    rank = len(shape)
    if set(op.attributes["static_strides"]) != {1} or tuple(sizes[:rank]) != shape or set(sizes[rank:]) != {1}:
        raise NoMatch("not at one index of the last dimensions")
    if not shape or shape[-1] == 1 or math.prod(list(source.type.shape)[rank:]) == 1:
        raise NoMatch("no rows, or they have no stride")
    offsets = slice_offsets(op)
    if any(not isinstance(offset, int) for offset in offsets):
        raise NoMatch("of dynamic offsets")
    numbers = tuple(int(offset) for offset in offsets)
    return Slice(op, numbers[rank:], numbers[:rank], shape, gain_of(result))


def gain_of(part: mlir.Value) -> float:
    """The gain of packing a slice, through slices of it; raises `NoMatch` if it is read otherwise than by loops."""
    shape, gain = part.type.shape, 0.0
    for use in part.uses:
        reader = use.owner.operation
        if reader.name == "tensor.extract_slice" and is_static_tensor(reader.results[0]):
            gain += gain_of(reader.results[0])
        elif reader.name != "linalg.generic" or use.operand_number >= len(reader.operands) - len(reader.results):
            raise NoMatch("read by another operation")
        elif not is_parallel(reader):
            raise NoMatch("read by a reduction")
        elif shape and shape[-1] <= _SHORT:
            each = _SCALAR * instructions(block_ops(reader.regions[0].blocks[0]))
            gain += math.prod(shape) * min(each, _MOST)
        else:
            gain += math.prod(shape) * _STRIDED
    return gain


def pack(slices: Sequence[Slice]) -> None:
    """Read slices at one index from a copy of what they cover; raises `NoMatch` if that does not pay."""
    lows = [min(numbers) for numbers in zip(*(each.offsets for each in slices))]
    ends = [[low + size for low, size in zip(each.offsets, each.sizes)] for each in slices]
    sizes = [max(numbers) - low for low, numbers in zip(lows, zip(*ends))]
    count = math.prod(sizes)
    if count < _FEWEST or sum(each.gain for each in slices) < _COPIED * count:
        raise NoMatch("few elements, or few reads of them")
    with slices[0].op.location, mlir.InsertionPoint(slices[0].op):
        source, last = slices[0].op.operands[0], slices[0].last
        packed = copied(emit.extract_slice(source, [*lows, *last], [*sizes, *(1 for _ in last)], sizes))
    for each in slices:
        with each.op.location, mlir.InsertionPoint(each.op):
            offsets = [offset - low for offset, low in zip(each.offsets, lows)]
            each.op.results[0].replace_all_uses_with(emit.extract_slice(packed, offsets, each.sizes))
        each.op.erase()


def copied(tensor: mlir.Value) -> mlir.Value:
    """A copy of a tensor."""
    rank = len(tensor.type.shape)
    maps, loops = [mlir.AffineMap.get_identity(rank)] * 2, ["parallel"] * rank
    return emit.generic([tensor], [emit.empty(tensor.type)], maps, loops, lambda arguments: arguments[:1]).results[0]
