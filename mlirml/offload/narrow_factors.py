"""Narrow factors: f16 and bf16 that are extended before a product are extended in its body.

Before:
    %a = linalg.generic ins(%x : tensor<8x64x28x28xf16>) outs(...) { arith.extf }
    %p = tensor.pad %a low[0, 0, 1, 1] high[0, 0, 1, 1] { tensor.yield %zero : f32 }
    %b = linalg.generic ins(%w : tensor<64x64x3x3xf16>) outs(...) { arith.extf }
    %y = linalg.conv_2d_nchw_fchw ins(%p, %b : tensor<8x64x30x30xf32>, tensor<64x64x3x3xf32>) outs(...)
After:
    %p = tensor.pad %x low[0, 0, 1, 1] high[0, 0, 1, 1] { tensor.yield %zero : f16 }
    %y = linalg.conv_2d_nchw_fchw ins(%p, %w : tensor<8x64x30x30xf16>, tensor<64x64x3x3xf16>) outs(...)

The numbers are the same. Kernels read half of the bytes, and tensor cores multiply the factors as they are.
"""

from __future__ import annotations

from contextlib import suppress

from mlirml.analysis.contractions import CONTRACTIONS
from mlirml.analysis.structured import indexing_maps, is_parallel
from mlirml.analysis.traits import RESHAPES
from mlirml.ir import emit
from mlirml.ir.bindings import block_ops, defining_op, mlir, operations
from mlirml.ir.erase import erase_unused
from mlirml.passes import NoMatch, Pass, register
from mlirml.passes.presence import ANY_CONTRACTION, ANY_WINDOW

_SMALL = (mlir.F16Type, mlir.BF16Type)


@register(when=(*ANY_CONTRACTION, *ANY_WINDOW), optional=True)
class NarrowFactorsPass(Pass):
    """Multiply small floats that are extended to f32 before a product, or a convolution, as they are."""

    def run(self, module: mlir.Operation) -> None:
        for op in list(operations(module)):
            if op.name in CONTRACTIONS or op.name.startswith(("linalg.conv_", "linalg.depthwise_conv_")):
                with suppress(NoMatch):
                    narrow(op)


def narrow(op: mlir.Operation) -> None:
    """Replace a product by one of small floats; raises NoMatch."""
    if len(op.operands) != 3 or len(op.results) != 1 or not is_f32(op.results[0]):
        raise NoMatch("no product of f32")
    types = {source_type(value) for value in list(op.operands)[:2]}
    if len(types) != 1:
        raise NoMatch("the factors have two types")
    check_body(op)
    with op.location, mlir.InsertionPoint(op):
        factors = [narrowed(value) for value in list(op.operands)[:2]]
        attributes = {name: op.attributes[name] for name in op.attributes if name != "operandSegmentSizes"}
        new = emit.named_contraction(op.name, [*factors, op.operands[2]], multiply_add, attributes)
    op.results[0].replace_all_uses_with(new)
    before = list(op.operands)[:2]
    op.erase()
    erase_unused(before, lambda op: op.name.startswith(("tensor.", "linalg.")))


def is_f32(value: mlir.Value) -> bool:
    """True for a tensor of f32."""
    return isinstance(value.type, mlir.RankedTensorType) and isinstance(value.type.element_type, mlir.F32Type)


def check_body(op: mlir.Operation) -> None:
    """Raise NoMatch if the body of a product does anything but multiply and add."""
    names = [inner.name for inner in block_ops(op.regions[0].blocks[0])]
    if names != ["arith.mulf", "arith.addf", "linalg.yield"]:
        raise NoMatch("another body")


def multiply_add(arguments: list[mlir.Value]) -> mlir.Value:
    """The body of a product of small floats, summed in f32."""
    a, b, total = arguments
    a, b = (emit.value("arith.extf", [value], total.type) for value in (a, b))
    return emit.same_type("arith.addf", total, emit.same_type("arith.mulf", a, b))


def source_type(value: mlir.Value) -> mlir.Type:
    """The type of the small floats that a tensor of f32 has the numbers of; raises NoMatch."""
    op = defining_op(value)
    if op is None or not is_f32(value):
        raise NoMatch("a factor is no f32 that is computed")
    if is_extension(op):
        return op.operands[0].type.element_type
    if op.name == "tensor.pad":
        padding = defining_op(block_ops(op.regions[0].blocks[0])[-1].operands[0])
        if padding is None or padding.name != "arith.constant" or padding.attributes["value"].value != 0:
            raise NoMatch("the padding is not zero")
        return source_type(op.operands[0])
    if op.name in RESHAPES:
        return source_type(op.operands[0])
    raise NoMatch("a factor is computed")


def is_extension(op: mlir.Operation) -> bool:
    """True if an operation extends each element of a tensor of small floats, in the same order."""
    if op.name != "linalg.generic" or len(op.operands) != 2 or not is_parallel(op):
        return False
    source = op.operands[0].type
    names = [inner.name for inner in block_ops(op.regions[0].blocks[0])]
    maps = indexing_maps(op)
    whole = mlir.AffineMap.get_identity(maps[0].n_dims)
    if not isinstance(source, mlir.RankedTensorType) or not isinstance(source.element_type, _SMALL):
        return False
    return names == ["arith.extf", "linalg.yield"] and all(m == whole for m in maps)


def narrowed(value: mlir.Value) -> mlir.Value:
    """The tensor of small floats with the numbers of a tensor of f32."""
    op = defining_op(value)
    assert op is not None
    if is_extension(op):
        return op.operands[0]
    source = narrowed(op.operands[0])
    type_ = mlir.RankedTensorType.get(value.type.shape, source.type.element_type)
    attributes = {name: op.attributes[name] for name in op.attributes}
    if op.name in RESHAPES:
        return emit.value(op.name, [source, *list(op.operands)[1:]], type_, **attributes)
    pad = emit.create("tensor.pad", [source, *list(op.operands)[1:]], [type_], attributes, regions=1)
    with mlir.InsertionPoint(emit.block(pad, [mlir.IndexType.get()] * len(type_.shape))):
        emit.create("tensor.yield", [emit.number(type_.element_type, 0)])
    return pad.results[0]
