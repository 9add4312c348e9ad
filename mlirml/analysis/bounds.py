"""Upper bounds of the dynamic sizes of tensors."""

from __future__ import annotations

import math

from mlirml.analysis.structured import indexing_maps
from mlirml.analysis.traits import TENSOR_STORES
from mlirml.ir.bindings import defining_op, mlir

DYNAMIC = mlir.ShapedType.get_dynamic_size()


def is_dynamic(value: mlir.Value) -> bool:
    """True if a value is a tensor with a dynamic size."""
    return isinstance(value.type, mlir.RankedTensorType) and not value.type.has_static_shape


def bound(tensor: mlir.Value, dim: int) -> int | None:
    """An upper bound of the size of a dimension: a slice is no longer than its source. None if there is none."""
    size: int = tensor.type.shape[dim]
    if size != DYNAMIC:
        return size
    op = defining_op(tensor)
    if op is None:
        return None
    if op.name == "tensor.extract_slice":
        return bound(op.operands[0], dims_of_slice(op)[dim])
    if op.name in TENSOR_STORES:
        return bound(op.operands[1], dim)
    if op.name.startswith("linalg."):
        return bound_of_loop(op, list(op.results).index(tensor), dim)
    return bound(op.operands[0], dim) if op.name == "tensor.cast" else None


def bound_of_loop(op: mlir.Operation, result: int, dim: int) -> int | None:
    """The upper bound of the loop that indexes a dimension of a result of a structured operation."""
    maps = indexing_maps(op)
    wanted = maps[len(maps) - len(op.results) + result].results[dim]
    for operand, map_ in zip(op.operands, maps):
        if isinstance(operand.type, mlir.RankedTensorType):
            for position, expression in enumerate(map_.results):
                if expression == wanted and (found := bound(operand, position)) is not None:
                    return found
    return None


def dims_of_slice(op: mlir.Operation) -> list[int]:
    """The dimensions of the large tensor that the small one of a slice has; the others are dropped unit dimensions."""
    small = op.results[0] if op.name == "tensor.extract_slice" else op.operands[0]
    shape = list(small.type.shape)
    found = []
    for dim, size in enumerate(op.attributes["static_sizes"]):
        if shape and shape[0] == size:
            found.append(dim)
            shape.pop(0)
    return found


def size_operand(op: mlir.Operation, dim: int, sources: int) -> mlir.Value | int:
    """The size of a slice along a dimension of the large tensor; its dynamic operands follow `sources` tensors."""
    sizes = list(op.attributes["static_sizes"])
    if sizes[dim] != DYNAMIC:
        return int(sizes[dim])
    offsets = sum(offset == DYNAMIC for offset in op.attributes["static_offsets"])
    before = sum(size == DYNAMIC for size in sizes[:dim])
    return op.operands[sources + offsets + before]


def most_elements(tensor: mlir.Value) -> int | None:
    """An upper bound of the number of elements of a tensor; None if there is none."""
    bounds = [bound(tensor, dim) for dim in range(tensor.type.rank)]
    known = [size for size in bounds if size is not None]
    return math.prod(known) if len(known) == len(bounds) else None
