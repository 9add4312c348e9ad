"""Multiply quotients: a quotient of a small integer by a constant is a product and a shift.

Before:
    %rest = arith.remsi %n, %c1000003 : i64         // %n from 0 to 33,000,354
After:
    %product = arith.muli %n, %c36028689 : i64
    %quotient = arith.shrui %product, %c45 : i64
    %whole = arith.muli %quotient, %c1000003 : i64
    %rest = arith.subi %n, %whole : i64

LLVM divides by a constant with the upper half of a product, and corrects it for the largest numbers of the type, as it
knows no ranges of values of other blocks. The factor is m = ceil(2^s / d), for the smallest s with which e n < 2^s for
all n, where e = m d - 2^s (T. Granlund and P. Montgomery, Division by invariant integers using multiplication, PLDI
1994).
"""

from __future__ import annotations

from contextlib import suppress

from mlirml.analysis.constants import constant_of
from mlirml.analysis.ranges import Ranges
from mlirml.analysis.traits import INTEGER_DIVISIONS
from mlirml.core.dataclass import dataclass
from mlirml.ir import emit
from mlirml.ir.bindings import mlir, named_operations, replace_op
from mlirml.passes import NoMatch, Pass, register

_REMAINDERS = ("arith.remsi", "arith.remui")
_ROUNDED_UP = ("arith.ceildivsi",)
_BITS = 63
"""Products have fewer bits: none of them is negative or wraps."""


@dataclass(frozen=True)
class Factor:
    """A product and a shift that divide."""

    factor: int
    shift: int


@register(when=("arith.divsi", "arith.divui", "arith.remsi", "arith.remui", "arith.floordivsi"))
class MultiplyQuotientsPass(Pass):
    """Replace quotients and remainders of small integers by constants."""

    def run(self, module: mlir.Operation) -> None:
        names = tuple(name for name in INTEGER_DIVISIONS if name not in _ROUNDED_UP)
        found = named_operations(module, names)
        ranges = Ranges()
        matches = []
        for op in found:
            with suppress(NoMatch):
                matches.append((op, match_quotient(op, ranges)))
        for op, factor in matches:
            build_quotient(op, factor)


def match_quotient(op: mlir.Operation, ranges: Ranges) -> Factor:
    """The factor of a quotient or a remainder of 64 bits."""
    number, divisor = op.operands
    if str(number.type) not in ("i64", "index"):
        raise NoMatch("a quotient of fewer bits is one of vectors")
    by = constant_of(divisor)
    if by is None or by < 2 or by & (by - 1) == 0:
        raise NoMatch("the divisor is not a constant, or a shift divides")
    low, high = ranges.of(number)
    if low < 0:
        raise NoMatch("the number may be negative")
    return factor_for(by, high)


def factor_for(divisor: int, most: int) -> Factor:
    """The factor that divides all numbers from 0 to `most`; raises `NoMatch` where products have too many bits."""
    for shift in range(divisor.bit_length(), _BITS):
        factor = -(-(1 << shift) // divisor)
        if (factor * divisor - (1 << shift)) * most < 1 << shift:
            if factor * most < 1 << _BITS:
                return Factor(factor, shift)
            break
    raise NoMatch("the product has too many bits")


def build_quotient(op: mlir.Operation, found: Factor) -> None:
    """Replace a quotient or a remainder by products."""
    number, divisor = op.operands
    with op.location, mlir.InsertionPoint(op):
        product = emit.same_type("arith.muli", number, emit.number(number.type, found.factor))
        result = emit.same_type("arith.shrui", product, emit.number(number.type, found.shift))
        if op.name in _REMAINDERS:
            result = emit.same_type("arith.subi", number, emit.same_type("arith.muli", result, divisor))
    replace_op(op, result)
