"""Associative combiners: recognise them in a body, build their identity, combine two values."""

from __future__ import annotations

from collections.abc import Sequence

from mlirml.analysis.constants import float_of
from mlirml.analysis.reductions import combination_of, is_only_use
from mlirml.codegen.cpu.nest import Body, Nest
from mlirml.core.dataclass import dataclass
from mlirml.ir import emit
from mlirml.ir.bindings import defining_op, mlir
from mlirml.ir.combiners import Combiner
from mlirml.passes import NoMatch


@dataclass(frozen=True)
class Reducer:
    """One reduced output: its combiner, the element type and the value that is combined."""

    combiner: Combiner
    type: mlir.Type
    ops: Sequence[mlir.Operation]
    value: mlir.Value
    out: int

    @property
    def is_float_sum(self) -> bool:
        return self.combiner.op == "arith.addf"

    @property
    def is_nan_aware(self) -> bool:
        """True if NaN wins: such a maximum is computed as a plain maximum and a flag."""
        return self.combiner.is_extreme and self.combiner.is_float and not self.combiner.ignores_nan

    def identity(self) -> mlir.Value:
        """The identity of the combiner as a scalar."""
        return emit.constant(emit.identity(self.combiner, self.type))

    def combine(self, a: mlir.Value, b: mlir.Value, *, fast: bool = False) -> mlir.Value:
        """`a` and `b` combined; `fast` lets LLVM reassociate float sums and products, and `a` is not NaN."""
        if self.combiner.ignores_nan:
            return self.combine_without_nan(a if fast else self.or_identity(a), self.or_identity(b))
        if fast and self.combiner.is_rounded and self.combiner.several is None:
            flags = mlir.Attribute.parse("#arith.fastmath<reassoc>")
            return emit.value(self.combiner.op, [a, b], self.type, fastmath=flags)
        return emit.formula(self.combiner.formula, {"a": a, "b": b})

    def or_identity(self, value: mlir.Value) -> mlir.Value:
        """A value, or the identity for NaN: one instruction, whereas a select would prevent vectorisation."""
        return emit.value(self.combiner.op, [self._unmasked(value), self.identity()], self.type)

    def _unmasked(self, value: mlir.Value) -> mlir.Value:
        """A select between a value and the identity, as a sum that is the value, or else the identity or NaN.

        LLVM turns a maximum of selects into branches, which it does not vectorise. A value plus minus infinity is minus
        infinity, or NaN if it is infinite, and plus -0 it is the value itself.
        """
        op, limit = defining_op(value), self.combiner.identity()
        if op is None or op.name != "arith.select":
            return value
        mask, yes, no = op.operands
        nothing, identity = emit.number(self.type, -0.0), self.identity()
        if float_of(no) == limit:
            return emit.same_type("arith.addf", yes, emit.same_type("arith.select", mask, nothing, identity))
        if float_of(yes) == limit:
            return emit.same_type("arith.addf", no, emit.same_type("arith.select", mask, identity, nothing))
        return value

    def combine_without_nan(self, a: mlir.Value, b: mlir.Value) -> mlir.Value:
        """`maxnumf` or `minnumf` without NaN. LLVM 22 loses elements when it vectorises chains of `llvm.minnum`."""
        flags = mlir.Attribute.parse("#arith.fastmath<nnan,nsz>")
        name = f"arith.{self.combiner.word}f"
        return emit.value(name, [a, b], self.type, fastmath=flags)

    def combine_numbers(self, a: mlir.Value, b: mlir.Value) -> mlir.Value:
        """The maximum of two values that are not NaN; poison if one is. One instruction."""
        flags = mlir.Attribute.parse("#arith.fastmath<nnan,nsz>")
        return emit.value(self.combiner.op, [a, b], self.type, fastmath=flags)


def is_nan(value: mlir.Value) -> mlir.Value:
    return emit.compare("uno", value, value)


def not_nan(value: mlir.Value) -> mlir.Value:
    return emit.compare("ord", value, value)


def two_sum(total: mlir.Value, error: mlir.Value, value: mlir.Value) -> tuple[mlir.Value, mlir.Value]:
    """`total + value`, and `error` plus its rounding error (Knuth, The Art of Computer Programming 2, 4.2.2)."""
    new = emit.same_type("arith.addf", total, value)
    part = emit.same_type("arith.subf", new, total)
    lost_total = emit.same_type("arith.subf", total, emit.same_type("arith.subf", new, part))
    lost_value = emit.same_type("arith.subf", value, part)
    lost = emit.same_type("arith.addf", lost_total, lost_value)
    return new, emit.same_type("arith.addf", error, lost)


def corrected(total: mlir.Value, error: mlir.Value) -> mlir.Value:
    """`total + error`; `total` if the error is NaN, because the sum overflowed or has infinite terms."""
    better = emit.same_type("arith.addf", total, error)
    return emit.same_type("arith.select", not_nan(error), better, total)


def match_reducers(nest: Nest, body: Body) -> list[Reducer]:
    """The combiner of every output that a reduction dimension does not index; NoMatch for any other accumulation."""
    reducers = []
    for number, value in enumerate(body.yields):
        access = nest.out(number)
        reduced = any(r and s > 1 and not t for r, s, t in zip(nest.reduction, nest.sizes, access.strides, strict=True))
        argument = body.arguments[len(body.arguments) - nest.num_outputs + number]
        if reduced:
            reducers.append(match_reducer(number, value, argument, body))
        elif body.reads(argument):
            raise NoMatch("an out with all dimensions is read")
    return reducers


def match_reducer(number: int, value: mlir.Value, argument: mlir.Value, body: Body) -> Reducer:
    """The combiner in `value = combiner(argument, x)`, with no other use of the argument or of the combination."""
    op = defining_op(value)
    if op is None or op not in body.ops:
        raise NoMatch("the yielded value is not computed in the body")
    found = combination_of(value, argument)
    if found is None or not is_only_use(found, argument):
        raise NoMatch("the accumulator is not combined with one value alone")
    return Reducer(found.combiner, value.type, found.ops, found.term, number)
