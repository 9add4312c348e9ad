"""Pushforwards of operations that move elements: the same operation on the tangents."""

from __future__ import annotations

from mlirml.autodiff import tensors
from mlirml.autodiff.arithmetic import is_float
from mlirml.autodiff.forward import Push, pushforward
from mlirml.autodiff.rules.shapes import whole_order
from mlirml.ir import emit
from mlirml.ir.bindings import mlir


@pushforward(
    "tensor.extract_slice", "tensor.insert_slice", "tensor.extract", "tensor.insert", "tensor.from_elements",
    "tensor.expand_shape", "tensor.collapse_shape", "tensor.cast", "mlirml.independent", "mlirml.again_input",
    "mlirml.again_output", "mlirml.barrier",
)  # fmt: skip
def same(push: Push, op: mlir.Operation) -> None:
    """Operations that are linear in all of their floats."""
    operands = [push.of(x) if is_float(x.type) else x for x in op.operands]
    attributes = {name: op.attributes[name] for name in op.attributes}
    push.tangents[op.results[0]] = emit.create(op.name, operands, [op.results[0].type], attributes).results[0]


@pushforward("mlirml.custom_input", "mlirml.custom_output")
def passed_on(push: Push, op: mlir.Operation) -> None:
    """Forward mode differentiates the function itself; custom cotangents are not used by its tangents."""
    push.tangents[op.results[0]] = push.of(op.operands[0])


@pushforward("tensor.pad")
def pad(push: Push, op: mlir.Operation) -> None:
    """The padding value is constant."""
    tangent, type_ = push.of(op.operands[0]), op.results[0].type
    low = list(mlir.DenseI64ArrayAttr(op.attributes["static_low"]))
    shape = list(tangent.type.shape)
    push.tangents[op.results[0]] = tensors.insert(tangent, tensors.zeros(type_), low, shape, [1] * len(shape))


@pushforward("mlirml.sort")
def sort(push: Push, op: mlir.Operation) -> None:
    """The tangents in the order of the elements."""
    source = op.operands[0]
    shape, rank = list(source.type.shape), len(source.type.shape)
    integers = mlir.RankedTensorType.get(shape, mlir.IntegerType.get_signless(64))
    attributes = whole_order(op)
    order = emit.value("mlirml.argsort", [source, emit.empty(integers)], integers, **attributes)
    tangent = push.of(source)

    def element(xs: list[mlir.Value]) -> mlir.Value:
        type_ = mlir.IndexType.get()
        position = [emit.value("linalg.index", (), type_, dim=emit.i64(d)) for d in range(rank - 1)]
        position.append(emit.value("arith.index_cast", [xs[0]], type_))
        return emit.value("tensor.extract", [tangent, *position], source.type.element_type)

    push.tangents[op.results[0]] = tensors.elementwise([order], source.type, element)
