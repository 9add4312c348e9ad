"""Masked sums: `if c: s += x` over a loop is a sum of selects, which kernels vectorise.

Before:
    %r = linalg.generic {maps = [(i, j) -> (i, j), (i, j) -> (i, j), (i, j) -> (i)]} ins(%c, %x) outs(%s) {
      %sum = arith.addf %out, %in
      %new = arith.select %condition, %sum, %out
      linalg.yield %new
    }
After:
    %r = linalg.generic {maps = [(i, j) -> (i, j), (i, j) -> (i, j), (i, j) -> (i)]} ins(%c, %x) outs(%s) {
      %kept = arith.select %condition, %in, %zero
      %new = arith.addf %out, %kept
      linalg.yield %new
    }

Products and differences are handled likewise. The identity leaves every value unchanged: it is -0 for float sums.
"""

from __future__ import annotations

from mlirml.core.dataclass import dataclass
from mlirml.ir import emit
from mlirml.ir.bindings import mlir
from mlirml.ir.combiners import COMBINERS
from mlirml.passes import NoMatch
from mlirml.raising.recognition.nest import Nest, Rebuild
from mlirml.raising.recognition.terms import Mask, masks_of

_IDENTITIES = {op: row.identity() for op, row in COMBINERS.items() if not row.is_extreme}
_SUBTRACTIONS = {"arith.subf": 0.0, "arith.subi": 0}


@dataclass(frozen=True)
class Masked:
    """The accumulator is combined with `value` by the operation `name` where the masks hold."""

    name: str
    value: mlir.Value
    masks: tuple[Mask, ...]


def match_masked(nest: Nest) -> Masked:
    """The masked combination of a generic; raises `NoMatch` for other generics."""
    if len(nest.inits) != 1 or not any(nest.reduction):
        raise NoMatch("no reduction to one output")
    out, value = nest.arguments[-1], nest.yields[0]
    masks: tuple[Mask, ...] = ()
    while (op := nest.inner(value)) is not None and op.name == "arith.select":
        condition, yes, no = op.operands
        if nest.reads_out(condition) or out not in (yes, no):
            raise NoMatch("a condition between two values")
        masks += tuple(masks_of(nest, condition, no == out))
        value = yes if no == out else no
    if op is None or not masks or op.name not in _IDENTITIES | _SUBTRACTIONS:
        raise NoMatch("no accumulation under a mask")
    others = [operand for operand in op.operands if operand != out]
    if len(others) != 1 or nest.reads_out(others[0]) or (op.name in _SUBTRACTIONS and op.operands[0] != out):
        raise NoMatch("the out is not combined with one value")
    return Masked(op.name, others[0], masks)


def build_masked(nest: Nest, masked: Masked) -> mlir.Value:
    """A reduction that combines the accumulator in every iteration."""
    kind = nest.inits[0].type.element_type

    def body(arguments: list[mlir.Value]) -> list[mlir.Value]:
        rebuild = Rebuild(nest, range(nest.rank), dict(enumerate(arguments[:-1])))
        value = rebuild(masked.value)
        for mask in masked.masks:
            nothing = emit.number(kind, (_IDENTITIES | _SUBTRACTIONS)[masked.name])
            branches = [value, nothing] if mask.wanted else [nothing, value]
            value = emit.same_type("arith.select", rebuild(mask.condition), *branches)
        return [emit.same_type(masked.name, arguments[-1], value)]

    kinds = ["reduction" if reduced else "parallel" for reduced in nest.reduction]
    return emit.generic(nest.inputs, nest.inits, nest.maps, kinds, body).results[0]
