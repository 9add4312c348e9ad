"""Trip counts of loops."""

from __future__ import annotations

from mlirml.analysis.constants import constant_of
from mlirml.ir.bindings import mlir


def trip_count(loop: mlir.Operation) -> int | None:
    """The trip count of an `scf.for` with constant bounds; None for other loops."""
    lower, upper, step = (constant_of(value) for value in list(loop.operands)[:3])
    if lower is None or upper is None or not step:
        return None
    return max(0, -((lower - upper) // step))


def most_trips(loop: mlir.Operation) -> int | None:
    """The most iterations that an `scf.for` has whose end is constant, or at most a constant; None for other loops."""
    lower, upper, step = list(loop.operands)[:3]
    ends = [upper]
    if not isinstance(upper.owner, mlir.Block) and upper.owner.name == "arith.minsi":
        ends += upper.owner.operands
    first, known, by = constant_of(lower), [constant_of(end) for end in ends], constant_of(step)
    limits = [end for end in known if end is not None]
    if first is None or not by or not limits:
        return None
    return max(0, -((first - min(limits)) // by))
