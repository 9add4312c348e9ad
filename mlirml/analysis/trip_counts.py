"""How many rounds a loop runs."""

from __future__ import annotations

from mlirml.ir.bindings import defining_op, mlir


def constant_of(value: mlir.Value) -> int | None:
    """The number that an integer or index constant is; None for another value."""
    op = defining_op(value)
    if op is None or op.name != "arith.constant" or not isinstance(op.attributes["value"], mlir.IntegerAttr):
        return None
    return int(mlir.IntegerAttr(op.attributes["value"]).value)


def round_count(loop: mlir.Operation) -> int | None:
    """How many rounds an `scf.for` runs, where its bounds are constants."""
    lower, upper, step = (constant_of(value) for value in list(loop.operands)[:3])
    if lower is None or upper is None or not step:
        return None
    return max(0, -((lower - upper) // step))
