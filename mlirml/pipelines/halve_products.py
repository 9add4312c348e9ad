"""Halve products: of a matrix times its own transpose only blocks on and below the diagonal are computed.

Before:
    %c = linalg.contract indexing_maps = [(i, j, k) -> (i, k), (i, j, k) -> (j, k), (i, j, k) -> (i, j)]
      ins(%a, %a : tensor<256x500xf64>, tensor<256x500xf64>) outs(%zeros : tensor<256x256xf64>)
After:
    %a0 = tensor.extract_slice %a[0, 0] [128, 500] [1, 1]
    %c0 = linalg.contract ins(%a0, %a0 : tensor<128x500xf64>, tensor<128x500xf64>) outs(%zeros0 : tensor<128x128xf64>)
    %a1 = tensor.extract_slice %a[128, 0] [128, 500] [1, 1]
    %c1 = linalg.contract ins(%a1, %a : tensor<128x500xf64>, tensor<256x500xf64>) outs(%zeros1 : tensor<128x256xf64>)
    %left = tensor.extract_slice %c1[0, 0] [128, 128] [1, 1]
    %above = linalg.transpose ins(%left : tensor<128x128xf64>) outs(%e : tensor<128x128xf64>) permutation = [1, 0]
    %c = // %c0, %above and %c1 stored into an empty tensor

The blocks above the diagonal are those below it, transposed. It takes from 3/4 to 5/8 of the multiplications, as there
are two to four blocks of rows.
"""

from __future__ import annotations

import itertools
import math

from mlirml.dataclass import dataclass
from mlirml.dialects import emit
from mlirml.ir import defining_op, mlir, named_operations
from mlirml.passes import NoMatch, Pass, register
from mlirml.pipelines.schedules.contract import CONTRACTIONS, Contraction, match_contraction

LEAST_ROWS = 96
LEAST_WORK = 10_000_000
"""Smaller products are left as they are: their blocks would be slower, and as many kernels."""
_ROWS = 192
_MOST_BLOCKS = 4


@register
@dataclass(frozen=True)
class HalveProductsPass(Pass):
    """Compute the products of matrices with their own transposes by blocks on and below the diagonal."""

    name = "mlirml-halve-products"

    def run(self, module: mlir.Operation) -> None:
        for op in named_operations(module, CONTRACTIONS):
            try:
                contraction = match_square(op)
            except NoMatch:
                continue
            with op.location, mlir.InsertionPoint(op):
                op.results[0].replace_all_uses_with(build_blocks(op, contraction))
            op.erase()


def match_square(op: mlir.Operation) -> Contraction:
    """A contraction of two dims of a matrix with itself, from zero; raises `NoMatch`."""
    if len(op.results) != 1 or op.operands[0] != op.operands[1] or "mlirml.schedule" in op.attributes:
        raise NoMatch("two operands")
    contraction = match_contraction(op)
    a, b, out = contraction.maps
    if len(a) != 2 or len(out) != 2 or len(contraction.sizes) != 3:
        raise NoMatch("not of matrices")
    place = next((place for place in (0, 1) if a[place] != b[place]), None)
    if place is None or a[1 - place] != b[1 - place] or {a[place], b[place]} != set(out):
        raise NoMatch("not with its transpose")
    if contraction.sizes[out[0]] < LEAST_ROWS or math.prod(contraction.sizes) < LEAST_WORK:
        raise NoMatch("small")
    init = defining_op(op.operands[2])
    if init is None or init.name != "linalg.fill" or contraction.operands[0] != contraction.operands[1]:
        raise NoMatch("not of equal factors, from a number")
    return contraction


def build_blocks(op: mlir.Operation, contraction: Contraction) -> mlir.Value:
    """The product, block of rows by block of rows."""
    source, _, init = op.operands
    a, b, out = contraction.maps
    rows = a.index(out[0]) if out[0] in a else b.index(out[0])
    first, second = (a, b) if out[0] in a else (b, a)
    size, shape = contraction.sizes[out[0]], list(mlir.ShapedType(source.type).shape)
    element = mlir.ShapedType(init.type).element_type
    scalar = defining_op(init).operands[0]  # type: ignore[union-attr]
    count = min(_MOST_BLOCKS, max(2, size // _ROWS))
    edges = [size * number // count for number in range(count + 1)]
    maps = [mlir.AffineMap.get(3, 0, [mlir.AffineDimExpr.get(d) for d in dims]) for dims in (first, second, out)]
    kept = {name: op.attributes[name] for name in ("cast",) if name in op.attributes}

    def part(low: int, high: int) -> mlir.Value:
        offsets, sizes = [0, 0], list(shape)
        offsets[rows], sizes[rows] = low, high - low
        return source if sizes == shape else emit.extract_slice(source, offsets, sizes, sizes)

    def tensor(*sizes: int) -> mlir.Value:
        return emit.empty(mlir.RankedTensorType.get(list(sizes), element))

    result = emit.empty(init.type)
    for low, high in itertools.pairwise(edges):
        zeros = emit.fill(scalar, tensor(high - low, high)).results[0]
        operands = [part(low, high), part(0, high), zeros]
        block = emit.contract(operands, maps, lambda xs: emit.body_again(op.regions[0].blocks[0], xs)[0], kept)
        if low:
            left = emit.extract_slice(block, [0, 0], [high - low, low], [high - low, low])
            above = transposed(left, tensor(low, high - low))
            result = emit.insert_slice(above, result, [0, low])
        result = emit.insert_slice(block, result, [low, 0])
    return result


def transposed(matrix: mlir.Value, out: mlir.Value) -> mlir.Value:
    """The transpose of a matrix, as an elementwise operation."""
    dims = [mlir.AffineDimExpr.get(0), mlir.AffineDimExpr.get(1)]
    maps = [mlir.AffineMap.get(2, 0, dims[::-1]), mlir.AffineMap.get(2, 0, dims)]
    generic: mlir.Value = emit.generic([matrix], [out], maps, ["parallel"] * 2, lambda xs: [xs[0]]).results[0]
    return generic
