"""The subscripts and the memory of operands of structured operations on memrefs of dynamic sizes."""

from __future__ import annotations

from mlirml.analysis.memory import VIEWS
from mlirml.ir.bindings import defining_op, mlir


def root_of(value: mlir.Value) -> mlir.Value:
    """The memory that a value is a view of."""
    op = defining_op(value)
    while op is not None and op.name in VIEWS and op.name != "memref.view":
        value = op.operands[0]
        op = defining_op(value)
    return value


def is_dense(type_: mlir.Type) -> bool:
    """True if elements along the last dimension are adjacent."""
    if not isinstance(type_, mlir.MemRefType) or not type_.rank:
        return True
    strides, _ = type_.get_strides_and_offset()
    return bool(strides[-1] == 1)


def expression_uses(expression: mlir.AffineExpr, loop: int) -> bool:
    """True if a subscript depends on a loop."""
    if isinstance(expression, mlir.AffineDimExpr):
        return bool(expression.position == loop)
    if isinstance(expression, mlir.AffineConstantExpr | mlir.AffineSymbolExpr):
        return False
    return expression_uses(expression.lhs, loop) or expression_uses(expression.rhs, loop)
