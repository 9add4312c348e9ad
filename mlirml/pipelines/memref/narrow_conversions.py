"""Narrow conversions: floats become 64-bit integers, and the other way, by way of 32 bits where the numbers allow it.

Before:
    %0 = arith.minnumf %x, %c999 : f64
    %1 = arith.maxnumf %0, %c0 : f64
    %2 = arith.fptosi %1 : f64 to i64
After:
    %0 = arith.minnumf %x, %c999 : f64
    %1 = arith.maxnumf %0, %c0 : f64
    %2 = arith.fptosi %1 : f64 to i32
    %3 = arith.extsi %2 : i32 to i64

SSE2 and AVX2 convert vectors of 32-bit integers, and 64-bit ones number by number; AVX-512 converts both.
"""

from __future__ import annotations

from mlirml.analysis.ranges import Ranges
from mlirml.ir import emit
from mlirml.ir.bindings import mlir, named_operations, replace_op
from mlirml.passes import Pass, register

_LEAST, _GREATEST = -(1 << 31), (1 << 31) - 1


@register(when=("arith.fptosi", "arith.sitofp"))
class NarrowConversionsPass(Pass):
    """Convert between floats and 64-bit integers that fit into 32 bits by way of those."""

    def run(self, module: mlir.Operation) -> None:
        found = [op for op in named_operations(module, ("arith.fptosi", "arith.sitofp")) if is_long(op)]
        if not found:
            return
        ranges = Ranges()
        short = mlir.IntegerType.get_signless(32)
        for op in found:
            number = op.results[0] if op.name == "arith.fptosi" else op.operands[0]
            if ranges.within(number, _LEAST, _GREATEST):
                with op.location, mlir.InsertionPoint(op):
                    narrow(op, short)


def is_long(op: mlir.Operation) -> bool:
    """True for a conversion from or to an i64 that is not an element of a vector."""
    kind = (op.results[0] if op.name == "arith.fptosi" else op.operands[0]).type
    return isinstance(kind, mlir.IntegerType) and mlir.IntegerType(kind).width == 64


def narrow(op: mlir.Operation, short: mlir.Type) -> None:
    """Replace a conversion by one of a short integer, and one between the two integers."""
    value, kind = op.operands[0], op.results[0].type
    if op.name == "arith.fptosi":
        result = emit.value("arith.extsi", [emit.value("arith.fptosi", [value], short)], kind)
    else:
        result = emit.value("arith.sitofp", [emit.value("arith.trunci", [value], short)], kind)
    replace_op(op, result)
