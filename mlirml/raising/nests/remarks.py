"""Remarks about the user's loops, at their source lines.

    loops.py:14:5: remark: not raised: `C` is stored twice in one iteration [mlirml-raise]

The remarks are collected while a pipeline runs. `mlirml-opt --remarks`, `compile(explain="raise")`, `.explain()` and
`mlirml explain` show them.
"""

from __future__ import annotations

from typing import Any, Literal

from mlirml.ir.bindings import mlir
from mlirml.passes.report import add_remark

Kind = Literal["raised", "not raised", "recognised", "parallel"]


def remark(where: Any, text: str, outcome: Kind = "not raised") -> None:
    """Add a remark about a loop or a statement: `where` is an operation, a value or a location.

    `text` follows the kind and a colon: `remark(loop, "it carries a number")`, `remark(op, "linalg.matmul",
    "recognised")`.
    """
    location = where if isinstance(where, mlir.Location) else where.location
    add_remark(location, f"{outcome}: {text}", outcome=outcome)
