"""Elide copies: copies into a slice of a buffer, and copies of a slice, are replaced by accesses of the slice.

Before:
    %a = memref.alloc() : memref<4xf32>
    linalg.generic {...} ins(%x) outs(%a) {...}
    %part = memref.subview %out[4] [4] [1] : memref<8xf32> to memref<4xf32, strided<[1], offset: 4>>
    memref.copy %a, %part : ...
After:
    %part = memref.subview %out[4] [4] [1] : memref<8xf32> to memref<4xf32, strided<[1], offset: 4>>
    linalg.generic {...} ins(%x) outs(%part) {...}

Upstream's bufferization does so for one result of an operation. The slices of a concatenation are computed by one fused
operation, so all but one are copied. A copy is removed if the buffer is not used after it, and no operation accesses
the target between the first use of the buffer and the copy, except for disjoint slices of it.
"""

from __future__ import annotations

from collections.abc import Sequence

from mlirml.analysis.distances import Box, Distances, box_of
from mlirml.analysis.memory import VIEWS, aliases, effects, is_known, may_overlap, written_by
from mlirml.analysis.structured import is_parallel
from mlirml.analysis.values import ancestor_in, is_defined_before
from mlirml.ir.bindings import block_ops, defining_op, mlir, named_operations
from mlirml.passes import Pass, register

_WRITERS = ("linalg.generic", "linalg.fill", "memref.copy")
"""Operations that may compute into a slice of a buffer, whose rows are not contiguous."""


class DisjointViews:
    """Views of one buffer that are known to be disjoint."""

    def __init__(self) -> None:
        self._distances = Distances()
        self._extents: dict[mlir.Operation, Sequence[tuple[int, int]]] = {}
        self._boxes: dict[mlir.Operation, Box | None] = {}

    def are_disjoint(self, one: mlir.Operation, other: mlir.Operation) -> bool:
        """True if two subviews of a buffer are known to be disjoint."""
        if len(one.operands) == len(other.operands) == 1:
            pairs = zip(self._extent(one), self._extent(other), strict=True)
            return any(b[0] > a[1] or a[0] > b[1] for a, b in pairs)
        first, second = self._box(one), self._box(other)
        return first is not None and second is not None and self._distances.are_disjoint(first, second)

    def _extent(self, view: mlir.Operation) -> Sequence[tuple[int, int]]:
        """The first and last index of a static subview along each dimension."""
        if view not in self._extents:
            self._extents[view] = extent(view)
        return self._extents[view]

    def _box(self, view: mlir.Operation) -> Box | None:
        if view not in self._boxes:
            self._boxes[view] = box_of(view, self._distances)
        return self._boxes[view]


@register(when=("memref.copy",), optional=True)
class ElideCopiesPass(Pass):
    """Compute into slices of buffers instead of copying to them."""

    def run(self, module: mlir.Operation) -> None:
        views = DisjointViews()
        for copy in named_operations(module, ("memref.copy",)):
            if not compute_in_place(copy, views):
                read_in_place(copy, views)


def compute_in_place(copy: mlir.Operation, views: DisjointViews) -> bool:
    """Remove a copy into a slice of a buffer, if its source can be computed there."""
    source, target = copy.operands
    made, part = defining_op(source), defining_op(target)
    if made is None or made.name != "memref.alloc" or part is None or part.name != "memref.subview":
        return False
    whole = part.operands[0]
    around = defining_op(whole)
    if made.block != copy.block or (around is not None and around.name != "memref.alloc"):
        return False
    if not is_known(whole) and (len(part.operands) > 1 or around is not None):
        return False
    users = [use.owner.operation for use in source.uses]
    if any(user.name not in _WRITERS or user.block != copy.block for user in users):
        return False
    others = [user for user in users if user != copy]
    if not others or not all(user.is_before_in_block(copy) for user in others):
        return False
    first = others[0]
    for user in others[1:]:
        first = user if user.is_before_in_block(first) else first
    if not all(is_defined_before(offset, first) for offset in list(part.operands)[1:]):
        return False
    if not is_free(whole, part, first, copy, views):
        return False
    part.move_before(first)
    if around is not None and around.block == copy.block and not around.is_before_in_block(part):
        around.move_before(part)
    copy.erase()
    source.replace_all_uses_with(target)
    made.erase()
    return True


def is_free(
    whole: mlir.Value, part: mlir.Operation, first: mlir.Operation, last: mlir.Operation, views: DisjointViews
) -> bool:
    """True if no operation from `first` to `last`, the copy into the slice `part`, accesses it."""
    for use in whole.uses:
        user = use.owner.operation
        if user == part or (user.name == "memref.subview" and views.are_disjoint(part, user)):
            continue
        touching = accesses(user) if user.name in VIEWS else [user]
        if touching is None:
            return False
        for op in touching:
            place = ancestor_in(op, last.block)
            if place is None:
                if any(True for _ in aliases(op)):
                    return False
            elif not (place.is_before_in_block(first) or last.is_before_in_block(place)):
                return False
    own = accesses(part)
    return own is not None and all(op == last or (op.block == last.block and last.is_before_in_block(op)) for op in own)


def read_in_place(copy: mlir.Operation, views: DisjointViews) -> None:
    """Remove a copy of a slice of a buffer, if its readers can read the slice itself."""
    source, target = copy.operands
    part, made = defining_op(source), defining_op(target)
    if made is None or made.name != "memref.alloc" or part is None or part.name != "memref.subview":
        return
    if not part.operands[0].type.has_static_shape:
        return
    readers = [use.owner.operation for use in target.uses if use.owner.operation != copy]
    if not readers or not all(reads_elements(reader, copy) for reader in readers):
        return
    last = readers[0]
    for reader in readers[1:]:
        last = reader if last.is_before_in_block(reader) else last
    ops = block_ops(copy.block)
    between = ops[ops.index(copy) + 1 : ops.index(last) + 1]
    if any(stores_into(op, part, views) for op in between):
        return
    copy.erase()
    target.replace_all_uses_with(source)
    made.erase()


def reads_elements(reader: mlir.Operation, copy: mlir.Operation) -> bool:
    """True if an elementwise operation reads the target of a copy, each element once, or a contiguous source."""
    source, target = copy.operands
    if reader.name != "linalg.generic" or reader.block != copy.block or not copy.is_before_in_block(reader):
        return False
    if not is_parallel(reader) or target in written_by(reader):
        return False
    strides, _ = source.type.get_strides_and_offset()
    if strides and strides[-1] == 1:
        return True
    maps = mlir.ArrayAttr(reader.attributes["indexing_maps"])
    used = [mlir.AffineMapAttr(each).value for each, v in zip(maps, reader.operands, strict=True) if v == target]
    return all(len(each.results) == each.n_dims for each in used)


def stores_into(op: mlir.Operation, part: mlir.Operation, views: DisjointViews) -> bool:
    """True if an operation may write to a slice of a buffer."""
    view = part.results[0]
    if not (op.name.startswith("linalg.") and len(op.regions)):
        return effects(op).writes_to(view)
    for out in written_by(op):
        other = defining_op(out)
        is_part = other is not None and other.name == "memref.subview" and other.operands[0] == part.operands[0]
        if may_overlap(out, view) and not (is_part and other is not None and views.are_disjoint(part, other)):
            return True
    return False


def accesses(view: mlir.Operation) -> list[mlir.Operation] | None:
    """The operations that access a view, directly or through other views."""
    found: list[mlir.Operation] = []
    for use in view.results[0].uses:
        user = use.owner.operation
        if user.name in VIEWS:
            inner = accesses(user)
            if inner is None:
                return None
            found += inner
        elif any(isinstance(result.type, mlir.MemRefType) for result in user.results):
            return None
        else:
            found.append(user)
    return found


def extent(view: mlir.Operation) -> Sequence[tuple[int, int]]:
    """The first and last index of a static subview along each dimension."""
    offsets, sizes, steps = (
        list(view.attributes[name]) for name in ("static_offsets", "static_sizes", "static_strides")
    )
    ends = [(a, a + (size - 1) * step) for a, size, step in zip(offsets, sizes, steps, strict=True)]
    return [(min(pair), max(pair)) for pair in ends]
