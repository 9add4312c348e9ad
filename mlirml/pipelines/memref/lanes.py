"""Scalar operations of loop bodies on vectors, and index expressions as values."""

from __future__ import annotations

from collections.abc import Mapping

from mlirml.core.affine import Linear
from mlirml.ir import emit
from mlirml.ir.bindings import mlir

Values = dict[mlir.Value, mlir.Value]


def on_lanes(op: mlir.Operation, count: int, environment: Mapping[mlir.Value, mlir.Value]) -> mlir.Value:
    """An operation with one result for each of `count` lanes; a scalar where all operands are scalars."""
    operands = [environment.get(value, value) for value in op.operands]
    kind = op.results[0].type
    if any(isinstance(value.type, mlir.VectorType) for value in operands):
        kind = mlir.VectorType.get([count], kind)
        operands = [broadcast(value, count) for value in operands]
    return emit.value(op.name, operands, kind, **{name: op.attributes[name] for name in op.attributes})


def broadcast(value: mlir.Value, count: int) -> mlir.Value:
    """A vector of one scalar; vectors are left as they are."""
    if isinstance(value.type, mlir.VectorType):
        return value
    return emit.value("vector.broadcast", [value], mlir.VectorType.get([count], value.type))


def shifted(value: mlir.Value, distance: int) -> mlir.Value:
    """An index plus a constant."""
    return emit.same_type("arith.addi", value, emit.index(distance)) if distance else value


def value_of(expression: Linear, values: Mapping[mlir.Value, mlir.Value]) -> mlir.Value:
    """A linear expression of indices at the insertion point; `values` replace its variables."""
    total: mlir.Value | None = None
    for variable, factor in expression.factors.items():
        part = values.get(variable, variable)
        if factor != 1:
            part = emit.same_type("arith.muli", part, emit.index(factor))
        total = part if total is None else emit.same_type("arith.addi", total, part)
    return emit.index(expression.constant) if total is None else shifted(total, expression.constant)
