"""What operations and tensors cost: the instructions of a scalar operation, the bytes of a tensor."""

from __future__ import annotations

import math
from collections.abc import Iterable

from mlirml.ir.bindings import mlir

_INSTRUCTIONS = {
    "arith.constant": 0, "linalg.index": 0, "linalg.yield": 0, "arith.index_cast": 0, "arith.divf": 5,
    "arith.remf": 20, "arith.divsi": 10, "arith.divui": 10, "arith.remsi": 12, "arith.remui": 12,
    "arith.floordivsi": 14, "arith.ceildivsi": 14, "arith.ceildivui": 14, "math.sqrt": 6, "math.rsqrt": 8,
}  # fmt: skip
_ONE = (
    "math.abs", "math.copysign", "math.fma", "math.floor", "math.ceil", "math.trunc", "math.round", "math.is",
    "math.ct",
)  # fmt: skip
_FUNCTION = 15
_DIVISIONS = ("arith.div", "arith.rem", "arith.floordiv", "arith.ceildiv")


def instructions(ops: Iterable[mlir.Operation]) -> int:
    """About how many instructions scalar operations take; a division as many as additions take its time."""
    return sum(instructions_of(op.name) for op in ops)


def instructions_of(name: str) -> int:
    """About how many additions take the time of a scalar operation."""
    known = _INSTRUCTIONS.get(name)
    if known is not None:
        return known
    return _FUNCTION if name.startswith("math.") and not name.startswith(_ONE) else 1


_CYCLES = {
    "arith.divf": 10, "arith.remf": 25, "arith.divsi": 20, "arith.divui": 20, "arith.remsi": 60, "arith.remui": 60,
    "arith.floordivsi": 60, "arith.ceildivsi": 60, "math.sqrt": 12, "math.rsqrt": 12, "memref.load": 16,
}  # fmt: skip


def vector_cycles(name: str) -> float:
    """The cycles in which a processor does a scalar operation for all elements of a vector of 64 bytes."""
    return _CYCLES.get(name, 25 if name.startswith("math.") else 0.6)


def is_costly(op: mlir.Operation) -> bool:
    """True for divisions and for functions, whose results are rather stored than recomputed."""
    return bool(op.name.startswith(("math.", *_DIVISIONS)))


def element_bytes(element_type: mlir.Type) -> int:
    """The size of an element in memory."""
    if isinstance(element_type, mlir.ComplexType):
        return 2 * element_bytes(element_type.element_type)
    return 8 if isinstance(element_type, mlir.IndexType) else max(1, int(element_type.width) // 8)


def bytes_of(value: mlir.Value) -> int:
    """The size of a tensor of static shape in bytes."""
    return int(math.prod(value.type.shape)) * element_bytes(value.type.element_type)
