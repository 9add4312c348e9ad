"""The `mlirml` dialect: the operations and attributes that no upstream dialect has, checked by IRDL."""

from __future__ import annotations

from typing import Any

from mlirml.ir import ext, mlir


class Mlirml(ext.Dialect, name="mlirml"):
    """Also the namespace of our discardable attributes: `mlirml.schedule`, `mlirml.grain`."""


class ParallelFor(Mlirml.Operation, name="parallel_for"):
    """Run `callee(lo, hi, captures...)` over chunks of [lower, upper) on the native pool.

    `callee` names a private `func.func` whose first two arguments are `index`; `grain` is the least number of
    iterations worth a chunk.
    """

    lower: ext.Operand[mlir.IndexType]
    upper: ext.Operand[mlir.IndexType]
    captures: ext.Operand[Any]
    callee: mlir.FlatSymbolRefAttr
    grain: mlir.IntegerAttr
