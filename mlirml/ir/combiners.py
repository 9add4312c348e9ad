"""Combiners: the associative operations by which reductions, scans and atomic updates combine two elements.

All that depends on the combiner asks this table: text that is written, bodies that are matched, kernels, derivatives,
and the interpreter. It needs no MLIR bindings.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from mlirml.core.dataclass import dataclass

V = TypeVar("V")
LOWEST, HIGHEST = "lowest", "highest"
"""The identities that depend on the width of signed integers."""
Formula = str | float | tuple[Any, ...]
"""A named value, a constant, or an operation and the formulas of its operands, all of one type."""


@dataclass(frozen=True, eq=False)
class Combiner:
    """A combiner by its operation of `arith`, or by another name if it takes several, and the word for it in messages.

    `start` is its identity, or `LOWEST` or `HIGHEST`. `ufuncs` are the NumPy functions that it is, the first one in any
    dtype, with the dtypes of which it is one: `b`ool, signed `i`nt, `u`nsigned, `f`loat. `ignores_nan` is True for
    extremes of floats that NaN loses; from others NaN comes out.

    `several` is the formula of `a` and `b` if that takes several operations. `partial` is the derivative of a reduction
    to `r` in one element `x`; those of sums, products and extremes are in the rules of structured operations.
    """

    op: str
    word: str
    start: float | str
    ufuncs: Mapping[str, str]
    ignores_nan: bool = False
    several: Formula | None = None
    partial: Formula | None = None

    @property
    def formula(self) -> Formula:
        """The combination of `a` and `b`."""
        return (self.op, "a", "b") if self.several is None else self.several

    @property
    def short(self) -> str:
        """The operation without its dialect."""
        return self.op.removeprefix("arith.")

    @property
    def ufunc(self) -> str:
        """The NumPy function on any dtype."""
        return next(iter(self.ufuncs))

    @property
    def is_float(self) -> bool:
        """True if all dtypes are floats."""
        return set().union(*self.ufuncs.values()) == {"f"}

    @property
    def is_extreme(self) -> bool:
        return self.word in ("maximum", "minimum")

    @property
    def is_idempotent(self) -> bool:
        """True if combining an element twice has no further effect."""
        return self.is_extreme or self.word in ("and", "or")

    @property
    def is_rounded(self) -> bool:
        """True if the last bits of a result depend on the order of elements."""
        return self.is_float and not self.is_extreme

    @property
    def better(self) -> str:
        """The predicate of `arith.cmpf` or `arith.cmpi` by which an element replaces the extreme so far."""
        sign = "o" if self.is_float else self.op[-2]
        return f"{sign}{'gt' if self.word == 'maximum' else 'lt'}"

    @property
    def atomic_kind(self) -> str:
        """The name of `arith.atomic_rmw_kind`."""
        return self.short[:-1] if self.is_extreme and not self.is_float else self.short

    @property
    def vector_kind(self) -> str:
        """The name of `#vector.kind`."""
        return self.short if self.is_extreme else self.short[:-1]

    def identity(self, bits: int = 64) -> float | int:
        """The value that changes no element, for integers of this width; NaN aside, if NaN is ignored."""
        if isinstance(self.start, str):
            return -(1 << bits - 1) if self.start == LOWEST else (1 << bits - 1) - 1
        return self.start


# With two equal infinities, the distance is NaN.
_DISTANCE = ("math.absf", ("arith.subf", "a", "b"))
_SMALLER = ("math.log1p", ("math.exp2", ("arith.minnumf", ("arith.negf", _DISTANCE), 0.0)))
_LOGADDEXP2 = ("arith.addf", ("arith.maximumf", "a", "b"), ("arith.mulf", _SMALLER, 1 / math.log(2)))

_ROWS = (
    Combiner("arith.addf", "sum", -0.0, {"add": "f"}),
    Combiner("arith.addi", "sum", 0, {"add": "iu"}),
    Combiner("arith.mulf", "product", 1.0, {"multiply": "f"}),
    Combiner("arith.muli", "product", 1, {"multiply": "iu"}),
    Combiner("arith.maximumf", "maximum", -math.inf, {"maximum": "f"}),
    Combiner("arith.maxnumf", "maximum", -math.inf, {"fmax": "f"}, ignores_nan=True),
    Combiner("arith.maxsi", "maximum", LOWEST, {"maximum": "i", "fmax": "i"}),
    Combiner("arith.maxui", "maximum", 0, {"maximum": "u", "fmax": "u"}),
    Combiner("arith.minimumf", "minimum", math.inf, {"minimum": "f"}),
    Combiner("arith.minnumf", "minimum", math.inf, {"fmin": "f"}, ignores_nan=True),
    Combiner("arith.minsi", "minimum", HIGHEST, {"minimum": "i", "fmin": "i"}),
    Combiner("arith.minui", "minimum", -1, {"minimum": "u", "fmin": "u"}),
    Combiner("arith.andi", "and", -1, {"bitwise_and": "biu", "multiply": "b", "minimum": "b", "fmin": "b"}),
    Combiner("arith.ori", "or", 0, {"bitwise_or": "biu", "add": "b", "maximum": "b", "fmax": "b"}),
    Combiner("arith.xori", "xor", 0, {"bitwise_xor": "biu"}),
    Combiner(
        "logaddexp2",
        "logarithm of a sum",
        -math.inf,
        {"logaddexp2": "f"},
        several=_LOGADDEXP2,
        partial=("math.exp2", ("arith.subf", "x", "r")),
    ),
)
COMBINERS: Mapping[str, Combiner] = {row.op: row for row in _ROWS}
"""The combiners by operation, or by name."""
UFUNCS = tuple(dict.fromkeys(name for row in _ROWS for name in row.ufuncs))
"""The NumPy functions that are combiners."""


def combiners_of(ufunc: str) -> dict[str, Combiner]:
    """The combiner of a NumPy function for each category of dtypes that it has: `b`, `i`, `u`, `f`."""
    return {letter: row for row in _ROWS for letter in row.ufuncs.get(ufunc, "")}


def operations_of(ufunc: str) -> dict[str, str]:
    """The operation of a NumPy function for each category of dtypes that it has."""
    return {letter: row.op for letter, row in combiners_of(ufunc).items()}


def evaluate(formula: Formula, values: Mapping[str, V], apply: Callable[..., V], constant: Callable[[float], V]) -> V:
    """A formula built by `apply(operation, *operands)` and `constant(number)`."""
    if isinstance(formula, str):
        return values[formula]
    if not isinstance(formula, tuple):
        return constant(formula)
    op, *operands = formula
    return apply(op, *(evaluate(operand, values, apply, constant) for operand in operands))
