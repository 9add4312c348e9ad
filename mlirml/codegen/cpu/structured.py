"""A structured operation during its lowering to loops, and the choice of its schedule."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from mlirml.analysis.memory import Effects, body_effects
from mlirml.codegen.cpu.elementwise.loops import lower_elementwise, ordered
from mlirml.codegen.cpu.elementwise.transpose import lower_transposition, match_transposition
from mlirml.codegen.cpu.frame import Frame
from mlirml.codegen.cpu.nest import Body, Nest, match_nest, read_body
from mlirml.core.dataclass import dataclass, replace
from mlirml.ir.bindings import block_ops, defining_op, mlir
from mlirml.passes import NoMatch

if TYPE_CHECKING:
    from mlirml.codegen.cpu.reduce.argmax import Position
    from mlirml.codegen.cpu.reduce.combiners import Reducer


@dataclass(frozen=True)
class Structured:
    """An operation, its nest and body. `inits` are the scalars that outputs were filled with, by body argument.

    `body_effects` are the memory effects of the body. `reducers` is empty for an elementwise operation, and None for
    accumulations without a known combiner: among them those that compute a `position` along a row.
    """

    op: mlir.Operation
    nest: Nest
    body: Body
    reducers: Sequence[Reducer] | None
    inits: dict[mlir.Value, mlir.Value]
    body_effects: Effects
    position: Position | None = None

    @property
    def is_elementwise(self) -> bool:
        return self.reducers is not None and not self.reducers

    def with_nest(self, nest: Nest) -> Structured:
        return replace(self, nest=nest)


def match_structured(op: mlir.Operation) -> Structured:
    """Read an operation; fills of its outputs are folded into it."""
    body = read_body(op)
    nest = match_nest(op, body)
    reducers: Sequence[Reducer] = ()
    try:
        if has_reduction(nest):
            # Not imported for programs without reductions.
            from mlirml.codegen.cpu.reduce.combiners import match_reducers

            reducers = match_reducers(nest, body)
    except NoMatch:
        return match_ordered(op, nest, body)
    return Structured(op, nest, body, reducers, fold_fills(op, nest, body), body_effects(op))


def match_ordered(op: mlir.Operation, nest: Nest, body: Body) -> Structured:
    """Read an operation with an accumulation without a known combiner."""
    from mlirml.codegen.cpu.reduce.argmax import match_position
    from mlirml.codegen.cpu.reduce.argmax_rows import check_rows

    try:
        position = match_position(nest, body)
        check_rows(nest)
    except NoMatch:
        return Structured(op, nest, body, None, {}, body_effects(op))
    return Structured(op, nest, body, None, fold_fills(op, nest, body), body_effects(op), position)


def has_reduction(nest: Nest) -> bool:
    return any(reduced and size != 1 for size, reduced in zip(nest.sizes, nest.reduction, strict=True))


def lower(item: Structured, frame: Frame, vector_bits: int) -> None:
    """Build the loops of one operation at the insertion point."""
    if item.position is not None:
        from mlirml.codegen.cpu.reduce.argmax_rows import lower_position

        lower_position(frame, item.nest, item.body, item.position, item.inits, vector_bits)
    elif item.reducers is None:
        from mlirml.codegen.cpu.reduce.sequential import lower_sequential

        lower_sequential(frame, item.nest, item.body)
    elif item.reducers:
        from mlirml.codegen.cpu.reduce.reduce import lower_reduction

        lower_reduction(frame, item.nest, item.body, item.reducers, item.inits, vector_bits)
    else:
        lower_without_reduction(frame, item, vector_bits)


def lower_without_reduction(frame: Frame, item: Structured, vector_bits: int) -> None:
    """Lower an operation whose loops are all parallel."""
    if 0 in item.nest.sizes:
        return
    nest = ordered(item.nest)
    try:
        plan = match_transposition(nest, item.body, vector_bits)
    except NoMatch:
        lower_elementwise(frame, nest, item.body, item.inits)
        return
    lower_transposition(frame, plan, item.body)


def fold_fills(op: mlir.Operation, nest: Nest, body: Body) -> dict[mlir.Value, mlir.Value]:
    """The scalars that outputs were filled with just before; those fills are erased."""
    folded = {}
    for number in range(nest.num_outputs):
        position = len(op.operands) - nest.num_outputs + number
        argument = body.arguments[position]
        if not body.reads(argument):
            continue
        fill = last_fill(op, op.operands[position])
        if fill is not None:
            folded[argument] = fill.operands[0]
            fill.erase()
    return folded


def last_fill(op: mlir.Operation, out: mlir.Value) -> mlir.Operation | None:
    """The fill of `out` before `op`, if nothing can access the memory in between.

    All uses of an allocation are known; those of a view, such as the row of an array that a loop fills row by row, are
    not.
    """
    owner = defining_op(out)
    if owner is not None and owner.name != "memref.alloc":
        return _fill_before(op, out)
    last = None
    for use in out.uses:
        user = use.owner.operation
        if user.block != op.block:
            return None
        if any(isinstance(r.type, mlir.MemRefType) for r in user.results):
            if user.is_before_in_block(op):
                return None
            continue
        if user != op and user.is_before_in_block(op) and (last is None or last.is_before_in_block(user)):
            last = user
    return last if last is not None and last.name == "linalg.fill" else None


_TOUCH_NOTHING = ("arith.", "affine.apply", "memref.alloc", "memref.subview", "memref.expand_shape", "memref.collapse_")


def _fill_before(op: mlir.Operation, out: mlir.Value) -> mlir.Operation | None:
    """The fill of a view of memory with no memory access between it and `op`."""
    fills = [u.owner.operation for u in out.uses if u.owner.operation.name == "linalg.fill"]
    fills = [f for f in fills if f.operands[1] == out and f.block == op.block and f.is_before_in_block(op)]
    if not fills:
        return None
    last = None
    for other in block_ops(op.block):
        if other == op:
            return last
        if other in fills:
            last = other
        elif last is not None and not other.name.startswith(_TOUCH_NOTHING):
            last = None
    return None
