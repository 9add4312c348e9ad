"""The body of an accumulation as signed products: `out + a * b - c * d`, each under a condition.

Accepted forms, with the accumulator `o` and everything else independent of it:

    o + e, e + o, o - e      accumulate
    select(c, o + e, o)      accumulate where `c` holds, or does not
    select(c, e, 0)          a term where `c` holds
    -e, e1 + e2, e1 - e2     signs, and several terms
    a * b, a / b, extf(a*b)  factors, in any order and number

Terms and factors are reassociated, as in the reductions of NumPy and BLAS. A product of floats is not rounded before it
is widened or added (as with a fused multiply-add). Nothing else is split: `-(o + e)`, `e - o`, `max(o, e)` or a sum
that is scaled as it grows are not accumulations.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import field, replace

from mlirml.analysis.values import walk
from mlirml.core.dataclass import dataclass
from mlirml.ir.bindings import defining_op, mlir
from mlirml.passes import NoMatch
from mlirml.raising.recognition.nest import Nest

_ADD = ("arith.addf", "arith.addi")
_SUBTRACT = ("arith.subf", "arith.subi")
_MULTIPLY = ("arith.mulf", "arith.muli")
_WIDEN = ("arith.extf",)
_MOST_VISITS = 2000
_ELEMENTS = frozenset(["f16", "bf16", "f32", "f64", "i8", "i16", "i32", "i64"])


@dataclass(frozen=True)
class Mask:
    """A condition of the body, and the value that it must have."""

    condition: mlir.Value
    wanted: bool


@dataclass(frozen=True)
class Factor:
    """A value of the body, or a divisor; `casts` widen it afterwards, in order."""

    value: mlir.Value
    casts: tuple[mlir.Operation, ...] = ()
    divides: bool = False


@dataclass(frozen=True)
class Term:
    """A product, or a negated product, that counts where all masks hold."""

    factors: tuple[Factor, ...]
    negative: bool = False
    masks: tuple[Mask, ...] = ()


def read_terms(nest: Nest) -> list[Term]:
    """The terms that a generic adds to its accumulator; raises `NoMatch`."""
    if len(nest.inits) != 1:
        raise NoMatch("several outputs")
    type_ = nest.yields[0].type
    if str(type_) not in _ELEMENTS:
        raise NoMatch(f"sums of {type_}")
    return list(_Reader(nest).added(nest.yields[0]))


@dataclass(frozen=True)
class _Reader:
    nest: Nest
    visits: list[mlir.Value] = field(default_factory=list)

    def visit(self, value: mlir.Value) -> mlir.Operation | None:
        """The operation of the body that defines a value; raises `NoMatch` if too many have been visited."""
        self.visits.append(value)
        if len(self.visits) > _MOST_VISITS:
            raise NoMatch("it has too many terms, or factors")
        return self.nest.inner(value)

    @property
    def out(self) -> mlir.Value:
        return self.nest.arguments[-1]

    def added(self, value: mlir.Value) -> Iterator[Term]:
        """The terms of a value that contains the accumulator."""
        if value == self.out:
            return
        op = self.visit(value)
        if op is None:
            raise NoMatch("the body does not accumulate")
        if op.name == "arith.select":
            condition, yes, no = op.operands
            if self.nest.reads_out(condition):
                raise NoMatch("a condition reads the out")
            for branch, wanted in ((yes, True), (no, False)):
                masks = tuple(masks_of(self.nest, condition, wanted))
                yield from (replace(term, masks=masks + term.masks) for term in self.added(branch))
            return
        if op.name not in (*_ADD, *_SUBTRACT):
            raise NoMatch(f"the body ends in {op.name}")
        left, right = op.operands
        if op.name in _ADD and self.nest.reads_out(right):
            left, right = right, left
        if self.nest.reads_out(right):
            raise NoMatch("the out is read twice, or subtracted")
        yield from self.added(left)
        yield from self.terms(right, op.name in _SUBTRACT)

    def terms(self, value: mlir.Value, negative: bool) -> Iterator[Term]:
        """The terms of a value that does not depend on the accumulator."""
        op = self.visit(value)
        if op is not None and op.name in (*_ADD, *_SUBTRACT):
            left, right = op.operands
            yield from self.terms(left, negative)
            yield from self.terms(right, negative != (op.name in _SUBTRACT))
        elif op is not None and op.name == "arith.negf":
            yield from self.terms(op.operands[0], not negative)
        elif op is not None and op.name == "arith.select" and any(is_zero(v) for v in op.operands[1:]):
            condition, yes, no = op.operands
            masks = tuple(masks_of(self.nest, condition, is_zero(no)))
            for term in self.terms(yes if is_zero(no) else no, negative):
                yield replace(term, masks=masks + term.masks)
        else:
            factors = list(self.factors(value))
            flips = sum(sign for _, sign in factors)
            yield Term(tuple(factor for factor, _ in factors), negative != bool(flips % 2))

    def factors(self, value: mlir.Value) -> Iterator[tuple[Factor, bool]]:
        """The factors of a value; True if one is negated."""
        op = self.visit(value)
        if op is not None and op.name in _MULTIPLY:
            for operand in op.operands:
                yield from self.factors(operand)
        elif op is not None and op.name == "arith.negf":
            first, *rest = self.factors(op.operands[0])
            yield first[0], not first[1]
            yield from rest
        elif op is not None and op.name == "arith.divf" and self.is_product(op.operands[0]):
            yield from self.factors(op.operands[0])
            yield Factor(op.operands[1], divides=True), False
        elif op is not None and op.name in _WIDEN and self.is_product(op.operands[0]):
            for factor, sign in self.factors(op.operands[0]):
                yield replace(factor, casts=(*factor.casts, op)), sign
        else:
            yield Factor(value), False

    def is_product(self, value: mlir.Value) -> bool:
        op = self.nest.inner(value)
        return op is not None and op.name in (*_MULTIPLY, "arith.negf", "arith.divf")


def masks_of(nest: Nest, condition: mlir.Value, wanted: bool) -> Iterator[Mask]:
    """A condition as conditions that must all hold: both of `and`, neither of `or`."""
    name = "arith.andi" if wanted else "arith.ori"

    def parts(one: mlir.Value) -> Sequence[mlir.Value]:
        op = nest.inner(one)
        return op.operands if op is not None and op.name == name else ()

    return (Mask(one, wanted) for one in walk(condition, parts) if not parts(one))


def is_zero(value: mlir.Value) -> bool:
    """True if a scalar is the constant 0 (of either sign)."""
    op = defining_op(value)
    return op is not None and op.name == "arith.constant" and op.attributes["value"].value == 0
