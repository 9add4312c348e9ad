"""Kernel proxies: calls of kernel functions become structured operations for bufferization, and launches after it.

A `linalg.generic` without loops reads its inputs and writes its inits, whatever their shapes: so in-place results, and
upstream's alias analysis, work for kernels too.
"""

from __future__ import annotations

from mlirml.dialects.mlirml import KERNEL, LAUNCH
from mlirml.errors import PreconditionError
from mlirml.ir import emit
from mlirml.ir.bindings import block_ops, callee_of, has_function, mlir, named_function, named_operations, replace_op
from mlirml.ir.location import source_location


def replace_calls_by_proxies(main: mlir.Operation) -> None:
    """Replace the calls of kernel functions by proxies, and erase the functions, which need no bufferization."""
    module = main.parent.operation
    for call in [op for op in named_operations(main, ("func.call",)) if KERNEL in op.attributes]:
        if not has_function(module, callee_of(call) + LAUNCH):
            raise PreconditionError(
                f"nothing launches the kernel @{callee_of(call)}: mlirml-schedule-kernels must run before this pass",
                location=source_location(call.location),
            )
        stand_in(call, named_function(module, callee_of(call)))
    for function in block_ops(module.regions[0].blocks[0]):
        if KERNEL in function.attributes:
            function.erase()


def stand_in(call: mlir.Operation, function: mlir.Operation) -> None:
    count = len(call.operands) - len(call.results)
    operands = list(call.operands)
    arguments = list(function.regions[0].blocks[0].arguments)[count:]
    read = [is_read(argument) for argument in arguments]
    zero = mlir.AffineConstantExpr.get(0)
    tensors = [isinstance(operand.type, mlir.RankedTensorType) for operand in operands]
    ranks = [operand.type.rank if flag else 0 for operand, flag in zip(operands, tensors)]
    attributes = {
        "indexing_maps": mlir.ArrayAttr.get(
            [mlir.AffineMapAttr.get(mlir.AffineMap.get(0, 0, [zero] * rank)) for rank in ranks]
        ),
        "iterator_types": mlir.ArrayAttr.get([]),
        "operandSegmentSizes": emit.segments(count, len(operands) - count),
        KERNEL: call.attributes["callee"],
    }
    types = [operand.type.element_type if flag else operand.type for operand, flag in zip(operands, tensors)]
    with call.location, mlir.InsertionPoint(call):
        new = emit.create("linalg.generic", operands, [r.type for r in call.results], attributes, regions=1)
        body = emit.block(new, types)
        with mlir.InsertionPoint(body):
            inputs, inits = list(body.arguments)[:count], list(body.arguments)[count:]
            emit.create("linalg.yield", [combined(inputs, out, flag) for out, flag in zip(inits, read)])
    replace_op(call, *new.results)


def combined(inputs: list[mlir.Value], out: mlir.Value, is_read: bool) -> mlir.Value:
    """A value that depends on all inputs: upstream considers an input as read only if the body uses it."""
    sources = [*inputs, out] if is_read else inputs
    if not sources:
        return emit.zero(out.type)
    return emit.create("builtin.unrealized_conversion_cast", sources, [out.type]).results[0]


def is_read(argument: mlir.Value) -> bool:
    """True if a kernel reads the init of a result before it writes there."""
    return any(not writes_over(use.owner.operation, use.operand_number) for use in argument.uses)


def writes_over(op: mlir.Operation, position: int) -> bool:
    """True if an operation overwrites its operand at `position` as a whole, without reading it."""
    if op.name == "func.return":
        return True
    if not op.name.startswith("linalg.") or position < len(op.operands) - len(op.results):
        return False
    return not any(True for _ in op.regions[0].blocks[0].arguments[position].uses)


def replace_proxies_by_launches(main: mlir.Operation) -> None:
    """Replace the proxies, now on memrefs, by calls of the functions that launch the kernels."""
    for op in [op for op in named_operations(main, ("linalg.generic",)) if KERNEL in op.attributes]:
        _, init_count = op.attributes["operandSegmentSizes"]
        first_out = len(op.operands) - init_count
        with op.location, mlir.InsertionPoint(op):
            operands, back = [], []
            for position, operand in enumerate(op.operands):
                whole = contiguous(operand)
                if whole is not None:
                    emit.create("memref.copy", [operand, whole])
                    back += [(whole, operand)] if position >= first_out else []
                operands.append(operand if whole is None else whole)
            name = mlir.FlatSymbolRefAttr.get(mlir.FlatSymbolRefAttr(op.attributes[KERNEL]).value + LAUNCH)
            emit.create("func.call", operands, (), {"callee": name, KERNEL: mlir.UnitAttr.get()})
            for whole, operand in back:
                emit.create("memref.copy", [whole, operand])
        op.erase()


def contiguous(operand: mlir.Value) -> mlir.Value | None:
    """A contiguous buffer for a strided memref; None for a contiguous memref, and for scalars."""
    kind = operand.type
    if not isinstance(kind, mlir.MemRefType):
        return None
    plain = mlir.MemRefType.get(kind.shape, kind.element_type)
    if plain == kind:
        return None
    attributes = {"operandSegmentSizes": emit.segments(0, 0), "alignment": emit.i64(64)}
    return emit.create("memref.alloc", (), [plain], attributes).results[0]
