"""Convert factors: products of narrow floats that are added up as f32 become products of f32, converted before.

Before:
    %c = linalg.matmul ins(%a, %b : tensor<262147x64xf16>, tensor<64x40xf16>) outs(%zero : tensor<262147x40xf32>)
After:
    %a32 = linalg.generic ins(%a) { arith.extf }
    %b32 = linalg.generic ins(%b) { arith.extf }
    %c = linalg.matmul ins(%a32, %b32 : tensor<262147x64xf32>, tensor<64x40xf32>) outs(%zero : tensor<262147x40xf32>)

The products are the same numbers. The kernels of `mlirml-lower-sized-contract` are for operands of one type.
"""

from __future__ import annotations

from mlirml.analysis.contractions import CONTRACTIONS
from mlirml.ir import emit
from mlirml.ir.bindings import block_ops, mlir, named_operations
from mlirml.passes import Pass, register
from mlirml.passes.presence import ANY_CONTRACTION

_BODY = ["arith.addf", "arith.extf", "arith.extf", "arith.mulf", "linalg.yield"]


@register(when=ANY_CONTRACTION)
class ConvertFactorsPass(Pass):
    """Convert the factors of products of narrow floats."""

    def run(self, module: mlir.Operation) -> None:
        for op in named_operations(module, CONTRACTIONS):
            if not is_narrow(op):
                continue
            with op.location, mlir.InsertionPoint(op):
                op.results[0].replace_all_uses_with(with_wide_factors(op))
            op.erase()


def is_narrow(op: mlir.Operation) -> bool:
    """True for a sum of products, in f32, of tensors of narrower floats."""
    if not len(op.results) or sorted(inner.name for inner in block_ops(op.regions[0].blocks[0])) != _BODY:
        return False
    *factors, total = (value.type.element_type for value in op.operands)
    return str(total) == "f32" and all(str(factor) in ("f16", "bf16") for factor in factors)


def with_wide_factors(op: mlir.Operation) -> mlir.Value:
    """The product of the converted factors."""
    *factors, total = list(op.operands)
    wide = [converted(factor, total.type.element_type) for factor in factors]
    kept = {name: op.attributes[name] for name in ("indexing_maps",) if name in op.attributes}

    def body(arguments: list[mlir.Value]) -> mlir.Value:
        x, y, before = arguments
        return emit.same_type("arith.addf", before, emit.same_type("arith.mulf", x, y))

    return emit.named_contraction(op.name, [*wide, total], body, kept)


def converted(factor: mlir.Value, element: mlir.Type) -> mlir.Value:
    """A tensor with its elements in a wider type."""
    type_ = mlir.RankedTensorType.get(factor.type.shape, element)
    maps = [mlir.AffineMap.get_identity(factor.type.rank)] * 2
    iterators = ["parallel"] * factor.type.rank
    op = emit.generic(
        [factor], [emit.empty(type_)], maps, iterators, lambda x: [emit.value("arith.extf", x[:1], element)]
    )
    return op.results[0]
