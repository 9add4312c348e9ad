"""Linear expressions over loop variables and outer values: loop bounds, array indices, extremes over a box."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field
from typing import Any, TypeAlias

from mlirml.analysis.values import operands_first, walk
from mlirml.core.affine import Linear
from mlirml.core.dataclass import dataclass
from mlirml.ir.bindings import defining_op, mlir

_CASTS = ("arith.index_cast", "arith.index_castui", "arith.extsi")
_ARITHMETIC = ("arith.addi", "arith.subi", "arith.muli")
_WIDE = ("index", "i64")
_LEAST = {"arith.minsi": "affine.min", "affine.min": "affine.min"}
_MOST = {"arith.maxsi": "affine.max", "affine.max": "affine.max"}


@dataclass(eq=False)
class Loop:
    """A loop of a nest; it is also the variable of that loop in linear expressions.

    `lowers <= variable < uppers`, all of them, in steps of one. Where the step of the `scf.for` is not one, or its trip
    count does not depend on its lower bound, the variable is the normalized iteration index, and `index` is the
    induction variable in terms of it. `op` is None for the dimensions of an array statement, which has no order of
    iterations.
    """

    op: mlir.Operation | None
    lowers: tuple[Linear, ...] = ()
    uppers: tuple[Linear, ...] = ()
    step: int = 1
    independent: bool = False
    index: Linear = field(init=False)

    def __post_init__(self) -> None:
        self.index = Linear.of(self)


Variable: TypeAlias = "Loop | mlir.Value"


def loops_in(expression: Linear) -> list[Loop]:
    """The loops whose variables are in an expression."""
    return [v for v in expression.factors if isinstance(v, Loop)]


def constant(number: int) -> Linear:
    return Linear(number)


def extreme(expression: Linear, loops: Iterable[Loop], ends: Mapping[Loop, tuple[Linear, Linear]], sign: int) -> Linear:
    """The least (`sign` -1) or greatest (1) value of an expression over a box, in terms of the other variables.

    `ends` has the first and the last value of each loop of the box; `loops` are substituted from the last on.
    """
    for loop in loops:
        factor = expression.factor(loop)
        if factor:
            first, last = ends[loop]
            expression = expression.replaced(loop, last if factor * sign > 0 else first)
    return expression


class Reader:
    """Reads linear expressions from index arithmetic. `indices` has the induction variables of the enclosing loops."""

    def __init__(self, outside: Callable[[mlir.Value], bool]) -> None:
        self.indices: dict[mlir.Value, Linear] = {}
        self._outside = outside
        self._known: dict[mlir.Value, Linear | None] = {}

    def read(self, value: mlir.Value) -> Linear | None:
        """The linear expression of an integer; None if it has none. Values from outside are variables."""
        if value in self.indices:
            return self.indices[value]
        if value in self._known:
            return self._known[value]
        for each in operands_first(value, self._unknown_operands):
            if each not in self._known and each not in self.indices:
                found = self._compute(each)
                if found is None and self._outside(each) and is_integer(each.type):
                    found = Linear.of(each)
                self._known[each] = found
        return self._known[value]

    def _unknown_operands(self, value: mlir.Value) -> Sequence[mlir.Value]:
        op = defining_op(value)
        is_known = value in self._known or value in self.indices
        return op.operands if not is_known and op is not None and op.name in (*_CASTS, *_ARITHMETIC) else ()

    def replace(self, loops: Mapping[Loop, Linear]) -> None:
        """Substitute expressions for loop variables in all expressions read so far."""

        def new(found: Linear | None) -> Linear | None:
            for loop, by in loops.items():
                found = found.replaced(loop, by) if found is not None else None
            return found

        for loop, by in loops.items():
            loop.index = loop.index.replaced(loop, by)
        self.indices = {value: found for value, old in self.indices.items() if (found := new(old)) is not None}
        self._known = {value: new(old) for value, old in self._known.items()}

    def _compute(self, value: mlir.Value) -> Linear | None:
        op = defining_op(value)
        if op is None:
            return None
        if op.name == "arith.constant":
            return constant(mlir.IntegerAttr(op.attributes["value"]).value) if is_integer(value.type) else None
        if op.name in _CASTS:
            source = op.operands[0]
            return self.read(source) if is_integer(source.type) and str(source.type) != "i1" else None
        if op.name in _ARITHMETIC and str(value.type) in _WIDE:
            a, b = (self.read(operand) for operand in op.operands)
            if a is None or b is None:
                return None
            if op.name == "arith.muli":
                return a.times(b)
            return a + b if op.name == "arith.addi" else a - b
        if op.name == "affine.apply":
            results = self._results(op, "map")
            return results[0] if results else None
        return None

    def _results(self, op: mlir.Operation, name: str) -> list[Linear] | None:
        """The results of an affine map on the operands of `op`."""
        affine_map = mlir.AffineMapAttr(op.attributes[name]).value
        operands = [self.read(operand) for operand in op.operands]
        results = [_of_expression(expression, operands, affine_map.n_dims) for expression in affine_map.results]
        return None if None in results else results  # type: ignore[return-value]

    def read_all(self, value: mlir.Value, names: Mapping[str, str]) -> tuple[Linear, ...] | None:
        """The expressions whose minimum or maximum `value` is; `names` are the min or max operations."""

        def parts(value: mlir.Value) -> Iterable[mlir.Value]:
            op = defining_op(value)
            if op is None or (op.name not in _CASTS and (op.name not in names or op.name.startswith("affine."))):
                return ()
            return list(op.operands)

        found: list[Linear | None] = []
        for each in walk(value, parts):
            op = defining_op(each)
            if op is not None and op.name in names and op.name.startswith("affine."):
                found += self._results(op, "map") or [None]
            elif not parts(each):
                found.append(self.read(each))
        return None if None in found else tuple(found)  # type: ignore[arg-type]

    def read_loop(self, op: mlir.Operation) -> Loop | None:
        """Read the bounds of an `scf.for` and register its induction variable; None where they are not linear."""
        lowers = self.read_all(op.operands[0], _MOST)
        uppers = self.read_all(op.operands[1], _LEAST)
        step = self.read(op.operands[2])
        if lowers is None or uppers is None or step is None or not step.is_constant or step.constant < 1:
            return None
        loop = Loop(op, lowers, uppers, step.constant, "mlirml.parallel" in op.attributes)
        if (len(lowers) == 1 and not lowers[0].is_constant) or step.constant > 1:
            differences = [upper - lowers[0] for upper in uppers]
            # Iteration t satisfies lower + step * t < upper.
            if step.constant > 1 and (len(lowers) > 1 or not all(d.is_constant for d in differences)):
                return None
            if any(difference.is_constant for difference in differences):
                loop.lowers, loop.index = (constant(0),), lowers[0] + Linear.of(loop) * step.constant
                loop.uppers = tuple(
                    constant(-(-d.constant // step.constant)) if d.is_constant else d for d in differences
                )
        self.indices[op.regions[0].blocks[0].arguments[0]] = loop.index
        return loop


def is_integer(type_: mlir.Type) -> bool:
    return isinstance(type_, mlir.IndexType | mlir.IntegerType)


def flat_index(indices: Sequence[mlir.Value], shape: Sequence[int]) -> Linear:
    """The row-major index of an element; what is not linear is a variable."""
    reader, total, stride = Reader(lambda _: True), constant(0), 1
    for index, size in zip(reversed(indices), reversed(shape), strict=True):
        total, stride = total + (reader.read(index) or Linear.of(index)) * stride, stride * size
    return total


def linear_of(expression: mlir.AffineExpr) -> Linear | None:
    """An expression of an affine map, of its dimensions by number; None if it has symbols, `mod` or divisions."""
    if isinstance(expression, mlir.AffineDimExpr):
        return Linear.of(expression.position)
    if isinstance(expression, mlir.AffineConstantExpr):
        return constant(expression.value)
    if not isinstance(expression, mlir.AffineAddExpr | mlir.AffineMulExpr):
        return None
    a, b = linear_of(expression.lhs), linear_of(expression.rhs)
    if a is None or b is None:
        return None
    return a + b if isinstance(expression, mlir.AffineAddExpr) else a.times(b)


def _of_expression(expression: Any, operands: list[Linear | None], dims: int) -> Linear | None:
    """An affine map expression applied to linear operands; None where it divides."""
    if isinstance(expression, mlir.AffineConstantExpr):
        return constant(expression.value)
    if isinstance(expression, mlir.AffineDimExpr):
        return operands[int(expression.position)]
    if isinstance(expression, mlir.AffineSymbolExpr):
        return operands[dims + int(expression.position)]
    if isinstance(expression, mlir.AffineAddExpr | mlir.AffineMulExpr):
        a, b = (_of_expression(part, operands, dims) for part in (expression.lhs, expression.rhs))
        if a is None or b is None:
            return None
        return a + b if isinstance(expression, mlir.AffineAddExpr) else a.times(b)
    return None
