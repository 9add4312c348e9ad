"""Split products of dynamic lengths into strips of static lengths, each of which is a contraction.

    %r = linalg.matmul {mlirml.order} ins(%a, %b : tensor<100x?xf64>, tensor<?x100xf64>) outs(%c)

becomes a loop over strips of 32 elements of the sum, then one over strips of 8 elements of the rest, each with a
`linalg.contract` of tensors of static sizes, which `mlirml-schedule-contract` has kernels for. Fewer than 8 elements
are computed by loops over elements.
"""

from __future__ import annotations

from collections.abc import Sequence

from mlirml.analysis.structured import indexing_maps
from mlirml.ir.bindings import mlir

STRIPS = (32, 8)
"""The lengths of strips, the longer ones first. Each of them is a kernel to compile."""
_MOST_DYNAMIC = 2
_LEAST = 16
"""A shorter static dimension is not worth a kernel."""


def strips_of(op: mlir.Operation, sizes: Sequence[int | mlir.Value]) -> list[int]:
    """The dynamic dims of a product of matrices, which are split into strips; none for other operations."""
    if op.name == "linalg.generic" or not op.name.startswith("linalg.") or len(op.operands) != 3:
        return []
    dynamic = [d for d, size in enumerate(sizes) if not isinstance(size, int)]
    if not dynamic or len(dynamic) > _MOST_DYNAMIC or len(sizes) != 3:
        return []
    if any(isinstance(size, int) and size < _LEAST for size in sizes):
        return []
    x, y, out = map(dims_of_map, indexing_maps(op))
    matrices = [len(each) == 2 for each in (x, y, out)]
    return dynamic if all(matrices) and x | y | out == {0, 1, 2} and x != y else []


def dims_of_map(map_: mlir.AffineMap) -> set[int]:
    """The dims that are results of a map."""
    return {e.position for e in map_.results if isinstance(e, mlir.AffineDimExpr)}
