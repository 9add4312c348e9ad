"""What operations and tensors cost: the bytes of a tensor."""

from __future__ import annotations

import math

from mlirml.ir.bindings import mlir


def element_bytes(element_type: mlir.Type) -> int:
    """The size of an element in memory."""
    if isinstance(element_type, mlir.ComplexType):
        return 2 * element_bytes(element_type.element_type)
    return 8 if isinstance(element_type, mlir.IndexType) else max(1, int(element_type.width) // 8)


def bytes_of(value: mlir.Value) -> int:
    """The size of a tensor of static shape in bytes."""
    return int(math.prod(value.type.shape)) * element_bytes(value.type.element_type)
