"""Constants: whether a value is one, and which; all passes ask here."""

from __future__ import annotations

from mlirml.ir.bindings import defining_op, mlir


def is_constant(value: mlir.Value) -> bool:
    """True for the result of an `arith.constant` of any type."""
    op = defining_op(value)
    return op is not None and op.name == "arith.constant"


def constant_of(value: mlir.Value) -> int | None:
    """The value of an integer or index constant; None for another value."""
    attribute = _attribute(value)
    return int(mlir.IntegerAttr(attribute).value) if isinstance(attribute, mlir.IntegerAttr) else None


def float_of(value: mlir.Value) -> float | None:
    """The value of a constant of a float type, or of all elements of a constant vector; None for another value."""
    attribute = _attribute(value)
    if isinstance(attribute, mlir.DenseElementsAttr) and attribute.is_splat:
        attribute = attribute.get_splat_value()
    return float(mlir.FloatAttr(attribute).value) if isinstance(attribute, mlir.FloatAttr) else None


def _attribute(value: mlir.Value) -> mlir.Attribute | None:
    op = defining_op(value)
    return op.attributes["value"] if op is not None and op.name == "arith.constant" else None
