"""Ranges of sums, with what the conditions around tell about parts of them."""

from __future__ import annotations

from mlirml.analysis.affine import Linear, Reader
from mlirml.analysis.ranges import Range, Ranges
from mlirml.core.dataclass import dataclass
from mlirml.ir.bindings import mlir

_WHOLE = (-(1 << 63), (1 << 63) - 1)


@dataclass(frozen=True)
class Facts:
    """What is known at a place of the program: ranges of numbers, and of sums of them that conditions are about."""

    ranges: Ranges
    sums: tuple[tuple[Linear, Range], ...] = ()

    @staticmethod
    def of(ranges: Ranges, reader: Reader) -> Facts:
        """The facts that the ranges in a branch stand for."""
        read = [(reader.read(value), found) for value, found in ranges.assumed.items()]
        return Facts(ranges, tuple((known, found) for known, found in read if known is not None and known.factors))

    def range_of(self, expression: Linear) -> Range:
        """The range of a linear expression, as if nothing wrapped."""
        low, high = self._of_terms(expression)
        more = less = 0
        for known, (least, greatest) in self.sums:
            factor = _multiple(expression, known)
            if factor:
                expression -= known * factor
                ends = (factor * least, factor * greatest)
                more, less = more + min(ends), less + max(ends)
        rest = self._of_terms(expression)
        return max(low, rest[0] + more), min(high, rest[1] + less)

    def _of_terms(self, expression: Linear) -> Range:
        low = high = expression.constant
        for variable, factor in expression.factors.items():
            ends = self.ranges.of(variable) if isinstance(variable, mlir.Value) else _WHOLE
            low, high = low + min(factor * end for end in ends), high + max(factor * end for end in ends)
        return low, high


def _multiple(expression: Linear, known: Linear) -> int:
    """How many times a sum is in an expression, all of its terms; 0 if it is not."""
    factors = {divmod(expression.factor(variable), factor) for variable, factor in known.factors.items()}
    if len(factors) != 1:
        return 0
    ((factor, rest),) = factors
    return 0 if rest else factor


class Limits:
    """The ranges of numbers at a place, by themselves and as sums."""

    def __init__(self, ranges: Ranges, reader: Reader) -> None:
        self.ranges = ranges
        self._reader = reader
        self._facts = Facts.of(ranges, reader)

    def given(self, condition: mlir.Value, holds: bool) -> Limits:
        """The limits where a condition is known to hold, or not to hold."""
        return Limits(self.ranges.given(condition, holds), self._reader)

    def of(self, value: mlir.Value) -> Range:
        """The range of an index or a signed integer."""
        low, high = self.ranges.of(value)
        if self._facts.sums and isinstance(value.type, mlir.IndexType):
            expression = self._reader.read(value)
            if expression is not None and len(expression.factors) > 1:
                least, most = self._facts.range_of(expression)
                if _WHOLE[0] <= least and most <= _WHOLE[1]:  # then it has not wrapped
                    return max(low, least), min(high, most)
        return low, high
