"""Adjacent elements of concatenations and paddings together: one branch for all elements of a thread.

    if 64 <= i && i < 128: v = x[i - 64 ..], a vector
    else:                  v = y[i ..]
    out[i ..] = v

Starts and sizes must be multiples of the number of adjacent elements; else each element has its own select.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mlirml.analysis.bounds import DYNAMIC, is_dynamic
from mlirml.codegen.gpu.elements import Elements, Indices, index_in_slice, is_false, kept_dims, pad_value
from mlirml.codegen.gpu.index import Form
from mlirml.ir import emit
from mlirml.ir.bindings import defining_op, mlir

Values = list[mlir.Value]


def get_all(e: Elements, tensor: mlir.Value, points: Sequence[Indices]) -> Values:
    """The elements of a tensor at adjacent points."""
    op = defining_op(tensor)
    if len(points) > 1 and tensor not in e.kernel.host.buffers and op is not None:
        part = part_of(op)
        if part is not None and meets(part, points):
            with op.location:
                return choose(e, op, part, points)
    return [e.get(tensor, point) for point in points]


def part_of(op: mlir.Operation) -> tuple[list[int], list[int]] | None:
    """The offsets and sizes of the small tensor of a store or a padding in the large one; None for other operations."""
    if any(map(is_dynamic, (*op.operands, *op.results))):
        return None
    if op.name == "tensor.pad":
        return list(op.attributes["static_low"]), list(op.operands[0].type.shape)
    if op.name != "tensor.insert_slice" or any(stride != 1 for stride in op.attributes["static_strides"]):
        return None
    return list(op.attributes["static_offsets"]), list(op.attributes["static_sizes"])


def meets(part: tuple[list[int], list[int]], points: Sequence[Indices]) -> bool:
    """True if all adjacent elements are in the small tensor or none is."""
    starts, sizes = part
    count, first = len(points), points[0]
    if not first or any(start == DYNAMIC or start < 0 for start in starts):
        return False
    aligned = starts[-1] % count == 0 and sizes[-1] % count == 0 and first[-1].is_multiple_of(count)
    return aligned and all(
        point[:-1] == first[:-1] and point[-1] == first[-1] + lane for lane, point in enumerate(points)
    )


def choose(e: Elements, op: mlir.Operation, part: tuple[list[int], list[int]], points: Sequence[Indices]) -> Values:
    """The elements of the small tensor, or of its surroundings."""
    result = op.results[0]
    conditions: Values = []
    inner: list[Form] = []
    for index, start, size, whole in zip(points[0], *part, result.type.shape, strict=True):
        inner.append(index if size == whole else index_in_slice(e, index - start, 1, size, conditions))
    kept = kept_dims(op, part[1]) if op.name == "tensor.insert_slice" else [True] * len(inner)
    last = len(inner) - 1

    def small() -> Values:
        points_in_part = [
            tuple(i + lane if d == last else i for d, i in enumerate(inner) if kept[d]) for lane in range(len(points))
        ]
        return get_all(e, op.operands[0], points_in_part)

    def around() -> Values:
        if op.name == "tensor.pad":
            return [pad_value(e, op, point) for point in points]
        return get_all(e, op.operands[1], points)

    if any(map(is_false, conditions)):
        return around()
    if not conditions:
        return small()

    def branch(build: Callable[[], Values]) -> Callable[[], Values]:
        def scoped() -> Values:
            with e.kernel.scope():
                return build()

        return scoped

    types = [result.type.element_type] * len(points)
    return emit.conditional(e.kernel.all_of(conditions), branch(small), branch(around), types)
