"""Predicate code that vmap runs for inactive lanes: untaken branches, and loops that other lanes continue.

Its results are not selected. It must not fail, nor access elements outside of tensors:

Before:
    cf.assert %inside, "..."
    %x = tensor.extract %t[%i] : tensor<8xf64>
After:
    %0 = arith.ori %inside, (not %alive)
    cf.assert %0, "..."
    %1 = arith.minsi (arith.maxsi %i, 0), 7
    %x = tensor.extract %t[%1] : tensor<8xf64>
"""

from __future__ import annotations

from collections.abc import Sequence

from mlirml.ir import emit
from mlirml.ir.bindings import block_ops, mlir, operations


def guard(ops: Sequence[mlir.Operation], alive: mlir.Value, checked: bool) -> list[mlir.Operation]:
    """Make operations of a block safe where `alive` is false; returns all of them with the new ones.

    The indices of `checked` code are known to be within bounds.
    """
    found = []
    for op in ops:
        before = len(block_ops(op.block))
        for inner in list(operations(op)):
            with inner.location, mlir.InsertionPoint(inner):
                if inner.name == "cf.assert":
                    inner.operands[0] = emit.same_type("arith.ori", inner.operands[0], _not(alive))
                elif not checked:
                    _clamp(inner)
        now = block_ops(op.block)
        index = now.index(op)
        found += now[index - (len(now) - before) : index + 1]
    return found


def _not(value: mlir.Value) -> mlir.Value:
    return emit.same_type("arith.xori", value, emit.number(value.type, 1))


_FIRST_INDEX = {"tensor.extract": 1, "tensor.insert": 2}
_SLICES = {"tensor.extract_slice": 0, "tensor.insert_slice": 1}


def _clamp(op: mlir.Operation) -> None:
    """Clamp the indices of an access to the tensor."""
    if op.name in _FIRST_INDEX:
        first = _FIRST_INDEX[op.name]
        for number, size in enumerate(op.operands[first - 1].type.shape):
            op.operands[first + number] = _within(op.operands[first + number], size - 1)
        return
    if op.name not in _SLICES:
        return
    tensor = op.operands[_SLICES[op.name]]
    offsets, sizes, strides = (
        list(mlir.DenseI64ArrayAttr(op.attributes[f"static_{name}"])) for name in ("offsets", "sizes", "strides")
    )
    dynamic = mlir.ShapedType.get_dynamic_stride_or_offset()
    number = _SLICES[op.name] + 1
    for offset, size, stride, whole in zip(offsets, sizes, strides, tensor.type.shape):
        if offset == dynamic:
            op.operands[number] = _within(op.operands[number], whole - (size - 1) * stride - 1)
            number += 1


def _within(index: mlir.Value, last: int) -> mlir.Value:
    above = emit.same_type("arith.maxsi", index, emit.index(0))
    return emit.same_type("arith.minsi", above, emit.index(max(last, 0)))
