"""Indices as linear forms over digits of base values, so that divisions cancel before they are emitted.

A thread's number is split into coordinates, and an offset combines them. As forms, `(t / 8) * 8 + t % 8` is `t`:

>>> t = Digit(Base("t", 64))
>>> row, column = split(form(t), 8)
>>> row * 8 + column == form(t)
True
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

from mlirml.core.dataclass import dataclass


@dataclass(frozen=True)
class Base:
    """A base value: an SSA value, a form, or a name if forms are only compared; `extent` is its exclusive bound."""

    value: Any
    extent: int | None = None


@dataclass(frozen=True)
class Digit:
    """`(base / stride) % size`; the quotient where `size` is None."""

    base: Base
    stride: int = 1
    size: int | None = None

    @property
    def bound(self) -> int | None:
        """An exclusive bound of its values; None if it is not known."""
        extent = self.base.extent
        most = None if extent is None else -(-extent // self.stride)
        return most if self.size is None else self.size if most is None else min(most, self.size)

    @property
    def is_top(self) -> bool:
        """True if this is the most significant digit, so that no remainder has to be taken."""
        extent = self.base.extent
        return self.size is None or (extent is not None and extent <= self.stride * self.size)


@dataclass(frozen=True)
class Form:
    """The sum of `constant` and of digits times factors."""

    terms: tuple[tuple[Digit, int], ...] = ()
    constant: int = 0

    def __add__(self, other: Form | int) -> Form:
        if isinstance(other, int):
            return Form(self.terms, self.constant + other) if other else self
        return normalised([*self.terms, *other.terms], self.constant + other.constant)

    def __mul__(self, factor: int) -> Form:
        if factor == 1:
            return self
        return normalised(((digit, f * factor) for digit, f in self.terms), self.constant * factor)

    def __sub__(self, other: Form | int) -> Form:
        return self + other * -1

    @property
    def range(self) -> tuple[int, int | None]:
        """The smallest and the largest value; `(0, None)` if it is not known."""
        low = high = self.constant
        for digit, factor in self.terms:
            if digit.bound is None:
                return 0, None
            most = factor * (digit.bound - 1)
            low, high = (low + most, high) if factor < 0 else (low, high + most)
        return low, high

    def is_multiple_of(self, number: int) -> bool:
        """True if every value is a multiple of `number`."""
        return self.constant % number == 0 and all(factor % number == 0 for _, factor in self.terms)


class UnknownDivisionError(Exception):
    """A form has to be computed before it can be divided."""


def form(part: Digit | int) -> Form:
    """A digit or a constant as a form."""
    if isinstance(part, int):
        return Form((), part)
    if part.bound == 1:
        return Form()
    whole = as_form(part)
    return Form(((part, 1),)) if whole is None else whole


def as_form(digit: Digit) -> Form | None:
    """The form that a digit is all of."""
    value = digit.base.value
    return value if isinstance(value, Form) and digit.stride == 1 and digit.is_top else None


def normalised(terms: Iterable[tuple[Digit, int]], constant: int) -> Form:
    """Add equal digits, and merge adjacent digits of a base that are contiguous."""
    factors: dict[Digit, int] = {}
    for digit, factor in terms:
        factors[digit] = factors.get(digit, 0) + factor
    kept = {digit: factor for digit, factor in factors.items() if factor and digit.bound != 1}
    bases: dict[Base, list[Digit]] = {}
    for digit in kept:
        bases.setdefault(digit.base, []).append(digit)
    for digits in bases.values():
        if len(digits) > 1:
            join_neighbours(digits, kept)
    wholes = [(whole, kept.pop(digit)) for digit in list(kept) if (whole := as_form(digit)) is not None]
    result = Form(tuple(kept.items()), constant)
    for whole, factor in wholes:
        result = result + whole * factor
    return result


def join_neighbours(digits: list[Digit], factors: dict[Digit, int]) -> None:
    """Merge a digit and the next higher one, if the factor of the latter implies that they are contiguous."""
    digits = sorted(digits, key=lambda d: d.stride)
    below = digits[0]
    for above in digits[1:]:
        size = below.size
        if size is None or above.stride != below.stride * size or factors[above] != factors[below] * size:
            below = above
            continue
        joined = Digit(below.base, below.stride, None if above.size is None else size * above.size)
        if joined.is_top:
            joined = Digit(below.base, below.stride)
        factor = factors.pop(below)
        del factors[above]
        factors[joined] = factor
        below = joined


def split(index: Form, by: int) -> tuple[Form, Form]:
    """Quotient and remainder of an index that is not negative; `UnknownDivisionError` if it must be computed first."""
    if by == 1:
        return index, Form()
    whole = [(digit, factor // by) for digit, factor in index.terms if factor % by == 0]
    rest = normalised([(d, f) for d, f in index.terms if f % by], index.constant % by)
    quotient = normalised(whole, index.constant // by)
    low, high = rest.range
    if high is not None and low >= 0 and high < by:
        return quotient, rest
    if len(rest.terms) == 1:
        digit, factor = rest.terms[0]
        if factor > 0 and by % factor == 0 and 0 <= rest.constant < factor:
            pieces = cut(digit, by // factor)
            if pieces is not None:
                above, below = pieces
                return quotient + above, below * factor + rest.constant
    raise UnknownDivisionError


def cut(digit: Digit, by: int) -> tuple[Form, Form] | None:
    """`digit / by` and `digit % by`; None if they are not digits."""
    bound = digit.bound
    if bound is not None and bound <= by:
        return Form(), form(digit)
    if digit.is_top or digit.size is None:
        return form(Digit(digit.base, digit.stride * by)), form(Digit(digit.base, digit.stride, by))
    if digit.size % by == 0:
        above = Digit(digit.base, digit.stride * by, digit.size // by)
        return form(above), form(Digit(digit.base, digit.stride, by))
    return None


def flat(indices: Sequence[Form], shape: Sequence[int]) -> Form:
    """The row-major index of an element."""
    result = Form()
    for index, size in zip(indices, shape, strict=True):
        result = result * size + index
    return result


def coordinates(number: Digit, shape: Sequence[int]) -> list[Form]:
    """The coordinates of the element with this row-major index."""
    stride, found = 1, []
    for position, size in reversed(list(enumerate(shape))):
        top = position == 0 or all(n == 1 for n in shape[:position])
        found.append(Form() if size == 1 else form(Digit(number.base, number.stride * stride, None if top else size)))
        stride *= size
    return found[::-1]


def cut_up(index: Form, shape: Sequence[int]) -> list[Form]:
    """The coordinates of the element with a row-major index in a box: divisions cancel as far as possible.

    The rest that does not cancel is split as one base value, so that coordinates that were split from it before are
    found to be equal.
    """
    found: list[Form] = []
    for position in range(len(shape) - 1, 0, -1):
        try:
            index, rest = split(index, shape[position])
        except UnknownDivisionError:
            outer = shape[: position + 1]
            return [*coordinates(Digit(Base(index, math.prod(outer))), outer), *reversed(found)]
        found.append(rest)
    return [index, *reversed(found)] if shape else []
