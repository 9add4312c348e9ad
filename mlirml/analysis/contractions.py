"""The named contractions of linalg, as data: imports nothing of MLIR."""

from __future__ import annotations

BY_MAPS = {
    ("i", "i", ""): "linalg.dot",
    ("ij", "j", "i"): "linalg.matvec",
    ("i", "ij", "j"): "linalg.vecmat",
    ("ij", "jk", "ik"): "linalg.matmul",
    ("hij", "hjk", "hik"): "linalg.batch_matmul",
}
"""The named contraction of the loops that index both operands and the result, in einsum's letters."""

CONTRACTIONS = frozenset(
    {*BY_MAPS.values(), "linalg.batch_matvec", "linalg.batch_vecmat", "linalg.contract"},
)
"""Sums of products of two operands over loops that index both."""
