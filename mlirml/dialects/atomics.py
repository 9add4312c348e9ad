"""Atomic read-modify-write operations on memory: the values of `arith.atomic_rmw_kind` and their scalar operations."""

from __future__ import annotations

from mlirml.ir.bindings import mlir
from mlirml.ir.combiners import COMBINERS

KINDS = (
    "addf", "addi", "andi", "assign", "maximumf", "maxnumf", "maxs", "maxu", "minimumf", "minnumf", "mins", "minu",
    "mulf", "muli", "ori", "xori",
)  # fmt: skip
"""The names of `arith.atomic_rmw_kind`, indexed by the integer value of the attribute."""
KIND_OF = {op: combiner.atomic_kind for op, combiner in COMBINERS.items() if combiner.atomic_kind in KINDS}
"""The scalar operation that combines the old element and the operand, for each name in `KINDS`."""
OPERATION_OF = {kind: name for name, kind in KIND_OF.items()}


def kind_of(op: mlir.Operation) -> str:
    """The combining operation of a `memref.atomic_rmw`, as in `KINDS`."""
    return KINDS[mlir.IntegerAttr(op.attributes["kind"]).value]
