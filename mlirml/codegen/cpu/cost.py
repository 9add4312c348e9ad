"""The approximate cost of a nest, to decide what runs in parallel and with which grain."""

from __future__ import annotations

import math
from collections.abc import Sequence

from mlirml.analysis.cost import vector_cycles
from mlirml.analysis.costs import costs
from mlirml.codegen.cpu.nest import Access, Nest
from mlirml.ir.bindings import mlir

_FREE = ("arith.constant", "linalg.index", "linalg.yield")


def vector_ns(op: mlir.Operation) -> float:
    """Nanoseconds of a scalar operation for one element, vectorised; loads and stores are not counted."""
    if op.name in _FREE or op.name.startswith(("memref.", "scf.")) or not op.results:
        return 0.0
    kind = op.results[0].type
    if isinstance(kind, mlir.IndexType):  # indices, which are common to the lanes of a vector
        return 0.0
    size: int = max(1, kind.width // 8)
    return costs().vector_ns(op_cycles(op), size)


def op_cycles(op: mlir.Operation) -> float:
    """Cycles for one vector of 64 bytes."""
    return vector_cycles(op.name)


def iteration_ns(nest: Nest, ops: Sequence[mlir.Operation]) -> float:
    """Nanoseconds for one point of the iteration space, vectorised."""
    widest = max([access.bytes for access in nest.memory], default=4)
    cycles = 0.0
    for op in ops:
        if op.name not in _FREE:
            cycles += op_cycles(op)
    return max(costs().vector_ns(cycles, widest), traffic_ns(nest))


def traffic_ns(nest: Nest) -> float:
    """The average nanoseconds of the memory traffic of one point."""
    return sum(traffic_bytes(nest, access) for access in nest.memory) * costs().byte_ns(footprint(nest))


def footprint(nest: Nest) -> int:
    """Bytes that the whole nest accesses."""
    return sum(extent(nest, access) for access in nest.memory)


def traffic_bytes(nest: Nest, access: Access) -> float:
    """Average bytes that one iteration transfers: less than one element if the inner loops reuse it."""
    innermost = access.strides[-1] if access.strides else 0
    if innermost == 0:
        return 0.0
    return float(min(64, access.bytes * abs(innermost)))


def extent(nest: Nest, access: Access) -> int:
    """Bytes that the whole nest accesses in an operand."""
    return access.bytes * math.prod(size for size, stride in zip(nest.sizes, access.strides, strict=True) if stride)


def grain(iterations: int, each_ns: float) -> int:
    """The least number of iterations of a parallel loop for one thread; 0 if it should be serial."""
    return costs().grain(iterations, each_ns)
