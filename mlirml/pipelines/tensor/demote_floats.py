"""Demote floats: 64-bit floats are replaced by 32-bit ones, for devices that lack 64-bit floats.

Before:
    %c = arith.constant 0.5 : f64
    %w = arith.extf %x : f32 to f64
    %y = arith.mulf %w, %c : f64
After:
    %c = arith.constant 0.5 : f32
    %y = arith.mulf %x, %c : f32

Constants are rounded, to infinity if they overflow. Only operations on the bits of 64-bit floats are rejected.
"""

from __future__ import annotations

import numpy as np

from mlirml.analysis.traits import FLOAT_CASTS
from mlirml.errors import TargetError
from mlirml.ir.bindings import mlir, operations, replace_op
from mlirml.ir.location import source_location
from mlirml.passes import Pass, register


@register
class DemoteFloatsPass(Pass):
    """Replace f64 by f32 in all types and attributes of a module."""

    def run(self, module: mlir.Operation) -> None:
        with np.errstate(over="ignore", under="ignore"):
            types: dict[mlir.Type, mlir.Type] = {}
            for op in list(operations(module)):
                check(op)
            for op in list(operations(module)):
                for value in (*op.results, *(a for r in op.regions for b in r.blocks for a in b.arguments)):
                    kind = demoted(value.type, types)
                    if kind != value.type:
                        value.set_type(kind)
                demote_attributes(op, types)
            for op in list(operations(module)):
                if op.name in FLOAT_CASTS and op.operands[0].type == op.results[0].type:
                    replace_op(op, op.operands[0])


def check(op: mlir.Operation) -> None:
    """Reject an operation that accesses the bits of a 64-bit float."""
    if op.name != "arith.bitcast":
        return
    if any("f64" in str(value.type) for value in (*op.operands, *op.results)):
        raise TargetError(
            'the bits of a float64 are used, which float64="float32" does not keep',
            location=source_location(op.location),
            help="compute in float32, as by `x.astype(np.float32)`, or compile for the CPU",
        )


def demoted(type_: mlir.Type, known: dict[mlir.Type, mlir.Type]) -> mlir.Type:
    """A type with f64 replaced by f32."""
    if type_ not in known:
        text = str(type_)
        known[type_] = mlir.Type.parse(text.replace("f64", "f32")) if "f64" in text else type_
    return known[type_]


def demote_attributes(op: mlir.Operation, types: dict[mlir.Type, mlir.Type]) -> None:
    """Convert the constants of an operation, and demote the types in its attributes."""
    for name in [named.name if hasattr(named, "name") else named for named in op.attributes]:
        attribute = op.attributes[name]
        if isinstance(attribute, mlir.FloatAttr) and isinstance(attribute.type, mlir.F64Type):
            op.attributes[name] = mlir.FloatAttr.get(mlir.F32Type.get(), float(np.float32(attribute.value)))
        elif isinstance(attribute, mlir.DenseElementsAttr) and "f64" in str(attribute.type):
            op.attributes[name] = rounded(attribute, demoted(attribute.type, types))
        elif isinstance(attribute, mlir.TypeAttr):
            op.attributes[name] = mlir.TypeAttr.get(demoted(attribute.value, types))
        elif isinstance(attribute, mlir.StringAttr) and attribute.value == "f64":
            op.attributes[name] = mlir.StringAttr.get("f32")


def rounded(attribute: mlir.Attribute, type_: mlir.Type) -> mlir.Attribute:
    """A constant with its elements rounded to f32."""
    if attribute.is_splat:
        number = float(np.float32(attribute.get_splat_value().value))
        return mlir.DenseElementsAttr.get_splat(type_, mlir.FloatAttr.get(mlir.F32Type.get(), number))
    return mlir.DenseElementsAttr.get(np.array(attribute).astype(np.float32), type=type_)
