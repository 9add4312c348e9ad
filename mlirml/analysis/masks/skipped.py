"""What is computed at masked positions: whether blocks of them can be left out without another result.

    s = where(mask, a @ b, -inf)         -inf where it is masked
    m = max of the rows of s             that of the positions that are not masked, if a row has one
    e = exp(s - m)                       zero where it is masked
    t = sum of the rows of e             at least 1, as the largest element is exp(0)
    o = (e / t) @ v                      masked positions add zero times v, which is zero if v is finite

Terms are evaluated for a masked position and for one that is not. A finite fill such as -1e9 vanishes in the same way
if the scores are so much greater that the exponential of the difference is zero: the bounds of the scores follow from
the largest elements of the operands of the product. `Guard`s are conditions on such bounds, which are tested at run
time; they exclude infinities and NaN as well, as those do not vanish. A row that is masked whole has no greater
element, and where one is, nothing is left out.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import field
from typing import TypeAlias

from mlirml.analysis.constants import float_of
from mlirml.analysis.dimensions import Part, Parts
from mlirml.analysis.masks.bounds import Bound, Guard, Largest, Range, add, mul
from mlirml.analysis.masks.terms import COPY, ELEMENT, LITERAL, PRODUCT, TOTAL, Term, Terms, is_parallel_result
from mlirml.analysis.traits import FLOAT_CASTS
from mlirml.core.dataclass import dataclass
from mlirml.core.no_match import NoMatch
from mlirml.ir.bindings import block_ops, defining_op, mlir

_UNDERFLOW = 800.0
"""The exponential of a number less than minus this is zero in every type."""
_ROUNDING = 1.02
"""More than what rounding adds to a sum of products in relation to the sum of their sizes."""
_LARGEST = ((mlir.F16Type, 65504.0), (mlir.BF16Type, 3.3e38), (mlir.F32Type, 3.4e38), (mlir.F64Type, 1.79e308))
_MAXIMA = ("arith.maximumf", "arith.maxnumf")

Element: TypeAlias = tuple[mlir.Value, Parts]
Value: TypeAlias = "Range | bool | str | None"
"""The numbers that a term may have, a known truth value, or `VANISHES`; None if nothing is known."""
VANISHES = "vanishes"
"""A difference whose exponential is zero."""


@dataclass
class Skipping:
    """Evaluates terms at positions where `condition` is `holds`: the others are `masked`.

    `guards` are the conditions under which the results are right. For each dimension in `needs`, there must be a
    position that is not masked at all indices of the other one.
    """

    terms: Terms
    condition: Term
    holds: bool
    most_elements: int
    guards: dict[Guard, None] = field(default_factory=dict)
    needs: dict[Part, None] = field(default_factory=dict)
    _known: dict[tuple[Term, bool], Value] = field(default_factory=dict)

    def of(self, term: Term, masked: bool) -> Value:
        """The value of a term at masked or at other positions."""
        key = term, masked
        if key not in self._known:
            self._known[key] = None
            self._known[key] = self._of(term, masked)
        return self._known[key]

    def number(self, term: Term) -> float | None:
        """The number that a term is at all masked positions."""
        found = self.of(term, True)
        return found.number if isinstance(found, Range) else None

    def require(self, less: Bound, more: Bound) -> bool:
        """Add a guard; False if it never is met."""
        if isinstance(less, float) and isinstance(more, float):
            return less < more
        if more == -math.inf or less == math.inf:
            return False
        self.guards[Guard(less, more)] = None
        return True

    def require_finite(self, term_type: mlir.Type, size: Bound) -> bool:
        """Add the guard that numbers of a size are finite."""
        most = largest_of(term_type)
        return most is not None and self.require(mul(_ROUNDING, size), most)

    def largest(self, tensor: mlir.Value) -> Range | None:
        """The range of the elements of a tensor, unless it takes too long to compute."""
        kind = tensor.type
        if not isinstance(kind, mlir.RankedTensorType) or not isinstance(kind.element_type, mlir.FloatType):
            return None
        if not kind.has_static_shape or math.prod(kind.shape) > self.most_elements or tensor in self.terms.members:
            return None
        size = Largest(tensor)
        if not self.require_finite(kind.element_type, size):
            return None
        return Range(mul(-1.0, size), size)

    def _of(self, term: Term, masked: bool) -> Value:
        if term is self.condition:
            return self.holds is not masked
        if term.name == LITERAL:
            number = float(term.payload)
            return Range(number, number) if isinstance(term.type, mlir.FloatType) and number < math.inf else None
        if term.name == COPY:
            found = self.of(term.args[0], masked)
            return self.largest(term.payload[0]) if found is None else found
        if term.name == ELEMENT:
            return self.largest(term.payload[0])
        if term.name == PRODUCT:
            return self._product(term.payload)
        if term.name == TOTAL:
            return self._total(term.payload)
        rule = _RULES.get(term.name)
        found = None if rule is None else rule(self, term, masked)
        if isinstance(found, Range) and found.number is None and not self.require_finite(term.type, found.size):
            return None
        if isinstance(found, Range) and found.number is not None and found.number != -math.inf:
            most = largest_of(term.type)
            return found if most is not None and abs(found.number) < most else None
        return found

    def _product(self, element: Element) -> Range | None:
        """The range of the elements of a product."""
        member = self.terms.member_of(element)
        op = member.op
        a, b = map(self.largest, list(op.operands)[:2])
        if a is None or b is None or self._init(element) != 0.0:
            return None
        member = self.terms.member_of(element)
        sizes = zip(op.operands[0].type.shape, member.maps[0].results, strict=True)
        kept = [str(e) for e in member.maps[2].results]
        count = math.prod(size for size, e in sizes if str(e) not in kept)
        size = mul(_ROUNDING * count, mul(a.high, b.high))
        return Range(mul(-1.0, size), size) if self.require_finite(element[0].type.element_type, size) else None

    def _total(self, element: Element) -> Range | None:
        """The range of a sum of the exponentials of differences from the maximum: at least one of them is 1."""
        found = self.combined(element)
        if found is None or found[0] != "arith.addf" or found[1].name != "math.exp" or self._init(element) != 0.0:
            return None
        difference = found[1].args[0]
        maximum = self._maximum(difference)
        if (
            maximum is None
            or self._init(_uncast(difference.args[1]).payload) != -math.inf
            or not isinstance(self.of(maximum, False), Range)
        ):
            return None
        self.need(element)
        return Range(1.0, float(1 << 40))

    def _init(self, element: Element) -> float | None:
        """The number that a reduction starts with."""
        member = self.terms.member_of(element)
        init = member.op.operands[member.inputs + list(member.op.results).index(element[0])]
        op = defining_op(init)
        return float_of(op.operands[0]) if op is not None and op.name == "linalg.fill" else None

    def combined(self, element: Element) -> tuple[str, Term] | None:
        """The combiner of a reduction of columns, and the term of what is combined."""
        found = combined(self.terms, element)
        return found if found is not None and self.reduced(element) in self.terms.axes else None

    def reduced(self, element: Element) -> Part | None:
        """The one dimension that a reduction is of."""
        member = self.terms.member_of(element)
        number = list(member.op.results).index(element[0])
        if member.op.name != "linalg.generic":
            return None
        kept = {e.position for e in member.maps[member.inputs + number].results if isinstance(e, mlir.AffineDimExpr)}
        reduced = [member.loops.get(d) for d in range(member.maps[0].n_dims) if d not in kept]
        return reduced[0] if len(reduced) == 1 else None

    def need(self, element: Element) -> None:
        """Require a position that is not masked in what a reduction combines."""
        part = self.reduced(element)
        if part is not None:
            self.needs[part] = None

    def _maximum(self, term: Term) -> Term | None:
        """The term of which a difference subtracts the maximum of its row."""
        if term.name != "arith.subf":
            return None
        x, most = (_uncast(arg) for arg in term.args)
        found = self.combined(most.payload) if most.name == TOTAL else None
        return x if found is not None and found[0] in _MAXIMA and _uncast(found[1]) is x else None

    def difference(self, term: Term, masked: bool) -> Value:
        """A difference, which may be one from the maximum of the row."""
        x = self._maximum(term)
        if x is not None and masked:
            own, others = self.of(x, True), self.of(x, False)
            if isinstance(own, Range) and isinstance(others, Range):
                self.need(_uncast(term.args[1]).payload)
                if own.number == -math.inf or self.require(
                    add(add(own.high, mul(0.02, own.size)), _UNDERFLOW), others.low
                ):
                    return VANISHES
            return None
        a, b = (self.of(arg, masked) for arg in term.args)
        return a.plus(b.negated()) if isinstance(a, Range) and isinstance(b, Range) else None

    def skips_maximum(self, term: Term, column: Part) -> bool:
        """True if masked elements are not greater than the others of their row."""
        own, others = self.of(term, True), self.of(term, False)
        if not isinstance(own, Range) or not isinstance(others, Range):
            return False
        self.needs[column] = None
        return own.number == -math.inf or self.require(add(own.high, mul(0.02, own.size)), others.low)


def largest_of(type_: mlir.Type) -> float | None:
    """A number up to which a type of floats has numbers; None for other types."""
    return next((most for kind, most in _LARGEST if isinstance(type_, kind)), None)


def combined(terms: Terms, element: Element) -> tuple[str, Term] | None:
    """The combiner of a reduction, and the term of what is combined."""
    member = terms.member_of(element)
    if member.op.name != "linalg.generic":
        return None
    number = list(member.op.results).index(element[0])
    body = member.op.regions[0].blocks[0]
    op = defining_op(block_ops(body)[-1].operands[number])
    own = body.arguments[member.inputs + number]
    if op is None or op.block != body or own not in list(op.operands) or len(op.operands) != 2:
        return None
    if sum(True for _ in own.uses) != 1 or is_parallel_result(member, number):
        return None
    if op.name in ("arith.subf", "arith.subi") and op.operands[0] != own:
        return None
    (other,) = (operand for operand in op.operands if operand != own)
    return op.name, terms.value(member, other)


def _uncast(term: Term) -> Term:
    while term.name in FLOAT_CASTS or term.name == COPY:
        term = term.args[0]
    return term


def _select(at: Skipping, term: Term, masked: bool) -> Value:
    chosen = at.of(term.args[0], masked)
    if isinstance(chosen, bool):
        return at.of(term.args[1 if chosen else 2], masked)
    a, b = (at.of(arg, masked) for arg in term.args[1:])
    return a.joined(b) if isinstance(a, Range) and isinstance(b, Range) else None


def _add(at: Skipping, term: Term, masked: bool) -> Value:
    a, b = (at.of(arg, masked) for arg in term.args)
    if not isinstance(a, Range) or not isinstance(b, Range):
        return None
    # What is added to an infinity is finite: a guard of its own has seen to that.
    for x in (a, b):
        if x.number == -math.inf:
            return x
    return a.plus(b)


def _multiply(at: Skipping, term: Term, masked: bool) -> Value:
    a, b = (at.of(arg, masked) for arg in term.args)
    if not isinstance(a, Range) or not isinstance(b, Range) or -math.inf in (a.number, b.number):
        return None
    return Range(0.0, 0.0) if 0.0 in (a.number, b.number) else a.times(b)


def _divide(at: Skipping, term: Term, masked: bool) -> Value:
    a, b = (at.of(arg, masked) for arg in term.args)
    if not isinstance(a, Range) or not isinstance(b, Range) or not isinstance(b.low, float) or a.number == -math.inf:
        return None
    if b.number is not None and abs(b.number) >= 1e-30:
        return Range(0.0, 0.0) if a.number == 0.0 else a.times(Range(1 / b.number, 1 / b.number))
    if b.low < 1.0:
        return None
    return Range(0.0, 0.0) if a.number == 0.0 else Range(mul(-1.0, a.size), a.size)


def _exponential(at: Skipping, term: Term, masked: bool) -> Value:
    found = at.of(term.args[0], masked)
    if found == VANISHES:
        return Range(0.0, 0.0)
    if isinstance(found, Range) and found.number == -math.inf:
        return Range(0.0, 0.0)
    return None


def _unary(change: Callable[[Range], Range]) -> Callable[[Skipping, Term, bool], Value]:
    def rule(at: Skipping, term: Term, masked: bool) -> Value:
        found = at.of(term.args[0], masked)
        return change(found) if isinstance(found, Range) and found.number != -math.inf else None

    return rule


def _cast(at: Skipping, term: Term, masked: bool) -> Value:
    return at.of(term.args[0], masked)


def _both(at: Skipping, term: Term, masked: bool) -> Value:
    a, b = (at.of(arg, masked) for arg in term.args)
    return False if a is False or b is False else True if a is True and b is True else None


def _either(at: Skipping, term: Term, masked: bool) -> Value:
    a, b = (at.of(arg, masked) for arg in term.args)
    return True if a is True or b is True else False if a is False and b is False else None


def _exclusive(at: Skipping, term: Term, masked: bool) -> Value:
    a, b = term.args
    value = at.of(a, masked)
    return value is not bool(b.payload) if isinstance(value, bool) and b.name == LITERAL else None


def _compare(at: Skipping, term: Term, masked: bool) -> Value:
    a, b = (at.of(arg, masked) for arg in term.args)
    if not isinstance(a, Range) or not isinstance(b, Range) or term.op is None:
        return None
    predicate = term.op.attributes["predicate"].value
    if predicate in (7, 14):  # ordered, unordered: a range has no NaN
        return bool(predicate == 7)
    if predicate == 1 and a.number is not None and b.number is not None:  # equal
        return a.number == b.number
    return None


_RULES: dict[str, Callable[[Skipping, Term, bool], Value]] = {
    "arith.select": _select,
    "arith.addf": _add,
    "arith.subf": Skipping.difference,
    "arith.mulf": _multiply,
    "arith.divf": _divide,
    "math.exp": _exponential,
    "arith.negf": _unary(Range.negated),
    "math.absf": _unary(lambda x: Range(0.0, x.size)),
    "arith.extf": _cast,
    "arith.truncf": _cast,
    "arith.andi": _both,
    "arith.ori": _either,
    "arith.xori": _exclusive,
    "arith.cmpf": _compare,
}
"""For each operation the function that computes the known values of its result."""


def check(at: Skipping, term: Term, combiner: str, column: Part) -> None:
    """Check that masked elements do not change what a reduction combines; raises `NoMatch`."""
    number = at.number(term)
    if combiner in ("arith.addf", "arith.subf") and number == 0.0:
        return
    if combiner in _MAXIMA and at.skips_maximum(term, column):
        return
    raise NoMatch("masked elements count in a reduction")
