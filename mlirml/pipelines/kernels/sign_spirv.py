"""Sign SPIR-V: operations on signed integers get integers that are signed.

Before:
    %q = spirv.SDiv %a, %b : i32
After:
    %x = spirv.Bitcast %a : i32 to si32
    %y = spirv.Bitcast %b : i32 to si32
    %z = spirv.SDiv %x, %y : si32
    %q = spirv.Bitcast %z : si32 to i32

MLIR's integers have no sign and are written as unsigned ones. SPIR-V does not care: the operation decides. The compiler
behind WebGPU (naga) does, and divides, extends and converts what is unsigned as such.
"""

from __future__ import annotations

from mlirml.core.dataclass import dataclass
from mlirml.ir import emit
from mlirml.ir.bindings import mlir, operations
from mlirml.passes import Pass, register

_SIGNED = frozenset(
    f"spirv.{name}"
    for name in (
        "SDiv", "SRem", "SMod", "SNegate", "SConvert", "ConvertSToF", "ConvertFToS", "ShiftRightArithmetic",
        "SLessThan", "SLessThanEqual", "SGreaterThan", "SGreaterThanEqual",
        "GL.SMax", "GL.SMin", "GL.SAbs", "GL.SSign", "GL.SClamp",
    )
)  # fmt: skip
_FIRST_ONLY = ("spirv.ShiftRightArithmetic",)


@register
@dataclass(frozen=True)
class SignSpirvPass(Pass):
    """Give signed operations of spirv.modules signed operands and results."""

    name = "mlirml-sign-spirv"

    def run(self, module: mlir.Operation) -> None:
        for op in [op for op in operations(module) if op.name in _SIGNED]:
            with op.location:
                give_sign(op)


def give_sign(op: mlir.Operation) -> None:
    """Cast the operands and the result of one operation."""
    operands = list(op.operands)[:1] if op.name in _FIRST_ONLY else list(op.operands)
    with mlir.InsertionPoint(op):
        for position, operand in enumerate(operands):
            if is_signless(operand.type):
                kind = mlir.IntegerType.get_signed(operand.type.width)
                op.operands[position] = emit.value("spirv.Bitcast", [operand], kind)
    result = op.results[0]
    kind = result.type
    if not is_signless(kind):
        return
    result.set_type(mlir.IntegerType.get_signed(kind.width))
    with mlir.InsertionPoint.after(op):
        cast = emit.value("spirv.Bitcast", [result], kind)
    result.replace_all_uses_except(cast, [cast.owner.operation])


def is_signless(kind: mlir.Type) -> bool:
    """True if a type is an integer that is no truth value."""
    return isinstance(kind, mlir.IntegerType) and kind.is_signless and kind.width > 1
