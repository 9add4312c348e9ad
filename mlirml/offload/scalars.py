"""Scalars that the host knows are passed to kernels by value; operations on such scalars alone are hoisted to the host.

Before:
    func.func @main(%x: tensor<8xf32>, %s: tensor<f64>) -> tensor<8xf32> {
      %r = linalg.generic {...} ins(%x, %s : tensor<8xf32>, tensor<f64>) outs(%e) {
      ^bb0(%a: f32, %b: f64, %out: f32):
        %c = arith.truncf %b : f64 to f32
        %d = arith.mulf %a, %c : f32
        linalg.yield %d
      }
After:
    func.func @main(%x: tensor<8xf32>, %s: tensor<f64>) -> tensor<8xf32> attributes {mlirml.host_inputs = [1]} {
      %b = tensor.extract %s[] : tensor<f64>
      %c = arith.truncf %b : f64 to f32
      %r = linalg.generic {...} ins(%x : tensor<8xf32>) outs(%e) {
      ^bb0(%a: f32, %out: f32):
        %d = arith.mulf %a, %c : f32
        linalg.yield %d
      }

So a kernel needs no buffer for a scalar, and a device without f64 can use Python floats.
"""

from __future__ import annotations

from collections.abc import Callable

from mlirml.analysis.constants import is_constant
from mlirml.dialects.mlirml import DIMS, HOST_INPUTS
from mlirml.ir import emit
from mlirml.ir.bindings import block_ops, defining_op, mlir, operations, replace_op

_STAYS = ("linalg.index", "linalg.yield")


def pass_by_value(
    main: mlir.Operation, on_host: Callable[[mlir.Operation], bool], lacks: Callable[[mlir.Type], bool]
) -> None:
    """Replace rank-0 tensors that kernels read by scalars, if they are arguments or computed by operations `on_host`.

    Those of types that the device `lacks` are on the host whatever computes them: a loop-carried value, too.
    """
    for op in [op for op in operations(main) if op.name == "linalg.generic"]:
        if not on_host(op):
            known = [n for n, value in enumerate(inputs_of(op)) if lacks(value.type) or is_known(value, on_host)]
            hoist_scalars(without_inputs(op, known))
    arguments = list(main.regions[0].blocks[0].arguments)
    table = sizes_of_call(main)
    inputs = [
        n
        for n, a in enumerate(arguments)
        if (table is not None and a == table) or (is_number(a.type) and all(stays(use, on_host) for use in a.uses))
    ]
    if inputs:
        main.attributes[HOST_INPUTS] = mlir.DenseI64ArrayAttr.get(inputs)


def sizes_of_call(main: mlir.Operation) -> mlir.Value | None:
    """The argument with the sizes of a program of dynamic ones; None for another program."""
    return list(main.regions[0].blocks[0].arguments)[-1] if DIMS in main.attributes else None


def is_number(value_type: mlir.Type) -> bool:
    return isinstance(value_type, mlir.RankedTensorType) and value_type.rank == 0


def is_known(value: mlir.Value, on_host: Callable[[mlir.Operation], bool]) -> bool:
    """True if the host has the scalar before the kernel is launched."""
    if not is_number(value.type):
        return False
    owner = defining_op(value)
    if owner is None:
        return bool(value.owner.owner.operation.name == "func.func")
    return owner.name.startswith("linalg.") and on_host(owner) and all(is_known(v, on_host) for v in inputs_of(owner))


def inputs_of(op: mlir.Operation) -> list[mlir.Value]:
    return list(op.operands)[: len(op.operands) - len(op.results)]


def stays(use: mlir.OpOperand, on_host: Callable[[mlir.Operation], bool]) -> bool:
    """True if a use of an argument is by an operation of the host."""
    op = use.owner.operation
    return op.name == "tensor.extract" or (op.name == "linalg.generic" and on_host(op))


def without_inputs(op: mlir.Operation, numbers: list[int]) -> mlir.Operation:
    """A clone of a generic whose inputs `numbers` are extracted outside and captured by its body."""
    if not numbers:
        return op
    count = len(op.operands)
    kept = [n for n in range(count) if n not in numbers]
    maps = [m.value for m in op.attributes["indexing_maps"]]
    init_count = len(op.results)
    body = op.regions[0].blocks[0]
    with op.location, mlir.InsertionPoint(op):
        scalars = {n: emit.only_element(op.operands[n]) for n in numbers}
        attributes = {
            "indexing_maps": mlir.ArrayAttr.get([mlir.AffineMapAttr.get(maps[n]) for n in kept]),
            "iterator_types": op.attributes["iterator_types"],
            "operandSegmentSizes": emit.segments(len(kept) - init_count, init_count),
        }
        operands = [op.operands[n] for n in kept]
        new = emit.create("linalg.generic", operands, [r.type for r in op.results], attributes, regions=1)
    block = emit.block(new, [body.arguments[n].type for n in kept])
    for number, argument in zip(kept, block.arguments):
        body.arguments[number].replace_all_uses_with(argument)
    for number, scalar in scalars.items():
        body.arguments[number].replace_all_uses_with(scalar)
    for inner in block_ops(body):
        block.append(inner)
    replace_op(op, *new.results)
    return new


def hoist_scalars(op: mlir.Operation) -> None:
    """Hoist the operations of the body whose operands are captured scalars before the operation."""
    body = op.regions[0].blocks[0]
    for inner in block_ops(body):
        if inner.name in _STAYS or inner.regions or not len(inner.operands):
            continue
        if all(is_outside(v, body) for v in inner.operands) and not all(is_constant(v) for v in inner.operands):
            for operand in inner.operands:
                owner = defining_op(operand)
                if owner is not None and owner.block == body:
                    owner.move_before(op)
            inner.move_before(op)


def is_outside(value: mlir.Value, body: mlir.Block) -> bool:
    owner = defining_op(value)
    if owner is None:
        return bool(value.owner != body)
    return bool(owner.block != body) or owner.name == "arith.constant"
