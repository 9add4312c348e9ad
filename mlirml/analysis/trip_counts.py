"""Trip counts of loops."""

from __future__ import annotations

from mlirml.ir.bindings import defining_op, mlir


def constant_of(value: mlir.Value) -> int | None:
    """The value of an integer or index constant; None for another value."""
    op = defining_op(value)
    if op is None or op.name != "arith.constant" or not isinstance(op.attributes["value"], mlir.IntegerAttr):
        return None
    return int(mlir.IntegerAttr(op.attributes["value"]).value)


def trip_count(loop: mlir.Operation) -> int | None:
    """The trip count of an `scf.for` with constant bounds; None for other loops."""
    lower, upper, step = (constant_of(value) for value in list(loop.operands)[:3])
    if lower is None or upper is None or not step:
        return None
    return max(0, -((lower - upper) // step))
