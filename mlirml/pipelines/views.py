"""The buffers behind views of memory."""

from __future__ import annotations

from mlirml.ir import defining_op, mlir, seen_through

VIEWS = (
    "memref.subview", "memref.expand_shape", "memref.collapse_shape", "memref.cast", "memref.reinterpret_cast",
    "memref.view",
)  # fmt: skip
"""Operations whose result is memory of their first operand."""


def buffer_of(value: mlir.Value) -> mlir.Value:
    """The buffer that a memref is a view of."""
    return seen_through(value, VIEWS)


def is_known(buffer: mlir.Value) -> bool:
    """Whether a buffer overlaps with no other: an argument of the function, an allocation, a constant.

    What a loop carries, or a branch gives, may be another buffer under a second name.
    """
    owner = defining_op(buffer)
    if owner is None:
        return bool(buffer.owner.owner.operation.name == "func.func")
    return owner.name in ("memref.alloc", "memref.get_global")
