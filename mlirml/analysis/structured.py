"""Structured operations read: their indexing maps, the trip counts and iterator types of their loops, their indices."""

from __future__ import annotations

from collections.abc import Sequence

from mlirml.ir.bindings import defining_op, linalg, mlir, seen_through

INDEX_CONVERSIONS = ("arith.index_cast", "arith.index_castui", "arith.extsi", "arith.trunci")
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


def reductions_of(op: mlir.Operation) -> tuple[bool, ...]:
    """For each loop of a structured operation True if it is a reduction: in a named one, if it indexes no result."""
    if "iterator_types" in op.attributes:
        return tuple("reduction" in str(kind) for kind in op.attributes["iterator_types"])
    out = indexing_maps(op)[-1]
    kept = {e.position for e in out.results if isinstance(e, mlir.AffineDimExpr)}
    return tuple(d not in kept for d in range(out.n_dims))


def is_parallel(op: mlir.Operation) -> bool:
    """True if no loop of a structured operation is a reduction."""
    if "iterator_types" in op.attributes:
        return "reduction" not in str(op.attributes["iterator_types"])
    return not any(reductions_of(op))


def sizes_of(op: mlir.Operation, maps: Sequence[mlir.AffineMap] | None = None) -> list[int]:
    """The trip count of each loop; -1 where no dimension of known size is indexed by the loop alone."""
    maps = indexing_maps(op) if maps is None else maps
    sizes = [-1] * maps[0].n_dims
    for operand, map_ in zip(op.operands, maps, strict=True):
        for expression, size in zip(map_.results, operand.type.shape if map_.results else (), strict=True):
            if isinstance(expression, mlir.AffineDimExpr) and size >= 0:
                sizes[expression.position] = size
    return sizes


def dims_in(expression: mlir.AffineExpr) -> frozenset[int]:
    """The dimensions in an expression of an affine map."""
    if isinstance(expression, mlir.AffineDimExpr):
        return frozenset([expression.position])
    if isinstance(expression, mlir.AffineConstantExpr | mlir.AffineSymbolExpr):
        return frozenset()
    return dims_in(expression.lhs) | dims_in(expression.rhs)


def dims_of(map_: mlir.AffineMap) -> frozenset[int]:
    """The dimensions in the results of an affine map."""
    return frozenset[int]().union(*map(dims_in, map_.results))


def index_dim(value: mlir.Value) -> int | None:
    """The dimension whose index a value of a body is, by conversions of integers; None for other values."""
    op = defining_op(seen_through(value, INDEX_CONVERSIONS))
    return int(mlir.IntegerAttr(op.attributes["dim"]).value) if op is not None and op.name == "linalg.index" else None


def map_of(rank: int, dims: Sequence[int]) -> mlir.AffineMap:
    """The map of `rank` loops to some of them."""
    return mlir.AffineMap.get(rank, 0, [mlir.AffineDimExpr.get(d) for d in dims])


def groups_of(op: mlir.Operation) -> list[list[int]]:
    """For each collapsed dimension of a `collapse_shape` or `expand_shape` the expanded dimensions."""
    return [[dim.value for dim in group] for group in op.attributes["reassociation"]]


def is_contraction(op: mlir.Operation) -> bool:
    """True for sums of products of two operands, convolutions too."""
    if op.name == "linalg.fill":
        return False
    return bool(linalg.isa_contraction_op(op) or linalg.isa_convolution_op(op)) or op.name == "linalg.contract"
