"""Distribute factors: the factor of a sum with a loop-carried value moves to its terms, if iterations wait for it.

Before:
    scf.for %j = %c1 to %n step %c1 iter_args(%before = %start) -> (f64) {
      %a = memref.load %x[%j] : memref<50xf64>
      %sum = arith.addf %a, %before : f64
      %new = arith.divf %sum, %c9 : f64
      memref.store %new, %x[%j] : memref<50xf64>
      scf.yield %new : f64
    }
After:
    scf.for %j = %c1 to %n step %c1 iter_args(%before = %start) -> (f64) {
      %a = memref.load %x[%j] : memref<50xf64>
      %quotient = arith.divf %a, %c9 : f64
      %product = arith.mulf %before, %ninth fastmath<contract> : f64
      %new = arith.addf %quotient, %product fastmath<contract> : f64
      memref.store %new, %x[%j] : memref<50xf64>
      scf.yield %new : f64
    }

An iteration waits for one multiply-add, in place of an addition and a division; divisions of what is not loop-carried
overlap. As where sums are reassociated, the error is that of rounding each term: at most 1.5 units in the last place of
|a / 9| + |before / 9|. Factors are constants whose reciprocal neither overflows nor is subnormal. Gauss-Seidel steps,
relaxation and running means are such loops.
"""

from __future__ import annotations

import math
from contextlib import suppress

from mlirml.analysis.values import depends_on
from mlirml.core.dataclass import dataclass
from mlirml.ir import emit
from mlirml.ir.bindings import block_ops, defining_op, mlir, named_operations, replace_op
from mlirml.passes import NoMatch, Pass, register
from mlirml.passes.presence import PROGRAM_LOOP

_SUMS = ("arith.addf", "arith.subf")
_FACTORS = ("arith.divf", "arith.mulf")
_EXPONENTS = {"f32": 60, "f64": 500}
"""The largest exponent of a factor: it times a number of ordinary size is neither infinite nor subnormal."""


@register(when=PROGRAM_LOOP, optional=True)
class DistributeFactorsPass(Pass):
    """Distribute constant factors and divisors of sums that the next iteration of an innermost loop waits for."""

    def run(self, module: mlir.Operation) -> None:
        for loop in named_operations(module, ("scf.for",)):
            for value in block_ops(loop.regions[0].blocks[0])[-1].operands:
                with suppress(NoMatch):
                    build(match(loop, value))


@dataclass(frozen=True, eq=False)
class Scaled:
    """A sum of which one term is loop-carried, and the product or quotient of it and a constant."""

    factor_op: mlir.Operation
    factor: float
    sum_op: mlir.Operation
    late: int


def match(loop: mlir.Operation, value: mlir.Value) -> Scaled:
    """Raises `NoMatch` if a value that a loop yields is no product of a constant and a sum."""
    block = loop.regions[0].blocks[0]
    op = defining_op(value)
    if op is None or op.name not in _FACTORS or op.block != block or any(inner.regions for inner in block_ops(block)):
        raise NoMatch("no product of an innermost loop")
    exponent = _EXPONENTS.get(str(value.type))
    factor = float_constant(op.operands[1])
    position = 0
    if factor is None and op.name == "arith.mulf":
        factor, position = float_constant(op.operands[0]), 1
    if exponent is None or factor is None or not 2.0**-exponent < abs(factor) < 2.0**exponent:
        raise NoMatch("a factor that is not constant, or extreme")
    total = stored_value(op.operands[position], block)
    sum_op = defining_op(total)
    if sum_op is None or sum_op.name not in _SUMS or sum_op.block != block:
        raise NoMatch("not of a sum")
    carried = list(block.arguments)[1:]
    late = [depends_on(operand, carried) for operand in sum_op.operands]
    others = [use.owner.operation for use in total.uses if use.owner.operation not in (op,)]
    if sum(late) != 1 or any(user.name != "memref.store" for user in others):
        raise NoMatch("no loop-carried term, or a sum that is needed itself")
    return Scaled(op, factor, sum_op, late.index(True))


def float_constant(value: mlir.Value) -> float | None:
    """A finite float constant other than zero; None for other values."""
    op = defining_op(value)
    if op is None or op.name != "arith.constant" or not isinstance(value.type, mlir.FloatType):
        return None
    number = float(mlir.FloatAttr(op.attributes["value"]).value)
    return number if number and math.isfinite(number) else None


def stored_value(value: mlir.Value, block: mlir.Block) -> mlir.Value:
    """The value that the last store before a load stored to its element; other values as they are."""
    load = defining_op(value)
    if load is None or load.name != "memref.load" or load.block != block:
        return value
    ops = block_ops(block)
    for op in ops[: ops.index(load)][::-1]:
        if op.name == "memref.store":
            return op.operands[0] if list(op.operands)[1:] == list(load.operands) else value
    return value


def build(scaled: Scaled) -> None:
    """Replace a product of a sum by a sum of products."""
    op, terms = scaled.factor_op, list(scaled.sum_op.operands)
    kind = op.results[0].type
    with op.location, mlir.InsertionPoint(op):
        contract = mlir.Attribute.parse("#arith.fastmath<contract>")
        constant = emit.number(kind, scaled.factor)
        early = emit.same_type(op.name, terms[1 - scaled.late], constant)
        is_quotient = op.name == "arith.divf"
        multiplier = emit.number(kind, 1 / scaled.factor) if is_quotient else constant
        late = emit.value("arith.mulf", [terms[scaled.late], multiplier], kind, fastmath=contract)
        parts = [late, early] if scaled.late == 0 else [early, late]
        total = emit.value(scaled.sum_op.name, parts, kind, fastmath=contract)
    replace_op(op, total)
