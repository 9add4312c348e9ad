"""Atomic operations on memory: the numbers of `arith.atomic_rmw_kind`, and what is computed by each."""

from __future__ import annotations

from mlirml.ir.bindings import mlir

KINDS = (
    "addf", "addi", "andi", "assign", "maximumf", "maxnumf", "maxs", "maxu", "minimumf", "minnumf", "mins", "minu",
    "mulf", "muli", "ori", "xori",
)  # fmt: skip
"""In the order of their numbers."""
KIND_OF = {
    f"arith.{kind}{'i' if kind in ('maxs', 'maxu', 'mins', 'minu') else ''}": kind for kind in KINDS if kind != "assign"
}
"""The kind of an operation on two numbers."""
OPERATION_OF = {kind: name for name, kind in KIND_OF.items()}
IN_ORDER = ("addf", "mulf")
"""Whose results depend on the order, in the last bits."""


def kind_of(op: mlir.Operation) -> str:
    """What a `memref.atomic_rmw` does."""
    return KINDS[mlir.IntegerAttr(op.attributes["kind"]).value]
