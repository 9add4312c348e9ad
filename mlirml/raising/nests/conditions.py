"""Ranges of linear expressions, refined by the enclosing conditions."""

from __future__ import annotations

from mlirml.analysis.affine import Reader
from mlirml.analysis.ranges import Range, Ranges
from mlirml.core.affine import Linear
from mlirml.core.dataclass import dataclass
from mlirml.ir.bindings import mlir

_WHOLE = (-(1 << 63), (1 << 63) - 1)


@dataclass(frozen=True)
class LinearRanges:
    """Ranges of integers at a point of the program, and of the linear expressions that conditions are about."""

    ranges: Ranges
    sums: tuple[tuple[Linear, Range], ...] = ()

    @staticmethod
    def of(ranges: Ranges, reader: Reader) -> LinearRanges:
        """The ranges that hold in a branch."""
        read = [(reader.read(value), found) for value, found in ranges.assumed.items()]
        return LinearRanges(
            ranges, tuple((known, found) for known, found in read if known is not None and known.factors)
        )

    def range_of(self, expression: Linear) -> Range:
        """The range of a linear expression, assuming no overflow."""
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
    """The multiple of all terms of a sum that an expression contains; 0 if it does not contain it."""
    factors = {divmod(expression.factor(variable), factor) for variable, factor in known.factors.items()}
    if len(factors) != 1:
        return 0
    ((factor, rest),) = factors
    return 0 if rest else factor


class Limits:
    """The ranges of values at a point, by themselves and as linear expressions."""

    def __init__(self, ranges: Ranges, reader: Reader) -> None:
        self.ranges = ranges
        self._reader = reader
        self._linear_ranges = LinearRanges.of(ranges, reader)

    def given(self, condition: mlir.Value, holds: bool) -> Limits:
        """The limits where a condition holds, or does not hold."""
        return Limits(self.ranges.given(condition, holds), self._reader)

    def of(self, value: mlir.Value) -> Range:
        """The range of an index or a signed integer."""
        low, high = self.ranges.of(value)
        if self._linear_ranges.sums and isinstance(value.type, mlir.IndexType):
            expression = self._reader.read(value)
            if expression is not None and len(expression.factors) > 1:
                least, most = self._linear_ranges.range_of(expression)
                if _WHOLE[0] <= least and most <= _WHOLE[1]:  # then it has not overflowed
                    return max(low, least), min(high, most)
        return low, high
