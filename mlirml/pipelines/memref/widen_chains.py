"""Widen chains: successive operations on f16 and bf16 are computed as f32, and their result is rounded once.

Before:
    scf.for %j = %c0 to %n step %c1 {
      %a = memref.load %x[%j] : memref<70xf16>
      %b = memref.load %y[%j] : memref<70xf16>
      %p = arith.mulf %a, %b : f16
      %q = arith.addf %p, %a : f16
      memref.store %q, %z[%j] : memref<70xf16>
    }
After:
    scf.for %j = %c0 to %n step %c1 {
      %a = memref.load %x[%j] : memref<70xf16>
      %b = memref.load %y[%j] : memref<70xf16>
      %wide_a = arith.extf %a : f16 to f32
      %wide_b = arith.extf %b : f16 to f32
      %p = arith.mulf %wide_a, %wide_b : f32
      %q = arith.addf %p, %wide_a : f32
      %narrow = arith.truncf %q : f32 to f16
      memref.store %narrow, %z[%j] : memref<70xf16>
    }

Processors compute narrow floats as f32, so that each operation of the first form has two conversions. Those in the
middle are left out, as XLA does it (`xla_allow_excess_precision`): the operations are continuous, each of them is then
nearer to the exact result, and numbers that f16 has no exponent for are infinite only at the end. What is compared,
converted to integers, carried by a loop or stored is rounded, so that equal numbers compare equal.
"""

from __future__ import annotations

from collections.abc import Iterator

from mlirml.analysis.constants import float_of
from mlirml.ir import emit
from mlirml.ir.bindings import defining_op, mlir, named_operations, replace_op
from mlirml.passes import Pass, register

_CONTINUOUS = (
    "arith.addf", "arith.subf", "arith.mulf", "arith.divf", "arith.negf", "arith.maximumf", "arith.minimumf",
    "math.absf", "math.sqrt",
)  # fmt: skip
_NARROW = (mlir.F16Type, mlir.BF16Type)


@register(optional=True)
class WidenChainsPass(Pass):
    """Compute operations on f16 and bf16 that read each other's results in a block as f32."""

    def run(self, module: mlir.Operation) -> None:
        narrow = [op for op in named_operations(module, _CONTINUOUS) if is_a(op.results[0].type, _NARROW)]
        chained = [op for op in narrow if has_link(op)]
        wide: dict[mlir.Value, mlir.Value] = {}
        for op in chained:
            wide[op.results[0]] = build_wide(op, wide)
        for op in reversed(chained):
            round_result(op, wide[op.results[0]])


def is_a(value_type: mlir.Type, elements: tuple[type, ...]) -> bool:
    """True for a float of one of these types, and for vectors of them."""
    return isinstance(value_type.element_type if isinstance(value_type, mlir.VectorType) else value_type, elements)


def has_link(op: mlir.Operation) -> bool:
    """True if an operation of the same block computes an operand, or reads the result."""
    owners = [owner for value in op.operands if (owner := defining_op(value)) is not None]
    others = [*owners, *(use.owner.operation for use in op.results[0].uses)]
    return any(other.block == op.block and (other.name in _CONTINUOUS or is_extension(other)) for other in others)


def is_extension(op: mlir.Operation) -> bool:
    """True for a conversion of a narrow float to f32."""
    return bool(op.name == "arith.extf") and is_a(op.results[0].type, (mlir.F32Type,))


def build_wide(op: mlir.Operation, wide: dict[mlir.Value, mlir.Value]) -> mlir.Value:
    """The operation on f32, before that on narrow floats; `wide` are the results of earlier ones."""
    with op.location, mlir.InsertionPoint(op):
        operands = [wide.get(value) or extended(value) for value in op.operands]
        if op.name == "arith.divf" and wide.get(op.operands[1]) is None and is_a(op.results[0].type, (mlir.F16Type,)):
            # All of f16 have reciprocals that are normal numbers of f32, which LLVM computes before a loop.
            return emit.same_type(op.name, *operands, fastmath=mlir.Attribute.parse("#arith.fastmath<arcp>"))
        return emit.same_type(op.name, *operands)


def extended(value: mlir.Value) -> mlir.Value:
    """A narrow float as f32, at the insertion point."""
    single = mlir.F32Type.get()
    number = float_of(value)
    if number is not None and not isinstance(value.type, mlir.VectorType):
        return emit.number(single, number)
    shape = mlir.VectorType.get(value.type.shape, single) if isinstance(value.type, mlir.VectorType) else single
    return emit.value("arith.extf", [value], shape)


def round_result(op: mlir.Operation, wide: mlir.Value) -> None:
    """Replace an operation on narrow floats, which only others than those of its chain read, by a rounded result."""
    result = op.results[0]
    for use in list(result.uses):
        user = use.owner.operation
        if is_extension(user) and user.block == op.block and all(reads_continuously(user)):
            replace_op(user, wide)
    if list(result.uses):
        with op.location, mlir.InsertionPoint(op):
            result.replace_all_uses_with(emit.value("arith.truncf", [wide], result.type))
    op.erase()


def reads_continuously(extension: mlir.Operation) -> Iterator[bool]:
    """For each use of a float as f32, True if it is in arithmetic that is continuous."""
    return (use.owner.operation.name in _CONTINUOUS for use in extension.results[0].uses)
