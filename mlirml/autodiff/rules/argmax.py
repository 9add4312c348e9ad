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
from mlirml.analysis.reductions import Argmax, argmaxes_of
from mlirml.analysis.structured import dims_of, index_dim
from mlirml.autodiff import tensors
from mlirml.autodiff.arithmetic import number, select
from mlirml.autodiff.structured import Read, Structured
from mlirml.ir import emit
from mlirml.ir.bindings import block_ops, defining_op, mlir


def match_found(s: Structured, value: int) -> Argmax | None:
    """The argmax whose value is the result `value`; None for other reductions."""
    summed = set(range(len(s.sizes))) - dims_of(s.out_map)
    if len(summed) != 1:
        return None
    accumulators = [s.argument(len(s.inputs) + n) for n in range(len(s.inits))]
    for found in argmaxes_of(s.yields, accumulators, lambda x: index_dim(x) in summed):
        if found.value == value and s.inits[found.index].map == s.inits[value].map:
            return found
    return None


def indices_of(s: Structured, found: Argmax) -> Read:
    """The indices that the reduction returns."""
    return Read(s.op.results[found.index], s.inits[found.index].map)


def at_index(here: mlir.Value, index: mlir.Value, value: mlir.Value) -> mlir.Value:
    """`value` where `here`, the current index of the body, is the reduced index; zero elsewhere."""
    return select(emit.compare("eq", here, index), value, number(value, 0))


def where_init(s: Structured, found: Argmax, value: mlir.Value) -> mlir.Value | None:
    """A tensor of `value` where no term was selected, and zeros elsewhere. None where that cannot be known."""
    start = _constant(s.inits[found.index].tensor)
    if start is None or start >= 0:
        return None
    indices = s.op.results[found.index]

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
