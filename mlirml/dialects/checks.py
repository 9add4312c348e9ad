"""The number that a check is about, which a failure tells: `cf.assert (number + base) < limit`, as unsigned integers.

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
    """What is compared, and what was added to the number that the check is about."""

    moved: mlir.Value
    base: int


def checked_number(op: mlir.Operation) -> Checked | None:
    """The number that an assert is about; None where it has none, or passes have merged it with others."""
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
