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

A call of Python, such as that of `print`, gets a branch of its own, which no other lane takes.
"""

from __future__ import annotations

from collections.abc import Sequence

from mlirml.autodiff.copies import prints
from mlirml.dialects.mlirml import HOST_CALLS
from mlirml.ir import emit
from mlirml.ir.bindings import block_ops, has_op, mlir, operations


def guard(ops: Sequence[mlir.Operation], alive: mlir.Value, checked: bool) -> list[mlir.Operation]:
    """Make operations of a block safe where `alive` is false; returns all of them with the new ones.

    The indices of `checked` code are known to be within bounds.
    """
    safe = _separate_calls(ops, alive)
    if not safe:
        return []
    block = safe[0].block
    start = block_ops(block).index(safe[0])
    for op in safe:
        for inner in list(operations(op)):
            with inner.location, mlir.InsertionPoint(inner):
                if inner.name == "cf.assert":
                    inner.operands[0] = emit.same_type("arith.ori", inner.operands[0], _not(alive))
                elif not checked:
                    _clamp(inner)
    now = block_ops(block)
    return now[start : now.index(safe[-1]) + 1]


def _separate_calls(ops: Sequence[mlir.Operation], alive: mlir.Value) -> list[mlir.Operation]:
    """Put each call of Python that returns nothing, with what it is called with, into an `scf.if` of its own.

    Returns all operations of the block from the first to the last one.
    """
    if not any(op.name in HOST_CALLS or has_op(op, HOST_CALLS) for op in ops):
        return list(ops)
    block = ops[0].block
    around = block_ops(block)
    first = around.index(ops[0])
    end = around[first + len(ops)]
    for op in ops:
        for inner in list(operations(op)):
            if is_call(inner):
                with inner.location, mlir.InsertionPoint(inner):
                    inner.operands[0] = emit.same_type("arith.andi", inner.operands[0], alive)
                continue
            for region in inner.regions:
                for body in region.blocks:
                    _wrap_calls(block_ops(body), alive)
    _wrap_calls(ops, alive)
    now = block_ops(block)
    return now[first : now.index(end)]


def is_call(op: mlir.Operation) -> bool:
    """True for an `scf.if` around one call of Python."""
    if op.name != "scf.if" or op.results or len(op.regions[1].blocks):
        return False
    ops = block_ops(op.regions[0].blocks[0])[:-1]
    return bool(ops) and all(inner.name in HOST_CALLS for inner in ops)


def _wrap_calls(ops: Sequence[mlir.Operation], alive: mlir.Value) -> None:
    waiting: list[mlir.Operation] = []
    for op in prints(ops):
        waiting.append(op)
        if op.name != "mlirml.host_call":
            continue
        with op.location, mlir.InsertionPoint(op):
            branch = emit.create("scf.if", [alive], (), regions=2)
            with mlir.InsertionPoint(emit.block(branch, [], 0)):
                end = emit.create("scf.yield", [])
        for moved in waiting:
            moved.move_before(end)
        waiting = []


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
