"""Tensors of which each loop iteration reads a different row, as `ml.scan` reads its rows.

    scf.for %i = %lower to %upper step %step ... {
      %w = tensor.extract_slice %ws[%i, 0, 0] [1, 768, 768] [1, 1, 1]     // the only use of %ws in the loop
      ...
    }

The cotangent of such a row in its iteration is the whole cotangent of the row: it is stored, not accumulated.
"""

from __future__ import annotations

from mlirml.analysis.constants import constant_of
from mlirml.core.dataclass import dataclass
from mlirml.ir.bindings import block_ops, defining_op, mlir, operations


@dataclass(frozen=True)
class _Row:
    """The position of a slice: `index` in `dimension`, which is `first` + `step` times the iteration index."""

    index: mlir.Value
    dimension: int
    first: int | None
    step: int | None


def rows_read(loop: mlir.Operation) -> dict[mlir.Value, bool]:
    """Outer tensors of which each iteration reads one row of its own and nothing else; True if all rows are read."""
    lower, upper, step, *_ = loop.operands
    block = loop.regions[0].blocks[0]
    bounds = [constant_of(x) for x in (lower, upper, step)]
    found: dict[mlir.Value, _Row] = {}
    others: set[mlir.Value] = set(loop.operands)
    for op in block_ops(block):
        row = _row(op, block, bounds[0], bounds[2]) if op.name == "tensor.extract_slice" else None
        if row is not None and row == found.setdefault(op.operands[0], row):
            continue
        for inner in operations(op):
            others.update(inner.operands)
    return {x: _is_everything(row, x, bounds) for x, row in found.items() if x not in others}


def _row(op: mlir.Operation, block: mlir.Block, lower: int | None, step: int | None) -> _Row | None:
    """The row that a slice reads, if no other iteration reads it."""
    source, *indices = op.operands
    static = (list(mlir.DenseI64ArrayAttr(op.attributes[f"static_{x}"])) for x in ("offsets", "sizes", "strides"))
    offsets, sizes, strides = static
    shape = list(source.type.shape)
    dynamic = mlir.ShapedType.get_dynamic_stride_or_offset()
    moving = [d for d, offset in enumerate(offsets) if offset == dynamic]
    if len(indices) != 1 or len(moving) != 1 or not source.type.has_static_shape or any(s != 1 for s in strides):
        return None
    (dimension,) = moving
    if any(
        size != (1 if d == dimension else shape[d]) or (d != dimension and offsets[d]) for d, size in enumerate(sizes)
    ):
        return None
    (index,) = indices
    if index == block.arguments[0]:
        return _Row(index, dimension, lower, step)
    owner = defining_op(index)
    if owner is None or owner.name != "arith.subi" or owner.operands[1] != block.arguments[0]:
        return None
    if (before := defining_op(owner.operands[0])) is not None and before.block == block:
        return None
    last = constant_of(owner.operands[0])
    backwards = None in (last, lower, step)
    return _Row(index, dimension, None if backwards else last - lower, None if backwards else -step)  # type: ignore[operator]


def _is_everything(row: _Row, tensor: mlir.Value, bounds: list[int | None]) -> bool:
    """True if the iterations read all rows."""
    if None in (*bounds, row.first, row.step):
        return False
    trip_count = len(range(*bounds))  # type: ignore[arg-type]
    read = range(row.first, row.first + trip_count * row.step, row.step)  # type: ignore[operator, arg-type]
    return sorted(read) == list(range(tensor.type.shape[row.dimension]))
