"""Scalar operations that may be executed speculatively."""

from __future__ import annotations

from mlirml.analysis.ranges import Ranges
from mlirml.ir.bindings import defining_op, mlir

_DIVISIONS = frozenset(
    f"arith.{name}" for name in ("divsi", "divui", "remsi", "remui", "floordivsi", "ceildivsi", "ceildivui")
)
_INDICES = ("affine.apply", "affine.min", "affine.max", "tensor.dim")
_NEVER = ("math.ipowi",)  # divides if the exponent is negative


def may_speculate(op: mlir.Operation, ranges: Ranges) -> bool:
    """True if an operation computes scalars only, without side effects for any operands."""
    if op.name in _INDICES:
        return True
    if op.name.partition(".")[0] not in ("arith", "math") or op.name in _NEVER or op.regions:
        return False
    if any(isinstance(v.type, mlir.ShapedType) for v in (*op.operands, *op.results)):
        return False
    return op.name not in _DIVISIONS or divides_safely(op, ranges)


def divides_safely(op: mlir.Operation, ranges: Ranges) -> bool:
    """True if the divisor of an integer division is neither zero nor, for signed ones, -1.

    Divisions built by capture select 1 for such a divisor.
    """
    dividend, divisor = op.operands
    low, high = ranges.of(divisor)
    if low > 0 or high < -1:
        return True
    chosen = defining_op(divisor)
    if chosen is None or chosen.name != "arith.select" or not is_number(chosen.operands[1], 1):
        return False
    cases = _alternatives(chosen.operands[0])
    given = chosen.operands[2]
    if not any(_compares(case, given, 0) for case in cases):
        return False
    unsigned = op.name in ("arith.divui", "arith.remui", "arith.ceildivui")
    return unsigned or any(_is_overflow(case, dividend, given) for case in cases)


def _alternatives(condition: mlir.Value) -> list[mlir.Value]:
    """The conditions of which one must hold."""
    op = defining_op(condition)
    return [*op.operands] if op is not None and op.name == "arith.ori" else [condition]


def _is_overflow(condition: mlir.Value, dividend: mlir.Value, divisor: mlir.Value) -> bool:
    op = defining_op(condition)
    if op is None or op.name != "arith.andi":
        return False
    least = -(1 << ((dividend.type.width if isinstance(dividend.type, mlir.IntegerType) else 64) - 1))
    first, second = op.operands
    return any(
        _compares(a, dividend, least) and _compares(b, divisor, -1) for a, b in ((first, second), (second, first))
    )


def _compares(condition: mlir.Value, value: mlir.Value, number: int) -> bool:
    """True if a condition is `value == number`."""
    op = defining_op(condition)
    if op is None or op.name != "arith.cmpi" or mlir.IntegerAttr(op.attributes["predicate"]).value != 0:
        return False
    return op.operands[0] == value and is_number(op.operands[1], number)


def is_number(value: mlir.Value, number: int) -> bool:
    """True if a value is this integer constant."""
    op = defining_op(value)
    if op is None or op.name != "arith.constant":
        return False
    attribute = op.attributes["value"]
    return isinstance(attribute, mlir.IntegerAttr) and attribute.value == number
