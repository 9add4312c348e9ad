"""The expression of the tail of the normal distribution, erfc(-x / sqrt(2)), with what rounding the argument loses.

    %z = arith.mulf %x, -0.707106769
    %lost = math.fma %x, -1.21016175e-08, (math.fma %x, -0.707106769, (arith.negf %z))
    %change = arith.select (0 < %z < 28), (arith.mulf %z, (arith.mulf %lost, -2.0)), 0.0
    %tail = math.erfc %z
    %y = math.fma %change, %tail, %tail

It is one function of x, for which no argument has to be rounded. `mlirml/ops/activations.py` writes it.
"""

from __future__ import annotations

import math
import struct
from typing import Any

from mlirml.analysis.constants import float_of
from mlirml.core.dataclass import dataclass
from mlirml.core.no_match import NoMatch
from mlirml.ir.bindings import defining_op, mlir

_ROOT = -math.sqrt(0.5)
_HIGH: float = struct.unpack("<f", struct.pack("<f", _ROOT))[0]
_Z = ("arith.mulf", "x", _HIGH)
_LOST = ("math.fma", "x", _ROOT - _HIGH, ("math.fma", "x", _HIGH, ("arith.negf", _Z)))
_INSIDE = ("arith.andi", ("arith.cmpf", _Z, 0.0), ("arith.cmpf", _Z, 28.0))
_CHANGE = ("arith.select", _INSIDE, ("arith.mulf", _Z, ("arith.mulf", _LOST, -2.0)), 0.0)
_TAIL = ("math.erfc", _Z)
_WHOLE = ("math.fma", _CHANGE, _TAIL, _TAIL)
_ORDERED_LESS, _ORDERED_GREATER = 4, 2
_PREDICATES = {0.0: _ORDERED_GREATER, 28.0: _ORDERED_LESS}


@dataclass(frozen=True)
class NormalTail:
    """The f32 value, or vector of them, of which an operation is the tail, and the `math.erfc` of its expression."""

    x: mlir.Value
    erfc: mlir.Operation


def match_normal_tail(op: mlir.Operation) -> NormalTail:
    """Match the last `math.fma` of the expression; raises `NoMatch`."""
    if op.name != "math.fma" or not is_f32(op.results[0].type):
        raise NoMatch("the result is no sum in f32")
    x = operand(operand(op.operands[1], "math.erfc", 0), "arith.mulf", 0)
    if not is_form(op.results[0], _WHOLE, x):
        raise NoMatch("it is no tail with the correction of its argument")
    return NormalTail(x, op.operands[1].owner.operation)


def is_f32(type_: mlir.Type) -> bool:
    """True for f32 and vectors of it."""
    return isinstance(type_.element_type if isinstance(type_, mlir.VectorType) else type_, mlir.F32Type)


def operand(value: mlir.Value, name: str, number: int) -> mlir.Value:
    """An operand of the operation that defines a value, which has this name; raises `NoMatch`."""
    op = defining_op(value)
    if op is None or op.name != name:
        raise NoMatch(f"it is not defined by {name}")  # to print a value prints the function around it
    return op.operands[number]


def is_form(value: mlir.Value, form: Any, x: mlir.Value) -> bool:
    """True if a value is the expression `form`: "x", a number, or the name of an operation and its operands."""
    if form == "x":
        return bool(value == x)
    if isinstance(form, float):
        found = float_of(value)  # of a scalar, or of all lanes
        return found is not None and struct.pack("<f", found) == struct.pack("<f", form)
    op = defining_op(value)
    name, *operands = form
    if op is None or op.name != name or len(op.operands) != len(operands):
        return False
    if name == "arith.cmpf" and mlir.IntegerAttr(op.attributes["predicate"]).value != _PREDICATES[operands[1]]:
        return False
    return all(is_form(inner, wanted, x) for inner, wanted in zip(op.operands, operands))
