"""Atomic read-modify-write operations on memory: the values of `arith.atomic_rmw_kind` and their scalar operations."""

from __future__ import annotations

from mlirml.ir.bindings import mlir

KINDS = (
    "addf", "addi", "andi", "assign", "maximumf", "maxnumf", "maxs", "maxu", "minimumf", "minnumf", "mins", "minu",
    "mulf", "muli", "ori", "xori",
)  # fmt: skip
"""The names of `arith.atomic_rmw_kind`, indexed by the integer value of the attribute."""
KIND_OF = {
    f"arith.{kind}{'i' if kind in ('maxs', 'maxu', 'mins', 'minu') else ''}": kind for kind in KINDS if kind != "assign"
}
"""The scalar operation that combines the old element and the operand, for each name in `KINDS`."""
OPERATION_OF = {kind: name for name, kind in KIND_OF.items()}
IN_ORDER = ("addf", "mulf")
"""The operations that are not associative in floating point: the last bits of the result depend on the order."""


def kind_of(op: mlir.Operation) -> str:
    """The combining operation of a `memref.atomic_rmw`, as in `KINDS`."""
    return KINDS[mlir.IntegerAttr(op.attributes["kind"]).value]
