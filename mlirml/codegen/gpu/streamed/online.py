"""Attention in one pass: maxima that grow, and sums that are scaled when they do.

    m' = max(m, the maxima of the tile)
    l = l * exp(m - m') + the sums of exp(s - m')
    o = o * exp(m - m') + exp(s - m') @ v
    m = m'
    the result is o / l

That is the online softmax of M. Milakov and N. Gimelshein, "Online normalizer calculation for softmax" (2018). Beside
the sums of exponentials there may be those of `s == m`, which the derivative of a maximum has; they begin again where a
maximum grows. A row whose scores have been -inf so far has 0 instead of its maximum, so that its weights are 0.
"""

from __future__ import annotations

import math
from typing import ClassVar

from mlirml.analysis.attention import Attention, Tracer, match_attention
from mlirml.analysis.constants import float_of
from mlirml.codegen.gpu.combiners import Combiner
from mlirml.codegen.gpu.contract.product import Product
from mlirml.codegen.gpu.streamed.plan import Plan, reduced_results
from mlirml.core.dataclass import dataclass
from mlirml.ir import emit
from mlirml.ir.bindings import defining_op, mlir
from mlirml.passes import NoMatch

EXPONENTIAL, EQUAL = "exponential", "equal"
"""The terms of sums that are known to be 1 at the maximum of a row."""
_EQUAL = 1
"""The predicate `oeq`."""


@dataclass(frozen=True)
class Online:
    """The maximum, the sums with the form of each of their terms, and the product that is divided by one of them."""

    maximum: Combiner
    sums: Combiner
    forms: tuple[str, ...]
    sink: Product
    total: mlir.Value

    form_of_sink: ClassVar[str] = EXPONENTIAL
    """The form of the terms of the product."""

    @property
    def most(self) -> mlir.Value:
        """The tensor of the maxima."""
        return reduced_results(self.maximum)[0]


def match_online(plan: Plan) -> Online:
    """Read all passes of a plan as one; raises NoMatch."""
    passes = plan.passes
    if [(len(p.reductions), len(p.sinks)) for p in passes] != [(1, 0), (1, 0), (0, 1)]:
        raise NoMatch("no maximum, sums and one product")
    maximum, sums, sink = passes[0].reductions[0], passes[1].reductions[0], passes[2].sinks[0]
    attention = match_attention(sink.op, alone=False)
    if attention.weights != sink.sides[0].operand or attention.maxima not in reduced_results(maximum):
        raise NoMatch("other weights")
    if attention.totals not in reduced_results(sums) or len(maximum.carried) != 1:
        raise NoMatch("other sums")
    if not is_zero(sums) or not is_lowest(maximum):
        raise NoMatch("a reduction begins with something")
    forms = tuple(form_of(reducer.value, attention) for reducer in sums.reducers)
    if any(reducer.combiner.word != "sum" for reducer in sums.reducers):
        raise NoMatch("no sums")
    return Online(maximum, sums, forms, sink, attention.totals)


def is_zero(combiner: Combiner) -> bool:
    """True if all reductions begin with zero."""
    return all(begin(combiner, n) == 0 for n in combiner.carried)


def is_lowest(combiner: Combiner) -> bool:
    """True if a maximum begins with minus infinity."""
    return all(begin(combiner, n) == float("-inf") for n in combiner.carried)


def begin(combiner: Combiner, number: int) -> float | None:
    """The number that a result of a reduction begins with."""
    first = len(combiner.op.operands) - len(combiner.op.results)
    fill = defining_op(combiner.op.operands[first + number])
    return float_of(fill.operands[0]) if fill is not None and fill.name == "linalg.fill" else None


def form_of(value: mlir.Value, attention: Attention) -> str:
    """The form of a term of a sum; raises NoMatch for others."""
    tracer = Tracer()
    found = tracer.trace(value)
    if found.op is not None and found.op.name == "math.exp":
        difference = tracer.trace(found.op.operands[0])
        if difference.op is not None and difference.op.name == "arith.subf" and pair(tracer, difference.op, attention):
            return EXPONENTIAL
    if found.op is not None and found.op.name == "arith.select":
        compare = defining_op(found.op.operands[0])
        numbers = [float_of(operand) for operand in list(found.op.operands)[1:]]
        is_equal = (
            compare is not None and compare.name == "arith.cmpf" and compare.attributes["predicate"].value == _EQUAL
        )
        if is_equal and numbers == [1.0, 0.0] and pair(tracer, compare, attention):
            return EQUAL
    raise NoMatch("a sum of other terms")


def pair(tracer: Tracer, op: mlir.Operation | None, attention: Attention) -> bool:
    """True if the operands of an operation are the score and the maximum of its row."""
    if op is None:
        return False
    score, maximum = map(tracer.trace, op.operands)
    return bool(maximum.tensor == attention.maxima and tracer.same(score, attention.traced))


def known_maximum(now: mlir.Value) -> mlir.Value:
    """The maximum of a row so far, and 0 in place of minus infinity."""
    lowest = emit.compare("oeq", now, emit.number(now.type, -math.inf))
    return emit.same_type("arith.select", lowest, emit.number(now.type, 0), now)


def factor_of(form: str, before: mlir.Value, now: mlir.Value, known: mlir.Value, type_: mlir.Type) -> mlir.Value:
    """The factor of a sum of terms of a form when the maximum of its row grows, in the type of the sum."""
    if form == EXPONENTIAL:
        before, known = (widened(value, type_) for value in (before, known))
        return widened(emit.same_type("math.exp", emit.same_type("arith.subf", before, known)), type_)
    same = emit.compare("oeq", before, now)
    return emit.same_type("arith.select", same, emit.number(type_, 1), emit.number(type_, 0))


def widened(value: mlir.Value, type_: mlir.Type) -> mlir.Value:
    """A float with another type, at least as wide."""
    return value if value.type.width >= type_.width else emit.value("arith.extf", [value], type_)
