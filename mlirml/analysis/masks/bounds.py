"""Bounds of numbers as expressions of the largest elements of tensors, which a program computes before a loop."""

from __future__ import annotations

import math
from typing import TypeAlias

from mlirml.core.dataclass import dataclass
from mlirml.ir.bindings import mlir


@dataclass(frozen=True)
class Largest:
    """The largest absolute value of the elements of a tensor; NaN if one is NaN."""

    tensor: mlir.Value


@dataclass(frozen=True)
class Calculation:
    """`add`, `mul` or `max` of two bounds."""

    name: str
    a: Bound
    b: Bound


Bound: TypeAlias = "float | Largest | Calculation"


@dataclass(frozen=True)
class Guard:
    """The condition that one bound is less than another; not met if one of them is NaN."""

    less: Bound
    more: Bound


def add(a: Bound, b: Bound) -> Bound:
    """The sum of two bounds."""
    if isinstance(a, float) and isinstance(b, float):
        return a + b
    return b if a == 0.0 else a if b == 0.0 else Calculation("add", a, b)


def mul(a: Bound, b: Bound) -> Bound:
    """The product of two bounds."""
    if isinstance(a, float) and isinstance(b, float):
        return a * b
    if isinstance(b, float):
        a, b = b, a
    if isinstance(a, float) and isinstance(b, Calculation) and b.name == "mul" and isinstance(b.a, float):
        a, b = a * b.a, b.b
    return b if a == 1.0 else Calculation("mul", a, b)


def larger(a: Bound, b: Bound) -> Bound:
    """The larger one of two bounds."""
    if isinstance(a, float) and isinstance(b, float):
        return math.nan if a != a or b != b else max(a, b)
    return a if a == b else Calculation("max", a, b)


def negated(a: Bound) -> Bound:
    """A bound with the other sign."""
    return mul(-1.0, a)


@dataclass(frozen=True)
class Range:
    """The numbers from `low` to `high`."""

    low: Bound
    high: Bound

    @property
    def number(self) -> float | None:
        """The one number of a range; None if there are several."""
        return self.low if isinstance(self.low, float) and self.low == self.high else None

    @property
    def size(self) -> Bound:
        """The largest absolute value."""
        return larger(self.high, negated(self.low))

    def negated(self) -> Range:
        return Range(negated(self.high), negated(self.low))

    def plus(self, other: Range) -> Range:
        return Range(add(self.low, other.low), add(self.high, other.high))

    def times(self, other: Range) -> Range:
        if self.number is not None and other.number is not None:
            product = self.number * other.number
            return Range(product, product)
        size = mul(self.size, other.size)
        return Range(negated(size), size)

    def joined(self, other: Range) -> Range:
        """The smallest range with both."""
        return Range(negated(larger(negated(self.low), negated(other.low))), larger(self.high, other.high))
