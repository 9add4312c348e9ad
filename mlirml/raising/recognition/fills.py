"""Fills: a generic that yields one scalar everywhere is `linalg.fill`, which kernels recognise as an init.

Before:
    %z = linalg.generic {maps = [(i, j) -> (i, j)]} outs(%c : tensor<4x6xf32>) { linalg.yield %zero : f32 }
After:
    %z = linalg.fill ins(%zero : f32) outs(%c : tensor<4x6xf32>)
"""

from __future__ import annotations

from mlirml.ir import emit
from mlirml.ir.bindings import defining_op, mlir
from mlirml.passes import NoMatch
from mlirml.raising.recognition.nest import Nest


def match_fill(nest: Nest) -> mlir.Value:
    """The scalar that a generic yields everywhere; raises `NoMatch` for other generics."""
    if len(nest.inits) != 1 or any(nest.reduction) or not nest.maps[-1].is_permutation:
        raise NoMatch("it does not write each element once")
    (scalar,) = nest.yields
    op = nest.inner(scalar)
    if nest.number(scalar) is not None or (op is not None and op.name != "arith.constant"):
        raise NoMatch("it computes what it writes")
    return scalar


def build_fill(nest: Nest, scalar: mlir.Value) -> mlir.Value:
    """`linalg.fill` of the output."""
    op = nest.inner(scalar)
    if op is not None:
        constant = defining_op(scalar)
        assert constant is not None
        scalar = emit.constant(constant.attributes["value"])
    return emit.fill(scalar, nest.inits[0]).results[0]
