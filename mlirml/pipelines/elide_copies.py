"""Elide copies: what is copied into a part of a buffer is computed there.

Before:
    %a = memref.alloc() : memref<4xf32>
    linalg.generic {...} ins(%x) outs(%a) {...}
    %part = memref.subview %out[4] [4] [1] : memref<8xf32> to memref<4xf32, strided<[1], offset: 4>>
    memref.copy %a, %part : ...
After:
    %part = memref.subview %out[4] [4] [1] : memref<8xf32> to memref<4xf32, strided<[1], offset: 4>>
    linalg.generic {...} ins(%x) outs(%part) {...}

Upstream's bufferization does so for one result of an operation. The parts of a concatenation come from one fused
operation: all others are copied. A copy goes when the buffer is not used after it, and nothing touches the target
between the first use of the buffer and the copy, except for other parts of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from mlirml.analysis.memory import VIEWS
from mlirml.dataclass import dataclass
from mlirml.ir import defining_op, mlir, named_operations
from mlirml.passes import Pass, register

_WRITERS = ("linalg.generic", "linalg.fill", "memref.copy")
"""What may compute into a part of a buffer, whose rows are not contiguous."""


Extents: TypeAlias = "dict[mlir.Operation, Sequence[tuple[int, int]]]"
"""The first and last index along each dimension, by view."""


@register
@dataclass(frozen=True)
class ElideCopiesPass(Pass):
    """Compute into parts of buffers instead of copying there."""

    name = "mlirml-elide-copies"

    def run(self, module: mlir.Operation) -> None:
        extents: Extents = {}
        for copy in named_operations(module, ("memref.copy",)):
            elide(copy, extents)


def elide(copy: mlir.Operation, extents: Extents) -> None:
    """Remove one copy, if it can be; `extents` are what is known of views."""
    source, target = copy.operands
    made, part = defining_op(source), defining_op(target)
    if made is None or made.name != "memref.alloc" or part is None or part.name != "memref.subview":
        return
    whole = part.operands[0]
    around = defining_op(whole)
    if len(part.operands) > 1 or made.block != copy.block or (around is not None and around.name in VIEWS):
        return
    if around is not None and (around.name != "memref.alloc" or around.block != copy.block):
        return
    users = [use.owner.operation for use in source.uses]
    if any(user.name not in _WRITERS or user.block != copy.block for user in users):
        return
    others = [user for user in users if user != copy]
    if not others or not all(user.is_before_in_block(copy) for user in others):
        return
    first = others[0]
    for user in others[1:]:
        first = user if user.is_before_in_block(first) else first
    if not is_free(whole, part, first, copy, extents):
        return
    part.move_before(first)
    if around is not None and not around.is_before_in_block(part):
        around.move_before(part)
    copy.erase()
    source.replace_all_uses_with(target)
    made.erase()


def is_free(
    whole: mlir.Value, part: mlir.Operation, first: mlir.Operation, last: mlir.Operation, extents: Extents
) -> bool:
    """Whether nothing touches a part of a buffer from operation `first` to `last`, the copy into it."""
    for use in whole.uses:
        user = use.owner.operation
        if user == part or (user.name == "memref.subview" and len(user.operands) == 1 and apart(part, user, extents)):
            continue
        touching = accesses(user) if user.name in VIEWS else [user]
        if touching is None:
            return False
        for op in touching:
            if op.block != last.block or not (op.is_before_in_block(first) or last.is_before_in_block(op)):
                return False
    own = accesses(part)
    return own is not None and all(op == last or (op.block == last.block and last.is_before_in_block(op)) for op in own)


def accesses(view: mlir.Operation) -> list[mlir.Operation] | None:
    """The operations that work on a view, also through other views."""
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


def apart(one: mlir.Operation, other: mlir.Operation, extents: Extents) -> bool:
    """Whether two static subviews of a buffer have no element in common."""
    for view in (one, other):
        if view not in extents:
            extents[view] = extent(view)
    return any(
        b_first > a_last or a_first > b_last
        for (a_first, a_last), (b_first, b_last) in zip(extents[one], extents[other], strict=True)
    )


def extent(view: mlir.Operation) -> Sequence[tuple[int, int]]:
    """The first and last index of a static subview along each dimension."""
    offsets, sizes, steps = (
        list(view.attributes[name]) for name in ("static_offsets", "static_sizes", "static_strides")
    )
    ends = [(a, a + (size - 1) * step) for a, size, step in zip(offsets, sizes, steps, strict=True)]
    return [(min(pair), max(pair)) for pair in ends]
