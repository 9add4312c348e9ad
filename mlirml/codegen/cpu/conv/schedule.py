"""The plan of a convolution as words, which an operation has as the attribute `mlirml.window`.

`conv=filters/lanes=16/vectors=2/rows=1/columns=14/last=16` is one of the plans of `plan.py`, whose grain is computed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mlirml.ir.bindings import mlir

if TYPE_CHECKING:
    from mlirml.codegen.cpu.conv.plan import Plan

NAME = "mlirml.window"
_FIELDS = ("lanes", "vectors", "rows", "columns", "last")


def to_words(plan: Plan) -> str:
    """The plan as text without spaces."""
    return "/".join([f"conv={plan.kernel}", *(f"{name}={getattr(plan, name)}" for name in _FIELDS)])


def words_of(op: mlir.Operation) -> str:
    """The text of an operation's attribute; empty without one."""
    return mlir.StringAttr(op.attributes[NAME]).value if NAME in op.attributes else ""
