"""The subscripts and the memory of operands of structured operations on memrefs of dynamic sizes."""

from __future__ import annotations

from mlirml.ir.bindings import mlir


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
