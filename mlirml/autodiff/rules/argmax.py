"""Argmax reductions: a value together with its index, as loops that look for the largest element do.

    %v, %p = linalg.generic ... {
    ^bb0(%in: f64, %best: f64, %at: i64):
      %0 = arith.cmpf ogt, %in, %best
      %1 = arith.select %0, %in, %best
      %2 = arith.select %0, %index, %at      // %index is a linalg.index
      linalg.yield %1, %2
    }

The value has the derivative of the term at that index, or that of the init where no term was selected.
"""

from __future__ import annotations

from mlirml.analysis.constants import constant_of
from mlirml.autodiff import tensors
from mlirml.autodiff.arithmetic import number, select
from mlirml.autodiff.structured import Read, Structured, dims_of
from mlirml.core.dataclass import dataclass
from mlirml.ir import emit
from mlirml.ir.bindings import block_ops, defining_op, mlir


@dataclass(frozen=True)
class Found:
    """The term of the body that becomes the value, its index in the body, and the number of the index result."""

    term: mlir.Value
    index: mlir.Value
    result: int


def match_found(s: Structured, value: int) -> Found | None:
    """The term and index of the result `value` of an argmax; None for other reductions."""
    chosen = _chosen(s, value)
    if chosen is None:
        return None
    summed = set(range(len(s.sizes))) - dims_of(s.out_map)
    for result in range(len(s.inits)):
        other = _chosen(s, result)
        if result == value or other is None or other.operands[0] != chosen.operands[0]:
            continue
        index = other.operands[1]
        if _dim(index) in summed and len(summed) == 1 and s.inits[result].map == s.inits[value].map:
            return Found(chosen.operands[1], index, result)
    return None


def _chosen(s: Structured, result: int) -> mlir.Operation | None:
    """The `arith.select` between a new value of a result and its accumulator."""
    op = defining_op(s.yields[result])
    if op is None or op.name != "arith.select" or op.operands[2] != s.argument(len(s.inputs) + result):
        return None
    return op


def _dim(index: mlir.Value) -> int | None:
    """The dimension of the `linalg.index` that a value of the body is."""
    op = defining_op(index)
    while op is not None and op.name in ("arith.index_cast", "arith.extsi", "arith.trunci"):
        op = defining_op(op.operands[0])
    return int(mlir.IntegerAttr(op.attributes["dim"]).value) if op is not None and op.name == "linalg.index" else None


def indices_of(s: Structured, found: Found) -> Read:
    """The indices that the reduction returns."""
    return Read(s.op.results[found.result], s.inits[found.result].map)


def at_index(here: mlir.Value, index: mlir.Value, value: mlir.Value) -> mlir.Value:
    """`value` where `here`, the current index of the body, is the reduced index; zero elsewhere."""
    return select(emit.compare("eq", here, index), value, number(value, 0))


def where_init(s: Structured, found: Found, value: mlir.Value) -> mlir.Value | None:
    """A tensor of `value` where no term was selected, and zeros elsewhere. None where that cannot be known."""
    start = _constant(s.inits[found.result].tensor)
    if start is None or start >= 0:
        return None
    indices = s.op.results[found.result]

    def kept(xs: list[mlir.Value]) -> mlir.Value:
        nothing = emit.compare("eq", xs[1], emit.number(xs[1].type, start))
        return select(nothing, xs[0], number(xs[0], 0))

    return tensors.elementwise([value, indices], value.type, kept)


def _constant(tensor: mlir.Value) -> int | None:
    """The value of all elements of a constant tensor; None for other tensors."""
    op = defining_op(tensor)
    if op is None:
        return None
    if op.name == "linalg.fill" or (op.name == "tensor.from_elements" and len(op.operands) == 1):
        return constant_of(op.operands[0])
    if op.name == "linalg.generic" and len(op.results) == 1:  # broadcast for a batch
        block = op.regions[0].blocks[0]
        (given,) = block_ops(block)[-1].operands
        return _constant(op.operands[0]) if given == block.arguments[0] else constant_of(given)
    return None
