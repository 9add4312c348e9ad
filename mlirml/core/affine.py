"""Linear expressions of integers: `constant + sum(factor * variable)`.

Variables are whatever is hashable: dimensions, loops, values of MLIR, symbols. `analysis/affine.py` reads expressions
from MLIR.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any

from mlirml.core.dataclass import dataclass

Span = tuple[int, int]
"""The least and the greatest value, both inclusive."""


@dataclass(frozen=True)
class Linear:
    """A linear expression; factors are not zero."""

    constant: int = 0
    factors: Mapping[Any, int] = field(default_factory=dict)

    def __hash__(self) -> int:
        return hash((self.constant, frozenset(self.factors.items())))

    @staticmethod
    def of(variable: Any) -> Linear:
        return Linear(0, {variable: 1})

    def __add__(self, other: Linear | int) -> Linear:
        if isinstance(other, int):
            return Linear(self.constant + other, self.factors)
        factors = dict(self.factors)
        for variable, factor in other.factors.items():
            factors[variable] = factors.get(variable, 0) + factor
        return Linear(self.constant + other.constant, {v: f for v, f in factors.items() if f})

    def __sub__(self, other: Linear | int) -> Linear:
        return self + (-other if isinstance(other, int) else other * -1)

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
        return self.without(variable) + by * factor if factor else self

    def range(self, spans: Mapping[Any, Span]) -> tuple[int | None, int | None]:
        """The least and greatest value, None where a variable has no span."""
        least = most = self.constant
        for variable, factor in self.factors.items():
            if variable not in spans:
                return None, None
            low, high = spans[variable] if factor > 0 else spans[variable][::-1]
            least, most = least + factor * low, most + factor * high
        return least, most
