"""Widen products of two slices of a matrix to the product of all their columns with themselves, which is symmetric.

Before:
    %a = tensor.extract_slice %x[0, 0] [600, 499] [1, 1]
    %b = tensor.extract_slice %x[0, 1] [600, 499] [1, 1]
    %r = linalg.contract indexing_maps = [(m, n, k) -> (k, m), (m, n, k) -> (k, n), (m, n, k) -> (m, n)]
      ins(%a, %b : tensor<600x499xf64>, tensor<600x499xf64>) outs(%zero)
After:
    %s = linalg.contract indexing_maps = [(m, n, k) -> (k, m), (m, n, k) -> (k, n), (m, n, k) -> (m, n)]
      ins(%x, %x : tensor<600x500xf64>, tensor<600x500xf64>) outs(%zeros)
    %r = tensor.extract_slice %s[0, 1] [499, 499] [1, 1]

Kernels compute one half of a symmetric product and mirror it. Correlations that a loop computes, each column with those
after it, are such products.
"""

from __future__ import annotations

from contextlib import suppress

from mlirml.analysis.contractions import CONTRACTIONS
from mlirml.analysis.structured import indexing_maps
from mlirml.codegen.cpu.contract.problem import match_contraction
from mlirml.ir import emit
from mlirml.ir.bindings import defining_op, mlir, named_operations, replace_op
from mlirml.passes import NoMatch, Pass, register
from mlirml.passes.presence import ANY_CONTRACTION, every

_LEAST, _MOST = 96, 0.75
"""Columns that are worth mirroring, and the part of the multiplications that may be left."""


@register(when=every(ANY_CONTRACTION, ("tensor.extract_slice",)), optional=True)
class WidenProductsPass(Pass):
    """Compute the product of slices of a matrix as a part of a symmetric product."""

    def run(self, module: mlir.Operation) -> None:
        for op in named_operations(module, CONTRACTIONS):
            with suppress(NoMatch):
                widen(op)


def widen(op: mlir.Operation) -> None:
    """Replace one product; raises `NoMatch`."""
    if len(op.results) != 1:
        raise NoMatch("not on tensors")
    maps = match_contraction(op).maps
    init, slices = defining_op(op.operands[2]), [defining_op(value) for value in list(op.operands)[:2]]
    if list(map(len, maps)) != [2, 2, 2] or init is None or init.name != "linalg.fill":
        raise NoMatch("not a product of matrices")
    (m, n), a, b = maps[2], maps[0], maps[1]
    if m not in a or tuple(n if d == m else d for d in a) != b:
        raise NoMatch("not a product with a transpose")
    column = a.index(m)
    (source, first), (other, second) = (_columns(one, column) for one in slices)
    if source != other or first == second:
        raise NoMatch("not of one matrix")
    low, high = min(first[0], second[0]), max(sum(first), sum(second))
    if high - low < _LEAST or (high - low) ** 2 > 2 * _MOST * first[1] * second[1]:
        raise NoMatch("it would take longer")
    element = mlir.ShapedType(op.results[0].type).element_type
    sizes = mlir.ShapedType(source.type).shape
    with op.location, mlir.InsertionPoint(op):
        if (low, high) != (0, sizes[column]):
            offsets, shape = [0, 0], list(sizes)
            offsets[column], shape[column] = low, high - low
            source = emit.extract_slice(source, offsets, shape, shape)
        out = emit.empty(mlir.RankedTensorType.get([high - low] * 2, element))
        zero = emit.fill(init.operands[0], out).results[0]
        body = op.regions[0].blocks[0]
        attributes = {"cast": op.attributes["cast"]} if "cast" in op.attributes else {}
        operands = [source, source, zero]
        whole = emit.contract(operands, indexing_maps(op), lambda xs: emit.body_again(body, xs)[0], attributes)
        shape = [first[1], second[1]]
        part = emit.extract_slice(whole, [first[0] - low, second[0] - low], shape, shape)
    replace_op(op, part)


def _columns(op: mlir.Operation | None, column: int) -> tuple[mlir.Value, tuple[int, int]]:
    """The matrix of which a slice has all rows; the first of the columns, and their number. Raises `NoMatch`."""
    if op is None or op.name != "tensor.extract_slice" or len(op.operands) != 1:
        raise NoMatch("no slice with known bounds")
    shape = mlir.ShapedType(op.operands[0].type).shape
    offsets, sizes, strides = (list(op.attributes[f"static_{name}"]) for name in ("offsets", "sizes", "strides"))
    if len(shape) != 2 or strides != [1, 1] or (offsets[1 - column], sizes[1 - column]) != (0, shape[1 - column]):
        raise NoMatch("no slice of columns")
    return op.operands[0], (offsets[column], sizes[column])
