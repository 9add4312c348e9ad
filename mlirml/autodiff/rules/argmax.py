"""Reductions that keep a value together with the place where it was found, as loops that look for the largest do.

    %v, %p = linalg.generic ... {
    ^bb0(%in: f64, %best: f64, %at: i64):
      %0 = arith.cmpf ogt, %in, %best
      %1 = arith.select %0, %in, %best
      %2 = arith.select %0, %place, %at      // %place is a linalg.index
      linalg.yield %1, %2
    }

The value changes as the term at the place does, or, where nothing was found, as what the reduction started from.
"""

from __future__ import annotations

from mlirml.autodiff import tensors
from mlirml.autodiff.arithmetic import number, select
from mlirml.autodiff.structured import Read, Structured, dims_of
from mlirml.core.dataclass import dataclass
from mlirml.ir import emit
from mlirml.ir.bindings import block_ops, defining_op, mlir


@dataclass(frozen=True)
class Found:
    """The term of the body that becomes the value, its place in the body, and the number of the result with it."""

    term: mlir.Value
    place: mlir.Value
    result: int


def match_found(s: Structured, value: int) -> Found | None:
    """How the result `value` of a reduction is found; None where it is something else."""
    chosen = _chosen(s, value)
    if chosen is None:
        return None
    summed = set(range(len(s.sizes))) - dims_of(s.out_map)
    for result in range(len(s.inits)):
        other = _chosen(s, result)
        if result == value or other is None or other.operands[0] != chosen.operands[0]:
            continue
        place = other.operands[1]
        if _dim(place) in summed and len(summed) == 1 and s.inits[result].map == s.inits[value].map:
            return Found(chosen.operands[1], place, result)
    return None


def _chosen(s: Structured, result: int) -> mlir.Operation | None:
    """The choice between a new value of a result and the one it has."""
    op = defining_op(s.yields[result])
    if op is None or op.name != "arith.select" or op.operands[2] != s.argument(len(s.inputs) + result):
        return None
    return op


def _dim(place: mlir.Value) -> int | None:
    """The dimension that a number of the body is the index of."""
    op = defining_op(place)
    while op is not None and op.name in ("arith.index_cast", "arith.extsi", "arith.trunci"):
        op = defining_op(op.operands[0])
    return int(mlir.IntegerAttr(op.attributes["dim"]).value) if op is not None and op.name == "linalg.index" else None


def place_of(s: Structured, found: Found) -> Read:
    """The places that the reduction gives."""
    return Read(s.op.results[found.result], s.inits[found.result].map)


def where_found(here: mlir.Value, place: mlir.Value, value: mlir.Value) -> mlir.Value:
    """`value` in a body where `here`, the place there, is the one that was found; zero elsewhere."""
    return select(emit.compare("eq", here, place), value, number(value, 0))


def where_kept(s: Structured, found: Found, value: mlir.Value) -> mlir.Value | None:
    """A tensor like the result where nothing was found; zeros elsewhere. None where that cannot be told."""
    start = _constant(s.inits[found.result].tensor)
    if start is None or start >= 0:
        return None
    places = s.op.results[found.result]

    def kept(xs: list[mlir.Value]) -> mlir.Value:
        nothing = emit.compare("eq", xs[1], emit.number(xs[1].type, start))
        return select(nothing, xs[0], number(xs[0], 0))

    return tensors.elementwise([value, places], value.type, kept)


def _constant(tensor: mlir.Value) -> int | None:
    """The integer that all elements of a tensor are; None where it is not known."""
    op = defining_op(tensor)
    if op is None:
        return None
    if op.name == "linalg.fill" or (op.name == "tensor.from_elements" and len(op.operands) == 1):
        return _number(op.operands[0])
    if op.name == "linalg.generic" and len(op.results) == 1:  # repeated for a batch
        block = op.regions[0].blocks[0]
        (given,) = block_ops(block)[-1].operands
        return _constant(op.operands[0]) if given == block.arguments[0] else _number(given)
    return None


def _number(value: mlir.Value) -> int | None:
    op = defining_op(value)
    return (
        int(mlir.IntegerAttr(op.attributes["value"]).value) if op is not None and op.name == "arith.constant" else None
    )
