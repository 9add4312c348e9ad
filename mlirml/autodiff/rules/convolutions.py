"""The cotangent of the image of a convolution, in gather form: another convolution.

    x[i] is multiplied with w[k] in y[i - k], so that  dx[i] = sum over k of dy[i - k] w[k]
                                                = sum over k' of pad(dy)[i + k'] w[last - k']

The kernel is flipped along its spatial dimensions, filters and channels are exchanged, and the cotangent is padded by
the extent of the kernel. Strides larger than 1 would need zeros between the elements of dy; those convolutions are
transposed one kernel position at a time (`rules/linalg.py`).
"""

from __future__ import annotations

from mlirml.autodiff import tensors
from mlirml.autodiff.structured import Structured
from mlirml.ir import emit
from mlirml.ir.bindings import mlir

_SPATIAL = "dhw"


def image_cotangent(s: Structured, cotangent: mlir.Value) -> mlir.Value | None:
    """The cotangent of operand 0; None for operations other than named convolutions of stride 1."""
    name = s.op.name.removeprefix("linalg.")
    if not name.startswith(("conv_", "depthwise_conv_")) or any(n != 1 for n in _numbers(s.op, "strides")):
        return None
    image_dims, kernel_dims = name.split("_")[-2:]
    image, kernel = (read.tensor for read in s.inputs)
    if len({value.type.element_type for value in (image, kernel, cotangent)}) > 1 or len(s.body) != 2:
        return None
    dilations = _numbers(s.op, "dilations")
    kept = [d for d in image_dims if d in _SPATIAL]
    reach = {
        d: dilation * (kernel.type.shape[kernel_dims.index(d)] - 1) for d, dilation in zip(kept, dilations, strict=True)
    }
    gaps = {
        d: image.type.shape[i] + reach[d] - cotangent.type.shape[i] for i, d in enumerate(image_dims) if d in _SPATIAL
    }
    padded = _padded(cotangent, [(reach.get(d, 0), gaps.get(d, 0) - reach.get(d, 0)) for d in image_dims])
    flipped = _flipped(kernel, kernel_dims)
    attributes = {n: s.op.attributes[n] for n in s.op.attributes if n in ("strides", "dilations")}
    attributes["operandSegmentSizes"] = emit.segments(2, 1)
    out = tensors.zeros_like(image)
    op = emit.create(s.op.name, [padded, flipped, out], [image.type], attributes, regions=1)
    inner = emit.block(op, [image.type.element_type] * 3)
    with mlir.InsertionPoint(inner):
        emit.create("linalg.yield", emit.body_again(s.block, list(inner.arguments)))
    return op.results[0]


def _numbers(op: mlir.Operation, name: str) -> list[int]:
    if name not in op.attributes:
        return [1] * sum(d in _SPATIAL for d in op.name.split("_")[-2])
    return [int(n) for n in mlir.DenseIntElementsAttr(op.attributes[name])]


def _padded(value: mlir.Value, amounts: list[tuple[int, int]]) -> mlir.Value:
    if not any(low or high for low, high in amounts):
        return value
    type_ = value.type
    shape = [low + n + high for n, (low, high) in zip(type_.shape, amounts)]
    attributes = {
        "static_low": mlir.DenseI64ArrayAttr.get([low for low, _ in amounts]),
        "static_high": mlir.DenseI64ArrayAttr.get([high for _, high in amounts]),
        "operandSegmentSizes": emit.segments(1, 0, 0),
    }
    zero = emit.number(type_.element_type, 0)
    op = emit.create("tensor.pad", [value], [tensors.type_like(type_, shape)], attributes, regions=1)
    inner = emit.block(op, [mlir.IndexType.get()] * len(shape))
    with mlir.InsertionPoint(inner):
        emit.create("tensor.yield", [zero])
    return op.results[0]


def _flipped(kernel: mlir.Value, dims: str) -> mlir.Value:
    """The kernel flipped along its spatial dimensions, with filters and channels exchanged."""
    other = {"f": "c", "c": "f"} if "f" in dims else {}
    order = [dims.index(other.get(d, d)) for d in dims]
    shape = [kernel.type.shape[i] for i in order]

    def body(_: list[mlir.Value]) -> list[mlir.Value]:
        position: list[mlir.Value] = [None] * len(dims)  # of the kernel
        for new, old in enumerate(order):
            index = emit.value("linalg.index", (), mlir.IndexType.get(), dim=emit.i64(new))
            if dims[new] in _SPATIAL:
                index = emit.same_type("arith.subi", emit.index(shape[new] - 1), index)
            position[old] = index
        return [emit.value("tensor.extract", [kernel, *position], kernel.type.element_type)]

    rank = len(dims)
    type_ = tensors.type_like(kernel.type, shape)
    out = emit.empty(type_)
    return emit.generic([], [out], [mlir.AffineMap.get_identity(rank)], ["parallel"] * rank, body).results[0]
