"""Distances between indices and slices, from their linear expressions and the bounds of the enclosing loops."""

from __future__ import annotations

from mlirml.analysis.affine import Reader
from mlirml.analysis.ranges import Ranges
from mlirml.analysis.traits import ELEMENTS
from mlirml.core.affine import Linear
from mlirml.core.dataclass import dataclass
from mlirml.ir.bindings import defining_op, mlir

_FROM = ("tensor.extract", "memref.subview")
_DYNAMIC = mlir.ShapedType.get_dynamic_size()


@dataclass(frozen=True)
class Box:
    """The slice of a tensor that is read or stored: for each dimension the offset, the size and the stride."""

    offsets: tuple[Linear, ...]
    sizes: tuple[Linear, ...]
    steps: tuple[int, ...]

    def last(self, dim: int) -> Linear:
        return self.offsets[dim] + (self.sizes[dim] - 1) * self.steps[dim]


class Distances:
    """Differences of the indices of a function; every value that is not a linear expression is a variable."""

    def __init__(self) -> None:
        self._reader = Reader(lambda _: True)
        self.ranges = Ranges()

    def linear(self, value: mlir.Value) -> Linear | None:
        """The linear expression of an index."""
        return self._reader.read(value)

    def is_never_zero(self, a: mlir.Value, b: mlir.Value) -> bool:
        """True if two indices are known to be different."""
        first, second = self._reader.read(a), self._reader.read(b)
        if first is None or second is None:
            return False
        difference = first - second
        return self.least(difference) > 0 or self.least(difference * -1) > 0

    def are_disjoint(self, a: Box, b: Box) -> bool:
        """True if two slices of one tensor are known to have no element in common."""
        for dim in range(len(a.steps)):
            if self.least(b.offsets[dim] - a.last(dim)) > 0 or self.least(a.offsets[dim] - b.last(dim)) > 0:
                return True
        return False

    def least(self, expression: Linear) -> int:
        """A lower bound of an expression: loop variables are first replaced by their bounds."""
        for variable in list(expression.factors):
            factor = expression.factor(variable)
            end = self._end(variable, up=factor < 0) if factor else None
            if end is not None and any(v in expression.factors for v in end.factors):
                expression = expression.replaced(variable, end)
        total = expression.constant
        for variable, factor in expression.factors.items():
            assert isinstance(variable, mlir.Value)
            total += min(factor * end for end in self.ranges.of(variable))
        return total

    def _end(self, variable: object, up: bool) -> Linear | None:
        """The first value of a loop variable, or an upper bound of it."""
        if not isinstance(variable, mlir.Value) or defining_op(variable) is not None:
            return None
        loop = variable.owner.owner.operation
        if loop.name != "scf.for" or variable != loop.regions[0].blocks[0].arguments[0]:
            return None
        bound = self._reader.read(loop.operands[1 if up else 0])
        return None if bound is None else bound - 1 if up else bound


def box_of(op: mlir.Operation, distances: Distances) -> Box | None:
    """The slice that an operation reads or stores; None if it is not linear, or if a stride is not positive."""
    first = 1 if op.name.startswith(_FROM) else 2
    offsets = [linear(number, distances) for number in numbers_of(op, "static_offsets", first)]
    sizes: list[Linear | None] = [Linear(1)] * len(offsets)
    steps = [1] * len(offsets)
    if op.name not in ELEMENTS:
        skipped = first + list(op.attributes["static_offsets"]).count(_DYNAMIC)
        sizes = [linear(number, distances) for number in numbers_of(op, "static_sizes", skipped)]
        steps = list(op.attributes["static_strides"])
    if None in offsets or None in sizes or any(step < 1 for step in steps):
        return None
    return Box(tuple(o for o in offsets if o is not None), tuple(s for s in sizes if s is not None), tuple(steps))


def numbers_of(op: mlir.Operation, name: str, first: int) -> list[int | mlir.Value]:
    """Offsets or sizes; the dynamic ones are operands from `first` on."""
    given = list(op.operands)[first:]
    if op.name in ELEMENTS:
        return list(given)
    dynamic = iter(given)
    return [next(dynamic) if number == _DYNAMIC else number for number in op.attributes[name]]


def linear(number: int | mlir.Value, distances: Distances) -> Linear | None:
    return Linear(number) if isinstance(number, int) else distances.linear(number)
