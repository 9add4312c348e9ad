"""Fold guards: a select of zero where a factor is zero is the product with that factor, which is zero there anyway.

Before:
    %undefined = arith.cmpf uno, %product, %product : f64
    %zero = arith.cmpf oeq, %w, %c0 : f64
    %dead = arith.andi %undefined, %zero : i1
    %x = arith.mulf %w, %constant : f64
    %y = arith.select %dead, %c0, %x : f64
After:
    %x = arith.mulf %w, %constant : f64            // %y is %x

Cotangents of branches that were not taken are zero, and their products with partial derivatives that are infinite there
must not be NaN (`autodiff/bodies.py`). The derivative of such a guard guards the product of the same cotangent with
another factor, which is often a constant. Zero may get another sign.
"""

from __future__ import annotations

import math

from mlirml.analysis.constants import float_of
from mlirml.analysis.values import combined
from mlirml.ir.bindings import defining_op, mlir, named_operations
from mlirml.passes import Pass, register
from mlirml.passes.presence import every

_OEQ = 1
"""The predicate of `arith.cmpf` for values that are ordered and equal."""


@register(when=every(("arith.select",), ("arith.cmpf",)), optional=True)
class FoldGuardsPass(Pass):
    """Drop selects of zero where a factor is zero."""

    def run(self, module: mlir.Operation) -> None:
        for op in named_operations(module, ("arith.select",)):
            condition, zero, other = op.operands
            if float_of(zero) == 0 and any(is_multiple(other, factor) for factor in zero_factors(condition)):
                op.results[0].replace_all_uses_with(other)
                op.erase()


def zero_factors(condition: mlir.Value) -> list[mlir.Value]:
    """The values that are zero where a condition holds."""
    found = []
    for term in combined(condition, "arith.andi"):
        test = defining_op(term)
        if test is None or test.name != "arith.cmpf" or mlir.IntegerAttr(test.attributes["predicate"]).value != _OEQ:
            continue
        one, other = test.operands
        found += [one] if float_of(other) == 0 else [other] if float_of(one) == 0 else []
    return found


def is_multiple(value: mlir.Value, factor: mlir.Value) -> bool:
    """True if a value is a factor times a finite constant."""
    if value == factor:
        return True
    op = defining_op(value)
    if op is None or op.name not in ("arith.mulf", "arith.negf"):
        return False
    constants = [float_of(operand) for operand in op.operands]
    others = [x for x, number in zip(op.operands, constants) if number is None or not math.isfinite(number)]
    return len(others) == 1 and is_multiple(others[0], factor)
