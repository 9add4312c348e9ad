"""Linear expressions of integers: `constant + sum(factor * variable)`.

Variables are whatever is hashable: dimensions, loops, values of MLIR, symbols. `analysis/affine.py` reads expressions
from MLIR.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

Span = tuple[int, int]
"""The least and the greatest value, both inclusive."""
_NONE: Mapping[Any, int] = MappingProxyType({})


def add_factors(factors: dict[Any, int], times: int, other: Linear) -> None:
    """Add the factors of an expression, `times` over, to those in a dict, which has none that are zero."""
    for variable, factor in other.factors.items():
        total = factors.get(variable, 0) + times * factor
        if total:
            factors[variable] = total
        else:
            factors.pop(variable, None)


class Linear:
    """A linear expression, which is not changed; factors are not zero."""

    # Not a dataclass: captures and passes create hundreds of thousands.
    __slots__ = ("constant", "factors")

    def __init__(self, constant: int = 0, factors: Mapping[Any, int] = _NONE) -> None:
        self.constant = constant
        self.factors = factors

    def __repr__(self) -> str:
        return f"Linear({self.constant}, {self.factors})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Linear):
            return NotImplemented
        return self.constant == other.constant and self.factors == other.factors

    def __hash__(self) -> int:
        return hash((self.constant, frozenset(self.factors.items())))

    @staticmethod
    def of(variable: Any) -> Linear:
        return Linear(0, {variable: 1})

    def __add__(self, other: Linear | int) -> Linear:
        if isinstance(other, int):
            return Linear(self.constant + other, self.factors)
        if not other.factors:
            return Linear(self.constant + other.constant, self.factors)
        return self._plus(1, other)

    def __sub__(self, other: Linear | int) -> Linear:
        return Linear(self.constant - other, self.factors) if isinstance(other, int) else self._plus(-1, other)

    def _plus(self, times: int, other: Linear) -> Linear:
        factors = dict(self.factors)
        add_factors(factors, times, other)
        return Linear(self.constant + times * other.constant, factors)

    def __mul__(self, factor: int) -> Linear:
        return Linear(self.constant * factor, {v: f * factor for v, f in self.factors.items()} if factor else {})

    def times(self, other: Linear) -> Linear | None:
        """The product of two expressions, of which one is a constant; None for others."""
        if self.is_constant:
            return other * self.constant
        return self * other.constant if other.is_constant else None

    @property
    def is_constant(self) -> bool:
        return not self.factors

    @property
    def variable(self) -> Any:
        """The variable, if that is all of the expression; else None."""
        return next(iter(self.factors)) if self.constant == 0 and list(self.factors.values()) == [1] else None

    def factor(self, variable: Any) -> int:
        return self.factors.get(variable, 0)

    def without(self, variable: Any) -> Linear:
        """The expression where a variable is zero."""
        return Linear(self.constant, {v: f for v, f in self.factors.items() if v != variable})

    def replaced(self, variable: Any, by: Linear) -> Linear:
        """The expression with `by` substituted for a variable."""
        factor = self.factor(variable)
        return self.without(variable)._plus(factor, by) if factor else self

    def range(self, spans: Mapping[Any, Span]) -> tuple[int | None, int | None]:
        """The least and greatest value, None where a variable has no span."""
        least = most = self.constant
        for variable, factor in self.factors.items():
            if variable not in spans:
                return None, None
            low, high = spans[variable] if factor > 0 else spans[variable][::-1]
            least, most = least + factor * low, most + factor * high
        return least, most
