"""The integer that a check is about, reported when it fails: `cf.assert (number + base) < limit`, unsigned.

%inside = arith.cmpi ult, %moved, %limit : i64
cf.assert %inside, "an index is out of bounds" {mlirml.check = 3 : i64, mlirml.check_base = 5 : i64}
"""

from __future__ import annotations

from mlirml.core.dataclass import dataclass
from mlirml.dialects.mlirml import CHECK, CHECK_BASE
from mlirml.ir.bindings import defining_op, mlir

_BELOW = 6  # `ult` of `arith.cmpi`


@dataclass(frozen=True)
class Checked:
    """The compared value, and the offset that was added to the checked integer."""

    moved: mlir.Value
    base: int


def checked_number(op: mlir.Operation) -> Checked | None:
    """The integer that an assert is about; None if it has none, or passes have merged it with other asserts."""
    if CHECK not in op.attributes or CHECK_BASE not in op.attributes:
        return None
    comparison = defining_op(op.operands[0])
    if comparison is None or comparison.name != "arith.cmpi":
        return None
    if mlir.IntegerAttr(comparison.attributes["predicate"]).value != _BELOW:
        return None
    moved = comparison.operands[0]
    if not isinstance(moved.type, (mlir.IntegerType, mlir.IndexType)):
        return None
    return Checked(moved, int(mlir.IntegerAttr(op.attributes[CHECK_BASE]).value))
