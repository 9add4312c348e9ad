"""Index arithmetic in the body of a generic, as linear expressions of its loops."""

from __future__ import annotations

from collections.abc import Sequence

from mlirml.analysis.constants import constant_of, is_constant
from mlirml.analysis.traits import INTEGER_STEPS
from mlirml.analysis.values import operands_first
from mlirml.core.affine import Linear
from mlirml.ir.bindings import mlir
from mlirml.passes import NoMatch
from mlirml.raising.recognition.nest import Nest
from mlirml.raising.recognition.terms import Mask, masks_of

_COMPARED = {2: (-1, -1), 3: (-1, 0), 4: (1, -1), 5: (1, 0)}
"""slt, sle, sgt, sge: `a ? b` is `sign * (a - b) + offset >= 0`."""
_OPPOSITE = {2: 5, 5: 2, 3: 4, 4: 3}
_CASTS = ("arith.index_cast", "arith.extsi", "arith.trunci")


def read_linear(nest: Nest, value: mlir.Value) -> Linear:
    """A value of the body as a linear expression; raises `NoMatch`."""

    def operands(one: mlir.Value) -> Sequence[mlir.Value]:
        op = nest.inner(one)
        return op.operands if op is not None and op.name in (*_CASTS, *INTEGER_STEPS, "arith.muli") else ()

    known: dict[mlir.Value, Linear] = {}
    for each in operands_first(value, operands):
        known[each] = _compute(nest, each, known)
    return known[value]


def _compute(nest: Nest, value: mlir.Value, known: dict[mlir.Value, Linear]) -> Linear:
    op = nest.inner(value)
    if op is None or op.name == "arith.constant":
        number = constant_of(value)
        if number is None:
            raise NoMatch("a number that is known at run time only")
        return Linear(number)
    if op.name == "linalg.index":
        return Linear.of(op.attributes["dim"].value)
    if op.name in _CASTS:
        return known[op.operands[0]]
    if op.name in INTEGER_STEPS:
        left, right = (known[operand] for operand in op.operands)
        return left + right if op.name == "arith.addi" else left - right
    if op.name == "arith.muli":
        left, right = (known[operand] for operand in op.operands)
        product = left.times(right)
        if product is not None:
            return product
    raise NoMatch("an index that is not linear in the loops")


def read_clamped(nest: Nest, value: mlir.Value, assumed: list[Mask]) -> Linear:
    """A linear expression, possibly clamped by `max` and `min` or a select: the expression without them.

    The conditions under which a select returns the expression are appended to `assumed`.
    """
    op = nest.inner(value)
    if op is not None and op.name == "arith.select":
        condition, yes, no = op.operands
        for branch, other, wanted in ((yes, no, True), (no, yes, False)):
            if is_constant(other):
                assumed += masks_of(nest, condition, wanted)
                return read_clamped(nest, branch, assumed)
    if op is not None and op.name in ("arith.maxsi", "arith.minsi"):
        for operand, other in (op.operands, reversed(list(op.operands))):
            if is_constant(other):
                return read_clamped(nest, operand, assumed)
    if op is not None and op.name in _CASTS:
        return read_clamped(nest, op.operands[0], assumed)
    return read_linear(nest, value)


def read_halfspace(nest: Nest, mask: Mask) -> Linear:
    """The expression that is >= 0 iff a mask holds; raises `NoMatch`."""
    op = nest.inner(mask.condition)
    if op is None or op.name != "arith.cmpi":
        raise NoMatch("no comparison of integers")
    predicate = mlir.IntegerAttr(op.attributes["predicate"]).value
    if predicate not in _COMPARED:
        raise NoMatch("no order")
    sign, offset = _COMPARED[predicate if mask.wanted else _OPPOSITE[predicate]]
    left, right = (read_linear(nest, operand) for operand in op.operands)
    return (left - right) * sign + offset
