"""Recognise: generics that compute a named operation become that operation, exactly.

Before:
    %r = linalg.generic {maps = [(i, j, k) -> (i, k), (i, j, k) -> (k, j), (i, j, k) -> (i, j)]}
        ins(%a, %b : tensor<4x5xf32>, tensor<5x6xf32>) outs(%c : tensor<4x6xf32>) {
    ^bb0(%x: f32, %y: f32, %out: f32):
      %0 = arith.mulf %x, %y : f32
      %1 = arith.addf %out, %0 : f32
      linalg.yield %1 : f32
    } -> tensor<4x6xf32>
After:
    %r = linalg.matmul ins(%a, %b : tensor<4x5xf32>, tensor<5x6xf32>) outs(%c : tensor<4x6xf32>)

Each family of operations has a file in `recognition/`. A body that only resembles one is unchanged. The joint result of
several generics, such as a softmax, is named in a remark (`recognition/formulas.py`). (Upstream's
`linalg-specialize-generic-ops` and `linalg-morph-ops` lose a negation around an accumulation: llvm-project #197178.)
"""

from __future__ import annotations

from collections.abc import Callable

from mlirml.analysis.structured import indexing_maps
from mlirml.ir.bindings import block_ops, defining_op, has_op, mlir, operations, replace_op
from mlirml.passes import NoMatch, Pass, register
from mlirml.raising.nests.find_loops import ORDER, RAISED
from mlirml.raising.nests.remarks import remark
from mlirml.raising.recognition.contract import build_contraction, is_plain, match_contraction
from mlirml.raising.recognition.convolve import build_convolution, match_convolution
from mlirml.raising.recognition.extreme import build_extreme, describe_extreme, match_extreme
from mlirml.raising.recognition.fills import build_fill, match_fill
from mlirml.raising.recognition.formulas import name_formulas
from mlirml.raising.recognition.masked import build_masked, match_masked
from mlirml.raising.recognition.nest import Nest, read_nest
from mlirml.raising.recognition.pool import build_pooling, match_pooling
from mlirml.raising.recognition.position import build_position, match_position
from mlirml.raising.recognition.scan import match_scan

Built = tuple[list[mlir.Value], str]
Family = Callable[[Nest], Callable[[], Built]]
"""Matches a generic and returns the builder of its replacement; raises `NoMatch`."""


@register(when=("scf.for", "#mlirml.raised"), optional=True)
class RecognisePass(Pass):
    """Name the operations that generics compute; with `only_raised`, only of those that mlirml-raise has made."""

    only_raised: bool = False

    def run(self, module: mlir.Operation) -> None:
        for function in block_ops(module.regions[0].blocks[0]):
            if has_op(function, ("scf.for",)):
                for loop in [op for op in operations(function) if op.name == "scf.for"]:
                    recognise_loop(loop)
            if self.only_raised and RAISED not in function.attributes:
                continue
            generics = [op for op in operations(function) if op.name == "linalg.generic"]
            if RAISED in function.attributes:
                del function.attributes[RAISED]
                for op, name in name_formulas(generics):
                    remark(op, name, "recognised")
            for op in generics:
                recognise(op)


def recognise(op: mlir.Operation) -> None:
    """Replace a generic by the operation that it is, or leave it."""
    try:
        nest = read_nest(op)
    except NoMatch:
        return
    order = mlir.DenseI64ArrayAttr(op.attributes[ORDER]) if ORDER in op.attributes else None
    if order is not None and any(order):
        return
    for family in _FAMILIES if order is None else _SINGLE:
        try:
            build = family(nest)
        except NoMatch:
            continue
        with op.location, mlir.InsertionPoint(op):
            values, what = build()
        if order is not None:  # it is lowered to loops, of which any may be the outermost
            new = defining_op(values[0])
            assert new is not None
            rank = indexing_maps(new)[0].n_dims
            new.attributes[ORDER] = mlir.DenseI64ArrayAttr.get([0] * rank, op.context)
        if what:
            remark(op, what, "recognised")
        replace_op(op, *values)
        return


def recognise_loop(loop: mlir.Operation) -> None:
    """Replace a loop that was not raised by the operation that it is, or name it in a remark."""
    try:
        remark(loop, match_scan(loop), "recognised")
        return
    except NoMatch:
        pass
    try:
        found = match_position(loop)
    except NoMatch:
        return
    with loop.location, mlir.InsertionPoint(loop):
        values = build_position(loop, found)
    remark(loop, found.description, "recognised")
    replace_op(loop, *values)


def _fill(nest: Nest) -> Callable[[], Built]:
    scalar = match_fill(nest)
    return lambda: ([build_fill(nest, scalar)], "")


def _contraction(nest: Nest) -> Callable[[], Built]:
    found = match_contraction(nest)

    def build() -> Built:
        value, name = build_contraction(nest, found)
        return [value], name

    return build


def _product(nest: Nest) -> Callable[[], Built]:
    if not is_plain(nest, match_contraction(nest)):
        raise NoMatch("an operand would be computed before the product")
    return _contraction(nest)


def _convolution(nest: Nest) -> Callable[[], Built]:
    found = match_convolution(nest)

    def build() -> Built:
        value, name = build_convolution(nest, found)
        return [value], name

    return build


def _extreme(nest: Nest) -> Callable[[], Built]:
    found = match_extreme(nest)
    return lambda: ([build_extreme(nest, found)], describe_extreme(nest, found))


def _masked(nest: Nest) -> Callable[[], Built]:
    found = match_masked(nest)
    return lambda: ([build_masked(nest, found)], "")


def _pooling(nest: Nest) -> Callable[[], Built]:
    found = match_pooling(nest)
    return lambda: ([build_pooling(nest, found)], found.description)


_FAMILIES: tuple[Family, ...] = (_fill, _convolution, _contraction, _pooling, _extreme, _masked)
_SINGLE: tuple[Family, ...] = (_fill, _product)
"""The families that build one operation, of any lengths."""
