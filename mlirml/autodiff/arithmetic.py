"""Scalar arithmetic at the insertion point, as derivatives need it."""

from __future__ import annotations

from mlirml.ir import emit
from mlirml.ir.bindings import mlir


def is_float(kind: mlir.Type) -> bool:
    """True if values of this scalar or tensor type have derivatives."""
    return isinstance(element_type(kind), mlir.FloatType)


def element_type(kind: mlir.Type) -> mlir.Type:
    """The scalar type of a tensor type; any other type itself."""
    return kind.element_type if isinstance(kind, mlir.RankedTensorType) else kind


def number(like: mlir.Value, value: float) -> mlir.Value:
    """A constant of the type of `like`."""
    return emit.number(like.type, value)


def add(a: mlir.Value, b: mlir.Value) -> mlir.Value:
    return emit.same_type("arith.addf", a, b)


def sub(a: mlir.Value, b: mlir.Value) -> mlir.Value:
    return emit.same_type("arith.subf", a, b)


def mul(a: mlir.Value, b: mlir.Value) -> mlir.Value:
    return emit.same_type("arith.mulf", a, b)


def div(a: mlir.Value, b: mlir.Value) -> mlir.Value:
    return emit.same_type("arith.divf", a, b)


def neg(a: mlir.Value) -> mlir.Value:
    return emit.same_type("arith.negf", a)


def select(condition: mlir.Value, a: mlir.Value, b: mlir.Value) -> mlir.Value:
    return emit.same_type("arith.select", condition, a, b)


def math(name: str, *operands: mlir.Value) -> mlir.Value:
    """`math.<name>` of values of one type."""
    return emit.same_type(f"math.{name}", *operands)


def scaled(a: mlir.Value, factor: float) -> mlir.Value:
    return mul(a, number(a, factor))


def converted(value: mlir.Value, kind: mlir.Type) -> mlir.Value:
    """A float as another float type."""
    if value.type == kind:
        return value
    if value.type.width == kind.width:  # f16 and bf16 meet in f32
        return converted(converted(value, mlir.F32Type.get()), kind)
    return emit.value("arith.extf" if value.type.width < kind.width else "arith.truncf", [value], kind)
