"""Multiply reciprocals: quotients by a number that is the same in all iterations of a loop are products.

Before:
    scf.for %j = %c0 to %n step %c1 {
      %a = memref.load %x[%i, %j] : memref<90x70xf64>
      %b = memref.load %sums[%i] : memref<90xf64>
      %q = arith.divf %a, %b : f64
      memref.store %q, %y[%i, %j] : memref<90x70xf64>
    }
After:
    %b = memref.load %sums[%i] : memref<90xf64>
    %scale = ...                                     // the sign of b, times a power of two where b is extreme
    %d = arith.mulf %b, %scale : f64
    %r = arith.divf %one, %d : f64
    scf.for %j = %c0 to %n step %c1 {
      %a = memref.load %x[%i, %j] : memref<90x70xf64>
      %s = arith.mulf %a, %scale : f64
      %q = arith.mulf %s, %r : f64
      %rest = math.fma %q, %d, -%s                   // how much the product is off
      %better = math.fma -%rest, %r, %q
      %known = arith.cmpf ord, %better, %better      // infinities have no rest
      %new = arith.select %known, %better, %q : f64
      memref.store %new, %y[%i, %j] : memref<90x70xf64>
    }

A division of vectors takes as long as ten multiplications. With the rest the product is the quotient, correctly
rounded, except for about one number in 2^50 (of f32, in 2^22), results that are nearly infinite, and numbers so small
that the rest is subnormal (P. Markstein, IA-64 and elementary functions, 2000, chapter 8). The scale keeps the divisor,
and its reciprocal, in the range of normal numbers; it is exact, and neither overflows nor underflows where the quotient
does not.

f16 and bf16 are divided in f32, where the product alone is as good:

    %w = arith.extf %a : f16 to f32
    %q = arith.mulf %w, %r : f32
    %new = arith.truncf %q : f32 to f16

It is off by less than 2^-23 of the quotient, and no quotient of two numbers of 11 bits is as near to the middle of two
of them: the result is that of the division. Only where it is subnormal may it be the other one of two numbers that are
equally far from the quotient.

The divisor may be computed in the loop of what is the same in its iterations. Quotients of short loops stay, and those
that the next iteration waits for: a division of one number has less latency than the chain of products.
"""

from __future__ import annotations

import math
from contextlib import suppress

from mlirml.analysis.constants import float_of
from mlirml.analysis.traits import COUNTED_LOOPS
from mlirml.analysis.values import depends_on
from mlirml.analysis.work import trips_of
from mlirml.core.dataclass import dataclass
from mlirml.ir import emit
from mlirml.ir.bindings import block_ops, mlir, named_operations, replace_op
from mlirml.passes import NoMatch, Pass, register
from mlirml.passes.report import add_remark
from mlirml.pipelines.memref.invariants import Invariants
from mlirml.targets.machine import Processor

_EXPONENT = 500
"""A divisor whose exponent is larger, or smaller than minus this, is scaled by the power of two with this exponent."""
_NARROW_EXPONENT = 60
"""The same for f32, and for bf16, whose numbers have the exponents of f32."""
_FEWEST = 16
"""The least number of iterations for which a reciprocal is computed."""
_FEWEST_SINGLE = 512
"""The same for f32, whose divisions are faster: softmax rows of 128 took 1.2 times as long."""
_NARROW = (mlir.F16Type, mlir.BF16Type)
_DIVIDED = (mlir.F64Type, mlir.F32Type, *_NARROW)


@register(when=("arith.divf",), optional=True)
class MultiplyReciprocalsPass(Pass):
    """Replace divisions in loops by numbers that do not depend on the iteration, on processors with multiply-adds."""

    processor: Processor = Processor()

    def run(self, module: mlir.Operation) -> None:
        if not self.processor.has_fma:
            return
        loops: dict[mlir.Operation, tuple[Invariants, dict[mlir.Value, Reciprocal]]] = {}
        for op in named_operations(module, ("arith.divf",)):
            with suppress(NoMatch):
                around = loop_of(op)
                if around not in loops:
                    loops[around] = Invariants(around), {}
                build(op, *loops[around])


def loop_of(op: mlir.Operation) -> mlir.Operation:
    """The loop in whose body a division by something that may be the same in each iteration is."""
    parent = op.parent
    loop = None if parent is None else parent.operation
    if loop is None or loop.name not in COUNTED_LOOPS or not isinstance(op.results[0].type, _DIVIDED):
        raise NoMatch("not in a loop")
    divisor, dividend = (float_of(op.operands[number]) for number in (1, 0))
    if dividend is not None or (divisor is not None and not is_ordinary(divisor)):
        raise NoMatch("a reciprocal, or a shift of the exponent")
    trips, is_single = trips_of(loop), isinstance(op.results[0].type, mlir.F32Type)
    if (trips is None and is_single) or (trips is not None and trips < (_FEWEST_SINGLE if is_single else _FEWEST)):
        raise NoMatch("a short loop")
    if is_carried(op, loop):
        raise NoMatch("the next iteration waits for the quotient")
    return loop


def is_carried(op: mlir.Operation, loop: mlir.Operation) -> bool:
    """True if the next iteration of a loop may wait for the quotient, as a loop-carried value or in memory."""
    if loop.name != "scf.for":
        return False
    block, results = loop.regions[0].blocks[0], list(op.results)
    variable, *carried = block.arguments
    if depends_on(op.operands[0], carried) and any(depends_on(v, results) for v in block_ops(block)[-1].operands):
        return True
    for store in named_operations(loop, ("memref.store",)):
        value, array, *indices = store.operands
        if not depends_on(value, results):
            continue
        own = indices if any(depends_on(index, [variable]) for index in indices) else None
        for load in named_operations(loop, ("memref.load",)):
            source, *others = load.operands
            if source == array and others != own and depends_on(op.operands[0], list(load.results)):
                return True
    return False


def is_ordinary(divisor: float) -> bool:
    """True for constants by which LLVM does not multiply by itself, as it does by powers of two."""
    return math.isfinite(divisor) and abs(math.frexp(divisor)[0]) not in (0.0, 0.5)


@dataclass(frozen=True)
class Reciprocal:
    """The scale of a divisor and of what it divides, the scaled divisor, which is not negative, and its reciprocal."""

    scale: mlir.Value
    divisor: mlir.Value
    reciprocal: mlir.Value


def build(op: mlir.Operation, loop: Invariants, reciprocals: dict[mlir.Value, Reciprocal]) -> None:
    """Replace a division; raises `NoMatch` where the divisor depends on the iteration."""
    dividend, divisor = op.operands
    if not loop.has(divisor):
        raise NoMatch("the divisor depends on the iteration")
    if loop.has(dividend):
        raise NoMatch("the quotient is the same in each iteration")
    known = reciprocals.get(divisor)
    if known is None:
        with op.location, mlir.InsertionPoint(loop.op):
            known = reciprocals[divisor] = build_reciprocal(loop.hoist(divisor))
    with op.location, mlir.InsertionPoint(op):
        result = build_quotient(dividend, known)
    shown = float_of(divisor)
    by = "b" if shown is None else f"{shown:g}"
    text = f"rewritten: `a / {by}` multiplies by 1 / {by}, computed once before the loop"
    add_remark(op.location, text, outcome="rewritten")
    replace_op(op, result)


def build_reciprocal(divisor: mlir.Value) -> Reciprocal:
    """The reciprocal of a divisor, at the insertion point; of a narrow one in f32."""
    exponent = exponent_of(divisor.type)
    constant = float_of(divisor)
    if isinstance(divisor.type, _NARROW):
        divisor = emit.value("arith.extf", [divisor], mlir.F32Type.get())
    kind = divisor.type
    if constant is not None:
        scale = scale_of(constant, exponent)
        scaled = constant * scale
        return Reciprocal(*(emit.number(kind, each) for each in (scale, scaled, 1 / scaled)))
    one = emit.number(kind, 1.0)
    if exponent is None:
        return Reciprocal(one, divisor, emit.same_type("arith.divf", one, divisor))
    least, most = (emit.number(kind, each) for each in (2.0**-exponent, 2.0**exponent))
    size = emit.same_type("math.absf", divisor)
    scale = emit.same_type("arith.select", emit.compare("ogt", size, most), least, one)
    scale = emit.same_type("arith.select", emit.compare("olt", size, least), most, scale)
    scale = emit.same_type("math.copysign", scale, divisor)
    scaled = emit.same_type("arith.mulf", divisor, scale)
    return Reciprocal(scale, scaled, emit.same_type("arith.divf", one, scaled))


def exponent_of(dtype: mlir.Type) -> int | None:
    """The exponent beyond which divisors are scaled, or None: the reciprocals of all f16 are normal numbers of f32."""
    if isinstance(dtype, mlir.F16Type):
        return None
    return _EXPONENT if isinstance(dtype, mlir.F64Type) else _NARROW_EXPONENT


def scale_of(divisor: float, most: int | None = _EXPONENT) -> float:
    """The scale of a constant divisor, if exponents up to `most` need none.

    >>> scale_of(3.0), scale_of(-1e300) == -(2.0**-500), scale_of(-3.0, None)
    (1.0, True, 1.0)
    """
    if most is None:
        return 1.0
    exponent = math.frexp(divisor)[1]
    size = 2.0**-most if exponent > most else 2.0**most if exponent < -most else 1.0
    return math.copysign(size, divisor)


def build_quotient(dividend: mlir.Value, by: Reciprocal) -> mlir.Value:
    """The quotient, at the insertion point."""
    result = dividend.type
    if isinstance(result, _NARROW):
        wide = emit.value("arith.extf", [dividend], by.reciprocal.type)
        product = emit.same_type("arith.mulf", scaled_by(wide, by.scale), by.reciprocal)
        return emit.value("arith.truncf", [product], result)
    scaled = scaled_by(dividend, by.scale)
    product = emit.same_type("arith.mulf", scaled, by.reciprocal)
    rest = emit.same_type("math.fma", product, by.divisor, emit.same_type("arith.negf", scaled))
    better = emit.same_type("math.fma", emit.same_type("arith.negf", rest), by.reciprocal, product)
    return emit.same_type("arith.select", emit.compare("ord", better, better), better, product)


def scaled_by(value: mlir.Value, scale: mlir.Value) -> mlir.Value:
    """A value times a scale, at the insertion point."""
    return value if float_of(scale) == 1.0 else emit.same_type("arith.mulf", value, scale)
