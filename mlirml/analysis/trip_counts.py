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
