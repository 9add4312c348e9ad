"""Structured operations read: their indexing maps, and the loops whose index a body uses."""

from __future__ import annotations

from mlirml.ir.bindings import defining_op, linalg, mlir, seen_through

INDEX_CASTS = ("arith.index_cast", "arith.index_castui", "arith.extsi", "arith.trunci")
"""Conversions of an index, which is not negative and small."""
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


def index_dim(value: mlir.Value) -> int | None:
    """The dimension whose index a value of a body is, by conversions of integers; None for other values."""
    op = defining_op(seen_through(value, INDEX_CASTS))
    return int(mlir.IntegerAttr(op.attributes["dim"]).value) if op is not None and op.name == "linalg.index" else None
