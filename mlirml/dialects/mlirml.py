"""The `mlirml` dialect: the operations and attributes that no upstream dialect has, checked by IRDL."""

# The annotations below are read when the classes are made, so this file keeps them as values, not as strings.
from collections.abc import Sequence
from typing import Any

from mlirml.ir import ext, mlir


class Mlirml(ext.Dialect, name="mlirml"):
    """Also the namespace of our discardable attributes: `mlirml.schedule`, `mlirml.grain`."""


class ParallelFor(Mlirml.Operation, name="parallel_for"):
    """Run `callee(lo, hi, captures...)` over chunks of [lower, upper) on the native pool.

    `callee` names a private `func.func` whose first two arguments are `index`; `grain` is the least number of
    iterations worth a chunk.

        "mlirml.parallel_for"(%lower, %upper, %a, %b) {callee = @body, grain = 64 : i64,
            operandSegmentSizes = array<i32: 1, 1, 2>} : (index, index, memref<8xf32>, memref<8xf32>) -> ()
    """

    lower: ext.Operand[mlir.IndexType]
    upper: ext.Operand[mlir.IndexType]
    captures: Sequence[ext.Operand[Any]]
    callee: mlir.FlatSymbolRefAttr
    grain: mlir.IntegerAttr
