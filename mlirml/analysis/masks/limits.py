"""Limits of a mask: for each row the columns where a condition may hold, and those where it holds, as expressions.

    column <= row                        columns up to row + 1
    (column > row - w) & (column < n)    columns from row - w + 1 up to n
    column // 64 == row // 64            columns from row // 64 * 64 up to row // 64 * 64 + 64
    abs(row - column) < w                columns from row - w + 1 up to row + w

A condition is split into comparisons of the column with a sum of other numbers, which may be read from memory, and
their combinations by and, or and not. The column has the factor 1 or -1, and may be divided by a constant.
"""

from __future__ import annotations

from typing import TypeAlias

from mlirml.analysis.dimensions import Part
from mlirml.analysis.masks.terms import INDEX, LITERAL, Term
from mlirml.analysis.structured import INDEX_CONVERSIONS
from mlirml.analysis.traits import INTEGER_STEPS
from mlirml.core.dataclass import dataclass, replace
from mlirml.ir.bindings import mlir

_PREDICATES = {0: "eq", 1: "ne", 2: "lt", 3: "le", 4: "gt", 5: "ge"}
"""The predicates of `arith.cmpi` that are signed, or the same for both."""
_SWAPPED = {"eq": "eq", "ne": "ne", "lt": "gt", "le": "ge", "gt": "lt", "ge": "le"}
_CASTS = (*INDEX_CONVERSIONS, "arith.extui")
_MOST_PARTS = 500


@dataclass(frozen=True)
class Sum:
    """`scale` times the sum of terms with signs and a constant, plus `shift` and the sum of other terms, `rest`."""

    terms: tuple[tuple[int, Term], ...] = ()
    constant: int = 0
    scale: int = 1
    shift: int = 0
    rest: tuple[tuple[int, Term], ...] = ()


@dataclass(frozen=True)
class Cut:
    """Columns from `low` on and before `high`; None is no limit."""

    low: Sum | None
    high: Sum | None


@dataclass(frozen=True)
class Row:
    """All columns if a condition that is the same for all of them holds, else none."""

    condition: Term


@dataclass(frozen=True)
class Both:
    """Columns of both."""

    a: Limits
    b: Limits


@dataclass(frozen=True)
class Either:
    """Columns of either."""

    a: Limits
    b: Limits


@dataclass(frozen=True)
class Not:
    """All other columns."""

    a: Limits


@dataclass(frozen=True)
class Unknown:
    """Any columns."""


Limits: TypeAlias = "Cut | Row | Both | Either | Not | Unknown"


@dataclass(frozen=True)
class _Linear:
    """`sign * ((column + shift + inner terms) // divisor)` plus terms of other numbers with signs, plus a constant."""

    sign: int = 0
    shift: int = 0
    inner: tuple[tuple[int, Term], ...] = ()
    divisor: int = 1
    terms: tuple[tuple[int, Term], ...] = ()
    constant: int = 0

    def negated(self) -> _Linear:
        return replace(self, sign=-self.sign, terms=negated(self.terms), constant=-self.constant)

    def plus(self, other: _Linear) -> _Linear | None:
        if self.sign and other.sign:
            return None
        column = self if self.sign else other
        return replace(column, terms=(*self.terms, *other.terms), constant=self.constant + other.constant)


def negated(terms: tuple[tuple[int, Term], ...]) -> tuple[tuple[int, Term], ...]:
    """Terms with the other signs."""
    return tuple((-sign, term) for sign, term in terms)


def limits_of(condition: Term, column: Part) -> Limits:
    """The columns where a condition may hold; all for a condition of too many parts."""
    return _limits_of(condition, column) if _is_short(condition, column) else Unknown()


def _is_short(condition: Term, column: Part) -> bool:
    """True unless a term has many parts that depend on the column, each counted as often as it is used."""
    todo = [condition]
    for _ in range(_MOST_PARTS):
        if not todo:
            return True
        todo += [arg for arg in todo.pop().args if arg.depends_on(column)]
    return False


def _limits_of(condition: Term, column: Part) -> Limits:
    if condition.name == "arith.cmpi":
        return _compared(condition, column)
    if not condition.depends_on(column):
        return Row(condition)
    if condition.name == "arith.andi":
        a, b = (_limits_of(arg, column) for arg in condition.args)
        return Both(a, b)
    if condition.name == "arith.ori":
        a, b = (_limits_of(arg, column) for arg in condition.args)
        return Either(a, b)
    if condition.name == "arith.xori":
        inner, other = condition.args
        if other.name == LITERAL:
            return Not(_limits_of(inner, column)) if other.payload else _limits_of(inner, column)
    if condition.name == "arith.select" and is_truth(condition):
        chosen, a, b = (_limits_of(arg, column) for arg in condition.args)
        return Either(Both(chosen, a), Both(Not(chosen), b))
    return Unknown()


def is_truth(term: Term) -> bool:
    """True for terms of type i1."""
    return isinstance(term.type, mlir.IntegerType) and term.type.width == 1


def has_limits(limits: Limits) -> bool:
    """True if some column is compared with something."""
    if isinstance(limits, Cut):
        return limits.low is not None or limits.high is not None
    if isinstance(limits, Both | Either):
        return has_limits(limits.a) or has_limits(limits.b)
    return isinstance(limits, Not) and has_limits(limits.a)


def _compared(condition: Term, column: Part) -> Limits:
    name = _PREDICATES.get(condition.op.attributes["predicate"].value)  # type: ignore[union-attr]
    if not condition.depends_on(column):
        return Row(condition)
    a, b = condition.args
    if name is None:
        return Unknown()
    for x, y, predicate in ((a, b, name), (b, a, _SWAPPED[name])):
        if x.name == "math.absi" and not y.depends_on(column):
            return _compared_size(x.args[0], predicate, y, column)
    left, right = _linear(a, column), _linear(b, column)
    if left is None or right is None:
        return Unknown()
    if right.sign:
        left, right, name = right, left, _SWAPPED[name]
    return Unknown() if right.sign else _cut(left, name, right)


def _compared_size(x: Term, name: str, bound: Term, column: Part) -> Limits:
    """The columns where the absolute value of x compares with a bound."""
    inner, limit = _linear(x, column), _linear(bound, column)
    if inner is None or limit is None or not inner.sign or name in ("eq", "ne"):
        return Unknown()
    below = {"lt": "lt", "ge": "lt", "le": "le", "gt": "le"}[name]
    within = Both(_cut(inner, below, limit), _cut(inner.negated(), below, limit))
    return within if name == below else Not(within)


def _cut(left: _Linear, name: str, right: _Linear) -> Limits:
    """The columns where the side with the column compares with the other one."""
    limit = right.plus(_Linear(terms=left.terms, constant=left.constant).negated())
    if limit is None:
        return Unknown()
    if left.sign < 0:
        limit, name = limit.negated(), _SWAPPED[name]
    here = Sum(limit.terms, limit.constant, left.divisor, -left.shift, negated(left.inner))
    after = replace(here, constant=here.constant + 1)
    if name == "lt":
        return Cut(None, here)
    if name == "le":
        return Cut(None, after)
    if name == "ge":
        return Cut(here, None)
    if name == "gt":
        return Cut(after, None)
    return Cut(here, after) if name == "eq" else Not(Cut(here, after))


def _linear(term: Term, column: Part) -> _Linear | None:
    """A term as a multiple of the column plus a sum; None for other terms."""
    if term.name == LITERAL and isinstance(term.payload, int):
        return _Linear(constant=term.payload) if abs(term.payload) < 1 << 40 else None
    if not term.depends_on(column):
        return _Linear(terms=((1, term),)) if is_whole(term) else None
    if term.name == INDEX:
        return _Linear(sign=1) if term.payload == column and column.step == 1 and not column.single else None
    if term.name in _CASTS and not is_truth(term.args[0]):
        return _linear(term.args[0], column) if _fits(term, column) else None
    if term.name in INTEGER_STEPS:
        a, b = (_linear(arg, column) for arg in term.args)
        if a is None or b is None:
            return None
        return a.plus(b.negated() if term.name == "arith.subi" else b)
    if term.name in ("arith.divsi", "arith.divui", "arith.floordivsi"):
        return _divided(term, column, floor=term.name == "arith.floordivsi")
    if term.name == "arith.select":
        return _divided(term.args[2], column, floor=True) if _is_floor(term) else None
    return None


def _is_floor(term: Term) -> bool:
    """True for Python's floor division: the quotient, less one where the remainder's sign is not the divisor's."""
    condition, less, quotient = term.args
    if less.name != "arith.subi" or less.args[0] is not quotient or quotient.name != "arith.divsi":
        return False
    if condition.name != "arith.andi":
        return False
    for signs in condition.args:
        if signs.name != "arith.cmpi" or _PREDICATES.get(signs.op.attributes["predicate"].value) != "lt":  # type: ignore[union-attr]
            continue
        mixed, zero = signs.args
        if mixed.name != "arith.xori" or zero.payload != 0:
            continue
        remainder, divisor = mixed.args
        if remainder.name == "arith.subi" and divisor is quotient.args[1] and remainder.args[0] is quotient.args[0]:
            product = remainder.args[1]
            return product.name == "arith.muli" and product.args == (quotient, divisor)
    return False


def _divided(term: Term, column: Part, *, floor: bool) -> _Linear | None:
    """The column plus other numbers, divided by a positive constant: the floor, also of what is not negative."""
    inner, by = _linear(term.args[0], column), term.args[1]
    if inner is None or by.name != LITERAL or not 0 < by.payload < 1 << 20:
        return None
    if (inner.sign, inner.divisor) != (1, 1) or (not floor and (inner.terms or inner.constant < 0)):
        return None
    return _Linear(sign=1, shift=inner.constant, inner=inner.terms, divisor=by.payload)


def _fits(term: Term, column: Part) -> bool:
    """True if the numbers of a dimension fit the type of a conversion, with room for sums."""
    return (
        not isinstance(term.type, mlir.IntegerType) or term.type.width >= 32 or column.size < 1 << (term.type.width - 2)
    )


def is_whole(term: Term) -> bool:
    """True for terms of integer or index type."""
    return isinstance(term.type, mlir.IntegerType | mlir.IndexType) and not is_truth(term)
