"""Integer range analysis for loop nests: linear forms of loop variables, with limits derived from the bounds.

`i + 2 * j - 1` is a `Linear` over the symbols of `i` and `j`. A symbol has limits that are linear in symbols made
earlier, as in `for j in range(i, n)`, so that the least value of a form is found by substituting the limits, the latest
symbol first. Conditions of branches are assumptions: forms that are not negative in the branch.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from operator import attrgetter
from typing import Any

import numpy as np

from mlirml.core.affine import Linear, add_factors
from mlirml.core.dataclass import dataclass
from mlirml.ir.text.builder import Value

_COUNT = itertools.count()
_STEPS = 64
_FACTS = 16
_I64 = np.dtype(np.int64)
_MOST = 1 << 48
_number = attrgetter("number")


@dataclass(eq=False)
class Symbol:
    """An integer of the program. `roots` are the loops whose iterations it varies with."""

    least: Linear | None
    greatest: Linear | None
    roots: frozenset[Any]
    number: int
    exact: bool = False  # whether both limits are constants that it attains in some iteration


def least_value(form: Linear) -> int | None:
    """The least value of a form, or None if no lower bound is known."""
    found = lower_bound(form, 0)
    return None if found is None or found.factors else found.constant


def lower_bound(form: Linear, first: int) -> Linear | None:
    """A lower bound of a form, with the limits of the symbols from number `first` on substituted; None if one has none.

    Symbols that have no limit at all are kept.
    """
    constant, factors = form.constant, dict(form.factors)
    for _ in range(_STEPS):
        limited = [one for one in factors if one.number >= first and (one.least, one.greatest) != (None, None)]
        if not limited:
            return Linear(constant, factors)
        symbol = max(limited, key=_number)
        factor = factors.pop(symbol)
        limit = symbol.least if factor > 0 else symbol.greatest
        if limit is None:
            return None
        constant += factor * limit.constant
        add_factors(factors, factor, limit)
    return None


def greatest_value(form: Linear) -> int | None:
    """The greatest value of a form, or None if no upper bound is known."""
    found = least_value(form * -1)
    return None if found is None else -found


def roots_of(forms: Iterable[Linear | None]) -> frozenset[Any]:
    """The loops whose iterations some forms vary with."""
    return frozenset(root for form in forms if form for symbol in form.factors for root in symbol.roots)


@dataclass(frozen=True)
class Condition:
    """The facts where a condition holds, and where it does not: forms that are not negative, and the bools of variables
    that may be None, by their names, with their values.
    """

    true: tuple[Linear, ...] = ()
    false: tuple[Linear, ...] = ()
    true_presence: tuple[tuple[str, bool], ...] = ()
    false_presence: tuple[tuple[str, bool], ...] = ()

    @classmethod
    def combined(cls, ufunc: np.ufunc, operands: Sequence[Condition]) -> Condition:
        """The condition that a logical function of conditions is."""
        true, false, true_presence, false_presence = (
            tuple(fact for operand in operands for fact in getattr(operand, name))
            for name in ("true", "false", "true_presence", "false_presence")
        )
        if ufunc is np.logical_not:
            return cls(false, true, false_presence, true_presence)
        if ufunc is np.logical_and:
            return cls(true, (), true_presence)
        return cls((), false, (), false_presence)


Limits = tuple[int | None, int | None]


class Integers:
    """The integers of a trace, by the names of their values."""

    def __init__(self) -> None:
        self.forms: dict[str, Linear] = {}
        self.conditions: dict[str, Condition] = {}
        self.whole_lengths: dict[str, int] = {}  # of slices, where neither bound is beyond an end of the dimension
        self._facts: list[Linear] = []

    def symbol(
        self,
        least: Linear | None = None,
        greatest: Linear | None = None,
        roots: frozenset[Any] = frozenset(),
        exact: bool = False,
    ) -> Linear:
        """A new symbol."""
        return Linear.of(Symbol(least, greatest, roots, next(_COUNT), exact))

    def of(self, x: Any) -> Linear | None:
        """A Python integer, or a number of the program of type i64."""
        if type(x) is int:
            return Linear(x)
        value = x if isinstance(x, Value) else value_in(x)
        if value is None or value.shape or value.dtype != _I64:
            return None
        return self.of_value(value)

    def of_value(self, value: Value) -> Linear:
        """An integer value without dimensions."""
        found = self.forms.get(value.name)
        if found is None:
            found = self.forms[value.name] = self.symbol()
        return found

    def limits(self, form: Linear) -> Limits:
        """The least and the greatest value at the builder's insertion point."""
        least, greatest = [least_value(form)], [greatest_value(form)]
        for fact in self._facts[-_FACTS:]:
            least.append(least_value(form - fact))
            greatest.append(greatest_value(form + fact))
        return (
            max((n for n in least if n is not None), default=None),
            min((n for n in greatest if n is not None), default=None),
        )

    def limits_of(self, value: Value) -> Limits:
        """The least and the greatest value that an index may have."""
        if value.dtype == _I64:
            return self.limits(self.of_value(value))
        return (0, None) if value.dtype.kind == "u" else (None, None)

    def extremes_of(self, value: Value) -> tuple[int, int] | None:
        """The least and the greatest value of an index that is certainly computed in each iteration."""
        form = self.of_value(value) if value.dtype == _I64 else None
        if form is None or not all(symbol.exact for symbol in form.factors):
            return None
        least, greatest = least_value(form), greatest_value(form)
        return None if least is None or greatest is None else (least, greatest)

    @contextmanager
    def given(self, assumptions: Iterable[Linear]) -> Iterator[None]:
        """Context manager: assume that these forms are not negative."""
        count = len(self._facts)
        self._facts += assumptions
        try:
            yield
        finally:
            del self._facts[count:]

    def condition(self, x: Any) -> Condition:
        """The assumptions that a condition allows."""
        value = x if isinstance(x, Value) else value_in(x)
        return Condition() if value is None else self.conditions.get(value.name, Condition())

    def decided(self, condition: Condition) -> bool | None:
        """True or False for a condition that the ranges of its integers decide, None for any other."""

        def excluded(forms: Sequence[Linear]) -> bool:
            return any((greatest := self.limits(form)[1]) is not None and greatest < 0 for form in forms)

        return False if excluded(condition.true) else True if excluded(condition.false) else None

    # Values of branches and loops.

    def mark(self) -> int:
        """A number that is greater than those of the symbols so far, and less than those of later ones."""
        return next(_COUNT)

    def note_choice(self, condition: Condition, one: Any, other: Any, result: Value) -> None:
        """Record the loops that a number varies with which is one of two by a condition."""
        if self.of(result) is not None:
            roots = roots_of([*condition.true, *condition.false, self.of(one), self.of(other)])
            if roots:
                self.forms[result.name] = self.symbol(roots=roots)

    def note_either(self, condition: Condition, one: Any, other: Any, result: Value, mark: int) -> None:
        """Record the range of a number that is one of two by a condition, which branches after a mark compute.

        The limits of symbols that one branch makes need not hold where the other one runs, not even among themselves,
        as they may follow from the condition: the ends are bounds by the symbols from before the branches.
        """
        self.note_choice(condition, one, other, result)
        forms = [form for form in (self.of(one), self.of(other)) if form is not None]
        if len(forms) < 2 or self.of(result) is None:
            return
        bounds = [lower_bound(form, mark) for form in forms], [lower_bound(form * -1, mark) for form in forms]
        least, opposite = (self._lesser(*pair) for pair in bounds)
        greatest = None if opposite is None else opposite * -1
        if (least, greatest) != (None, None):
            roots = roots_of([self.of(result)])
            self.forms[result.name] = self.symbol(least, greatest, roots)

    def _lesser(self, one: Linear | None, other: Linear | None) -> Linear | None:
        """The lesser of two forms, or a constant that is not greater than either of them; None if none is known."""
        if one is None or other is None:
            return None
        least, greatest = self.limits(one - other)
        if greatest is not None and greatest <= 0:
            return one
        if least is not None and least >= 0:
            return other
        ends = self.limits(one)[0], self.limits(other)[0]
        return None if ends[0] is None or ends[1] is None else Linear(min(ends[0], ends[1]))

    def note_sum(self, start: Any, gain: Limits, count: int, result: Value) -> None:
        """Record the range of a number to which `gain` is added in each of at most `count` iterations."""
        form, (least, greatest) = self.of(start), gain
        if form is None or self.of(result) is None:
            return
        loss, most = None if least is None else min(least, 0), None if greatest is None else max(greatest, 0)
        changes = (None if n is None else n * count for n in (loss, most))
        first, last = (None if n is None or abs(n) > _MOST else form + Linear(n) for n in changes)
        if first is not None or last is not None:
            self.forms[result.name] = self.symbol(first, last, roots_of([form]))

    # Transfer functions of operators.

    def note(self, ufunc: np.ufunc, operands: Sequence[Any], result: Value) -> None:
        """Record the linear form of an operator's result."""
        if result.shape:
            return
        if ufunc in _COMPARISONS or ufunc in _LOGICAL:
            self._note_condition(ufunc, operands, result)
        elif result.dtype == _I64:
            found = self._combined(ufunc, [self.of(x) for x in operands])
            if found is not None:
                self.forms[result.name] = found

    def note_limits(self, name: str, operands: Sequence[Any], result: Value) -> None:
        """Record the range of a function's result."""
        if result.shape or result.dtype != _I64:
            return
        if name in ("argmax", "argmin", "searchsorted"):
            size = np.shape(operands[0])[0] if name == "searchsorted" else operands[0].size - 1
            self.forms[result.name] = self.symbol(Linear(0), Linear(size) if type(size) is int else None)
        elif name in ("count_nonzero", "sum"):
            of_bools = name == "count_nonzero" or operands[0].dtype == np.bool_
            if of_bools:
                size = operands[0].size
                self.forms[result.name] = self.symbol(Linear(0), Linear(size) if type(size) is int else None)
        else:
            forms = [self.of(x) for x in operands[:2]]
            known = [(None, None) if form is None else self.limits(form) for form in forms]
            least, greatest = ([n for n in ends if n is not None] for ends in zip(*known))
            if name == "minimum":
                least, greatest = least if len(least) == 2 else [], [min(greatest)] if greatest else []
            else:
                least, greatest = [max(least)] if least else [], greatest if len(greatest) == 2 else []
            first, last = (Linear(min(least)) if least else None), (Linear(max(greatest)) if greatest else None)
            roots = roots_of(forms)
            self.forms[result.name] = self.symbol(first, last, roots)

    def _note_condition(self, ufunc: np.ufunc, operands: Sequence[Any], result: Value) -> None:
        if ufunc in _LOGICAL:
            self.conditions[result.name] = Condition.combined(ufunc, [self.condition(x) for x in operands])
            return
        left, right = (self.of(x) for x in operands)
        if left is not None and right is not None:
            self.conditions[result.name] = _COMPARISONS[ufunc](left, right)

    def _combined(self, ufunc: np.ufunc, forms: list[Linear | None]) -> Linear | None:
        known = [f for f in forms if f is not None]
        roots = roots_of(known)
        if len(known) == len(forms) == 2:
            left, right = known
            if ufunc is np.add:
                return left + right
            if ufunc is np.subtract:
                return left - right
            if ufunc is np.multiply and (product := left.times(right)) is not None:
                return product
            if ufunc in (np.floor_divide, np.remainder) and right.is_constant and right.constant > 0:
                return self._divided(ufunc, left, right.constant, roots)
            if ufunc is np.multiply:
                return self._product(left, right, roots)
        if ufunc is np.negative and known:
            return known[0] * -1
        return self.symbol(roots=roots) if roots else None

    def _divided(self, ufunc: np.ufunc, form: Linear, divisor: int, roots: frozenset[Any]) -> Linear:
        least, greatest = self.limits(form)
        if ufunc is np.remainder:
            if least is not None and greatest is not None and least >= 0 and greatest < divisor:
                return form
            return self.symbol(Linear(0), Linear(divisor - 1), roots)
        ends = [None if n is None else Linear(n // divisor) for n in (least, greatest)]
        return self.symbol(ends[0], ends[1], roots)

    def _product(self, left: Linear, right: Linear, roots: frozenset[Any]) -> Linear:
        ends = [*self.limits(left), *self.limits(right)]
        if any(n is None for n in ends):
            return self.symbol(roots=roots)
        a, b, c, d = (n for n in ends if n is not None)
        products = [x * y for x in (a, b) for y in (c, d)]
        return self.symbol(Linear(min(products)), Linear(max(products)), roots)

    def roots(self, x: Any) -> frozenset[Any]:
        """The loops whose iterations a number varies with, as far as is known."""
        return roots_of([self.of(x)])


def value_in(x: Any) -> Value | None:
    """The SSA value of a dynamic number; None for anything else."""
    value = getattr(getattr(x, "_cell", None), "value", None)
    return value if isinstance(value, Value) and not x._views else None


_ONE = Linear(1)
_COMPARISONS: dict[np.ufunc, Any] = {
    np.less: lambda a, b: Condition((b - a - _ONE,), (a - b,)),
    np.less_equal: lambda a, b: Condition((b - a,), (a - b - _ONE,)),
    np.greater: lambda a, b: Condition((a - b - _ONE,), (b - a,)),
    np.greater_equal: lambda a, b: Condition((a - b,), (b - a - _ONE,)),
    np.equal: lambda a, b: Condition((a - b, b - a), ()),
    np.not_equal: lambda a, b: Condition((), (a - b, b - a)),
}
_LOGICAL = (np.logical_and, np.logical_or, np.logical_not)
