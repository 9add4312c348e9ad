"""Builders of the scalar arithmetic of derivatives, at the insertion point."""

from __future__ import annotations

from mlirml.analysis.values import element_type
from mlirml.ir import emit
from mlirml.ir.bindings import mlir


def is_float(type_: mlir.Type) -> bool:
    """True if values of this scalar or tensor type have derivatives."""
    return isinstance(element_type(type_), mlir.FloatType)


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


def converted(value: mlir.Value, type_: mlir.Type) -> mlir.Value:
    """A float converted to another float type."""
    if value.type == type_:
        return value
    if value.type.width == type_.width:  # between f16 and bf16, by way of f32
        return converted(converted(value, mlir.F32Type.get()), type_)
    return emit.value("arith.extf" if value.type.width < type_.width else "arith.truncf", [value], type_)
