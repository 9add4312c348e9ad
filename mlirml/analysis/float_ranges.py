"""Between which numbers a float lies that is never a NaN."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

from mlirml.analysis.structured import is_parallel
from mlirml.analysis.tensor_elements import element_of, source_of
from mlirml.ir.bindings import defining_op, mlir

if TYPE_CHECKING:
    from mlirml.analysis.ranges import Ranges

FloatRange = tuple[float, float]
"""The least and the greatest number, both included."""
_EXACT = 1 << 52
"""Sums, differences and products of integers up to here are exact, however they are rounded and fused."""
_MARGIN = 1e-12
"""What other ends are moved by, relative to themselves: more than rounding, fusion or another order of sums does."""
_DEEPEST = 50


class FloatRanges:
    """The ranges of the floats of a function, each found once."""

    def __init__(self, integers: Ranges) -> None:
        self._integers = integers
        self._known: dict[mlir.Value, FloatRange | None] = {}

    def of(self, value: mlir.Value) -> FloatRange | None:
        """The range of a float; None if it may be a NaN, or nothing is known."""
        pending = [value]  # no recursion over operands: chains may have thousands of operations
        while pending:
            last = pending[-1]
            unknown = [] if last in self._known else [x for x in _read_by(last) if x not in self._known]
            pending += unknown
            if not unknown:
                pending.pop()
                if last not in self._known:
                    self._known[last] = None  # for what depends on itself
                    self._known[last] = self._find(last)
        return self._known[value]

    def _of_elements(self, tensor: mlir.Value) -> FloatRange | None:
        op, number = defining_op(tensor), element_of(tensor)
        if op is None or number is None or self._integers.depth > _DEEPEST:
            return None
        if op.name == "linalg.generic" and not is_parallel(op):
            return None
        self._integers.depth += 1
        try:
            return self.of(number)
        finally:
            self._integers.depth -= 1

    def _find(self, value: mlir.Value) -> FloatRange | None:
        op = defining_op(value)
        if op is None:
            block = value.owner
            generic = block.owner.operation if isinstance(block, mlir.Block) else None
            if generic is None or generic.name != "linalg.generic":
                return None
            source = source_of(generic, value)
            return None if source is None else self._of_elements(source)
        if isinstance(value.type, mlir.ShapedType):
            return None
        if op.name == "arith.constant":
            number = mlir.FloatAttr(op.attributes["value"]).value
            return None if math.isnan(number) else (number, number)
        if op.name == "tensor.extract":
            return self._of_elements(op.operands[0])
        if op.name in ("arith.sitofp", "arith.uitofp"):
            return self._of_integer(op)
        operands = _read_by(value)
        if op.name in _EITHER:
            return _EITHER[op.name](*map(self.of, operands))
        is_exact = op.name in _MONOTONE
        rule = _MONOTONE.get(op.name) or (_ROUNDED.get(op.name) if isinstance(value.type, mlir.F64Type) else None)
        known = [] if rule is None else [found for found in map(self.of, operands) if found is not None]
        if rule is None or len(known) < len(operands):
            return None
        return rule(*known) if is_exact else _with_margin(rule(*known))

    def _of_integer(self, op: mlir.Operation) -> FloatRange | None:
        if not isinstance(op.results[0].type, mlir.F64Type) or isinstance(op.operands[0].type, mlir.IndexType):
            return None
        low, high = self._integers.of(op.operands[0])
        if op.name == "arith.uitofp" and low < 0:
            low, high = 0, (1 << mlir.IntegerType(op.operands[0].type).width) - 1
        return _with_margin((float(low), float(high)))


def _read_by(value: mlir.Value) -> list[mlir.Value]:
    """The floats whose ranges decide on that of an operation's result."""
    op = defining_op(value)
    if op is None or isinstance(value.type, mlir.ShapedType):
        return []
    ruled = op.name in _EITHER or op.name in _MONOTONE or op.name in _ROUNDED
    return list(op.operands)[op.name == "arith.select" :] if ruled else []


def _with_margin(found: FloatRange) -> FloatRange | None:
    if not all(map(math.isfinite, found)):
        return None
    low, high = (0.0 if end.is_integer() and abs(end) <= _EXACT else abs(end) * _MARGIN for end in found)
    return found[0] - low, found[1] + high


def _greater(a: FloatRange | None, b: FloatRange | None) -> FloatRange | None:
    """The greater of two, or the one that is no NaN."""
    if a is None or b is None:
        known = a or b
        return None if known is None else (known[0], math.inf)
    return max(a[0], b[0]), max(a[1], b[1])


def _less(a: FloatRange | None, b: FloatRange | None) -> FloatRange | None:
    if a is None or b is None:
        known = a or b
        return None if known is None else (-math.inf, known[1])
    return min(a[0], b[0]), min(a[1], b[1])


def _one_of(a: FloatRange | None, b: FloatRange | None) -> FloatRange | None:
    return None if a is None or b is None else (min(a[0], b[0]), max(a[1], b[1]))


def _monotone(function: Callable[[float], float]) -> Callable[[FloatRange], FloatRange]:
    return lambda a: (
        function(a[0]) if math.isfinite(a[0]) else a[0],
        function(a[1]) if math.isfinite(a[1]) else a[1],
    )


def _multiply(a: FloatRange, b: FloatRange) -> FloatRange:
    if not all(map(math.isfinite, (*a, *b))):
        return math.inf, math.inf
    products = [x * y for x in a for y in b]
    return min(products), max(products)


_EITHER: dict[str, Callable[[FloatRange | None, FloatRange | None], FloatRange | None]] = {
    "arith.maxnumf": _greater,
    "arith.minnumf": _less,
    "arith.select": _one_of,
}
"""Where one operand may be a NaN."""
_MONOTONE: dict[str, Callable[..., FloatRange]] = {
    "arith.maximumf": lambda a, b: (max(a[0], b[0]), max(a[1], b[1])),
    "arith.minimumf": lambda a, b: (min(a[0], b[0]), min(a[1], b[1])),
    "math.floor": _monotone(lambda x: float(math.floor(x))),
    "math.ceil": _monotone(lambda x: float(math.ceil(x))),
    "math.trunc": _monotone(lambda x: float(math.trunc(x))),
    "math.roundeven": _monotone(lambda x: float(round(x))),
    "arith.negf": lambda a: (-a[1], -a[0]),
    "arith.extf": lambda a: a,
}
"""Whose results are not rounded."""
_ROUNDED: dict[str, Callable[..., FloatRange]] = {
    "arith.addf": lambda a, b: (a[0] + b[0], a[1] + b[1]),
    "arith.subf": lambda a, b: (a[0] - b[1], a[1] - b[0]),
    "arith.mulf": _multiply,
}
