"""The shared memory of a scheduled kernel: its arrays in order, and whether the launch has to ask for it."""

from __future__ import annotations

import math

from mlirml.ir.bindings import mlir, operations

ALIGNMENT = 16
STATIC = 48 << 10
"""What every launch on NVIDIA's devices has without asking (CUDA C++ Programming Guide, "Compute Capabilities")."""


def arrays_of(kernel: mlir.Operation) -> list[tuple[mlir.Operation, int]]:
    """The allocations of a kernel, each with its offset in bytes."""
    found, at = [], 0
    for op in operations(kernel):
        if op.name == "memref.alloc":
            found.append((op, at))
            at += -(-size_of(op) // ALIGNMENT) * ALIGNMENT
    return found


def shared_bytes(kernel: mlir.Operation) -> int:
    """The shared memory of a block."""
    arrays = arrays_of(kernel)
    return arrays[-1][1] + size_of(arrays[-1][0]) if arrays else 0


def dynamic_bytes(kernel: mlir.Operation) -> int:
    """The shared memory that a launch asks for; 0 if the kernel has it without that."""
    size = shared_bytes(kernel)
    return size if size > STATIC else 0


def size_of(array: mlir.Operation) -> int:
    """The bytes of an allocation."""
    memref_type = mlir.MemRefType(array.results[0].type)
    return math.prod(memref_type.shape) * max(1, memref_type.element_type.width // 8)
