"""Sign SPIR-V: signed operations get operands of signed integer types.

Before:
    %q = spirv.SDiv %a, %b : i32
After:
    %x = spirv.Bitcast %a : i32 to si32
    %y = spirv.Bitcast %b : i32 to si32
    %z = spirv.SDiv %x, %y : si32
    %q = spirv.Bitcast %z : si32 to i32

MLIR's integers are signless, and are serialised as unsigned ones. SPIR-V does not care: the operation decides. But the
compiler of WebGPU (naga) divides, extends and converts unsigned operands as unsigned integers.
"""

from __future__ import annotations

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
class SignSpirvPass(Pass):
    """Give signed operations of spirv.modules signed operands and results."""

    def run(self, module: mlir.Operation) -> None:
        for op in [op for op in operations(module) if op.name in _SIGNED]:
            with op.location:
                give_sign(op)


def give_sign(op: mlir.Operation) -> None:
    """Cast the operands and the result of one operation to signed types and back."""
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


def is_signless(value_type: mlir.Type) -> bool:
    """True for a signless integer type other than i1."""
    return isinstance(value_type, mlir.IntegerType) and value_type.is_signless and value_type.width > 1
