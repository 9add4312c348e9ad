"""Share joins: an array that is part of a larger join of arrays is a view of that.

Before:
    %0 = tensor.insert_slice %a into %e0[0, 0] [4, 64] [1, 1] : tensor<4x64xf32> into tensor<4x96xf32>
    %ab = tensor.insert_slice %b into %0[0, 64] [4, 32] [1, 1] : tensor<4x32xf32> into tensor<4x96xf32>
    %c = linalg.generic ... ins(%ab)
    %1 = tensor.insert_slice %a into %e1[0, 0] [4, 64] [1, 1] : tensor<4x64xf32> into tensor<4x128xf32>
    %2 = tensor.insert_slice %b into %1[0, 64] [4, 32] [1, 1] : tensor<4x32xf32> into tensor<4x128xf32>
    %abc = tensor.insert_slice %c into %2[0, 96] [4, 32] [1, 1] : tensor<4x32xf32> into tensor<4x128xf32>
After:
    %1 = tensor.insert_slice %a into %e1[0, 0] [4, 64] [1, 1] : tensor<4x64xf32> into tensor<4x128xf32>
    %2 = tensor.insert_slice %b into %1[0, 64] [4, 32] [1, 1] : tensor<4x32xf32> into tensor<4x128xf32>
    %ab = tensor.extract_slice %2[0, 0] [4, 96] [1, 1] : tensor<4x128xf32> to tensor<4x96xf32>
    %c = linalg.generic ... ins(%ab)
    %abc = tensor.insert_slice %c into %2[0, 96] [4, 32] [1, 1] : tensor<4x32xf32> into tensor<4x128xf32>

A list of arrays that grows and is joined each time (the dense blocks of Huang et al., "Densely connected convolutional
networks", 2017) is stored once, not once for each join: n copies for n arrays, not n * n / 2.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from mlirml.analysis.cost import element_bytes
from mlirml.analysis.values import has_one_use
from mlirml.core.dataclass import dataclass, replace
from mlirml.core.no_match import matched
from mlirml.ir import emit
from mlirml.ir.bindings import block_ops, defining_op, mlir, named_operations
from mlirml.ir.rank_zero import slice_offsets
from mlirml.passes import NoMatch, Pass, register
from mlirml.passes.presence import Several

_INSERT = "tensor.insert_slice"
_RUN = 256
"""The fewest bytes in a row of a view, unless all of it is one: its readers go from row to row."""


@dataclass(frozen=True)
class Join:
    """Arrays that are stored beside each other along an axis; `op` stores the last of them."""

    op: mlir.Operation
    shape: tuple[int, ...]
    axis: int
    sources: tuple[mlir.Value, ...]
    sizes: tuple[int, ...]

    def offsets(self, number: int) -> list[int]:
        """The offsets at which an array is stored."""
        return self._along(sum(self.sizes[:number]), 0)

    def sizes_of(self, number: int) -> list[int]:
        """The sizes of an array, of as many dimensions as the join has."""
        return self._along(self.sizes[number], None)

    def _along(self, number: int, other: int | None) -> list[int]:
        return [number if d == self.axis else size if other is None else other for d, size in enumerate(self.shape)]


@register(when=Several(3, ("tensor.insert_slice",)), optional=True)
class ShareJoinsPass(Pass):
    """Read joins of arrays from larger joins of the same arrays."""

    def run(self, module: mlir.Operation) -> None:
        found: dict[mlir.Value, Join] = {}
        for op, join in matched(match_join, named_operations(module, (_INSERT,)), found):
            found[op.results[0]] = join
        remaining = sorted(found.values(), key=lambda join: len(join.sources))
        while remaining:
            whole = remaining.pop()
            parts = [(join, start) for join in remaining if (start := position_in(join, whole)) is not None]
            if parts:
                new = share(whole, parts)
                remaining = [
                    replace(join, sources=tuple(new.get(source, source) for source in join.sources))
                    for join in remaining
                    if all(join is not part for part, _ in parts)
                ]


def match_join(op: mlir.Operation, earlier: dict[mlir.Value, Join]) -> Join:
    """The join that an operation completes, of the arrays of `earlier` joins, too; raises `NoMatch` for others."""
    if is_continued(op):
        raise NoMatch("more is stored")
    inserts = [op]
    while (before := defining_op(inserts[-1].operands[1])) is not None and before.name == _INSERT:
        if not has_one_use(before.results[0]) or before.block != op.block:
            raise NoMatch("part of the join is read on its own")
        inserts.append(before)
    if before is None or before.name != "tensor.empty" or not op.results[0].type.has_static_shape:
        raise NoMatch("no join of arrays of static shapes")
    shape = tuple(op.results[0].type.shape)
    sizes = [list(each.attributes["static_sizes"]) for each in inserts]
    axes = {d for each in sizes for d, size in enumerate(shape) if each[d] != size}
    if len(axes) != 1:
        raise NoMatch("no join along one axis")
    (axis,) = axes
    pieces = [(offset_of(each, axis), each.operands[0], size[axis]) for each, size in zip(inserts, sizes)]
    pieces.sort(key=lambda piece: piece[0])
    end = 0
    for start, _, size in pieces:
        if start != end:
            raise NoMatch("elements that are stored twice, or not at all")
        end = start + size
    if end != shape[axis]:
        raise NoMatch("elements that are not stored")
    parts = [part for _, source, size in pieces for part in _flat(source, size, axis, earlier)]
    return Join(op, shape, axis, *map(tuple, zip(*parts)))


def is_continued(insert: mlir.Operation) -> bool:
    """True if the only use of a tensor is another store into it."""
    stored = insert.results[0]
    uses = list(stored.uses)
    return len(uses) == 1 and uses[0].owner.name == _INSERT and uses[0].operand_number == 1


def offset_of(insert: mlir.Operation, axis: int) -> int:
    """The offset along an axis of a slice with others of 0 and steps of 1; raises `NoMatch`."""
    offsets = slice_offsets(insert)
    number = offsets[axis]
    if not isinstance(number, int) or any(offset != 0 for d, offset in enumerate(offsets) if d != axis):
        raise NoMatch("dynamic offsets")
    if set(insert.attributes["static_strides"]) != {1}:
        raise NoMatch("steps")
    return number


def _flat(
    source: mlir.Value, size: int, axis: int, earlier: dict[mlir.Value, Join]
) -> Iterator[tuple[mlir.Value, int]]:
    inner = earlier.get(source)
    if inner is not None and inner.axis == axis and sum(inner.sizes) == size:
        yield from zip(inner.sources, inner.sizes)
    else:
        yield source, size


def position_in(part: Join, whole: Join) -> int | None:
    """The number of the array of `whole` at which the arrays of `part` begin; None if it should not be a view of it."""
    count = len(part.sources)
    if part.axis != whole.axis or part.op.block != whole.op.block or part.sources[0] not in whole.sources:
        return None
    start = whole.sources.index(part.sources[0])
    if whole.sources[start : start + count] != part.sources:
        return None
    run = math.prod(part.shape[part.axis :]) * element_bytes(part.op.results[0].type.element_type)
    return start if run >= _RUN or math.prod(part.shape[: part.axis]) == 1 else None


def share(whole: Join, parts: Sequence[tuple[Join, int]]) -> dict[mlir.Value, mlir.Value]:
    """Store the arrays of the largest join as its parts are completed, which become views of it.

    Returns what has replaced the results of the joins, which are arrays of others.
    """
    block, new = whole.op.block, {}
    waiting = dict(enumerate(whole.sources))
    with mlir.InsertionPoint.at_block_begin(block), whole.op.location:
        stored = emit.empty(whole.op.results[0].type)
    joins = {join.op.results[0]: (join, number) for join, number in (*parts, (whole, 0))}
    for op in [op for op in block_ops(block) if len(op.results) == 1 and op.results[0] in joins]:
        join, number = joins[op.results[0]]
        with mlir.InsertionPoint(op), op.location:
            for i in range(number, number + len(join.sources)):
                if i in waiting:
                    stored = emit.insert_slice(waiting.pop(i), stored, whole.offsets(i), whole.sizes_of(i))
            view = stored
            if join is not whole:
                view = emit.extract_slice(stored, whole.offsets(number), join.shape)
        new[op.results[0]] = view
        op.results[0].replace_all_uses_with(view)
        erase_chain(op)
    return new


def erase_chain(op: mlir.Operation) -> None:
    """Erase the operations that store the arrays of a join, the last one first."""
    while op.name == _INSERT:
        before = defining_op(op.operands[1])
        op.erase()
        assert before is not None
        op = before
