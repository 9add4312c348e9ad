"""Structured operations read: their indexing maps."""

from __future__ import annotations

from mlirml.ir.bindings import linalg, mlir

_MEMO = "linalg.memoized_indexing_maps"


def indexing_maps(op: mlir.Operation) -> list[mlir.AffineMap]:
    """The maps of a structured operation, without leaving the attribute that upstream memoizes them in."""
    if op.name in ("linalg.generic", "linalg.contract"):
        return [mlir.AffineMapAttr(entry).value for entry in op.attributes["indexing_maps"]]
    had = _MEMO in op.attributes
    maps = [attribute.value for attribute in linalg.get_indexing_maps(op)]
    if not had and _MEMO in op.attributes:
        del op.attributes[_MEMO]
    return maps
