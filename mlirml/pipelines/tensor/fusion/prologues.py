"""Elementwise operations that a matrix-vector product should compute as a prologue, instead of being fused."""

from __future__ import annotations

import math

from mlirml.codegen.cpu.contract.problem import CONTRACTIONS, match_contraction
from mlirml.ir.bindings import mlir
from mlirml.passes import NoMatch
from mlirml.pipelines.tensor.fusion.nodes import Node, is_permutation

_LEAST_ELEMENTS = 1 << 14
"""A smaller matrix stays in the cache."""


def full_input(node: Node) -> mlir.Value | None:
    """The only input of full size that an elementwise operation reads; None for several or none."""
    full = [item.value for item in node.inputs if is_permutation(item.map, node.rank)]
    return full[0] if len(full) == 1 and node.rank == 2 else None


def scales_a_matrix(node: Node) -> bool:
    """True if the result of a node is a matrix whose only use is a matrix-vector product along its rows.

    The kernel for it reads each element once, along the rows, and can compute the node as a prologue.
    """
    if not node.is_elementwise or len(node.outs) != 1 or math.prod(node.sizes) < _LEAST_ELEMENTS:
        return False
    result = node.outs[0].result
    uses = list(result.uses)
    if len(uses) != 1 or uses[0].owner.name not in CONTRACTIONS:
        return False
    user = uses[0].owner.operation
    try:
        maps = match_contraction(user).maps
    except NoMatch:
        return False
    number = list(user.operands).index(result)
    if number > 1:
        return False
    matrix, vector = maps[number], maps[1 - number]
    return len(matrix) == 2 and vector == matrix[1:] and maps[2] == matrix[:1]
