"""Extremes: `if x > m: m = x` over a loop is a maximum, which kernels vectorise.

Before:
    %r = linalg.generic {maps = [(i, j) -> (i, j), (i, j) -> (i)]} ins(%x) outs(%m) {
      %better = arith.cmpf ogt, %in, %out
      %new = arith.select %better, %in, %out
      linalg.yield %new
    }
After:
    %r = linalg.generic {maps = [(i, j) -> (i, j), (i, j) -> (i)]} ins(%x) outs(%m) {
      %new = arith.maxnumf %out, %in
      linalg.yield %new
    }

The comparison is false for NaN elements, and `maxnumf` ignores them, too; but a NaN init is kept. Where the init is not
known to be a number, a select after the reduction restores its NaN. `if not (m > x): m = x` and the like let a later
element replace NaN, so that the order of elements matters: they are unchanged. A condition that does not read the
extreme itself replaces masked elements by the identity. Windows are sliced and padded as those of convolutions
(`windows.py`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from mlirml.analysis.reductions import combination_of
from mlirml.analysis.traits import COMPARISONS
from mlirml.core.dataclass import dataclass
from mlirml.ir import emit
from mlirml.ir.bindings import defining_op, mlir
from mlirml.ir.combiners import COMBINERS, Combiner
from mlirml.passes import NoMatch
from mlirml.raising.recognition.nest import Nest, Rebuild
from mlirml.raising.recognition.terms import Mask, masks_of

_GREATER_FLOAT, _LESS_FLOAT = (2, 3), (4, 5)
_GREATER = {4: "s", 5: "s", 8: "u", 9: "u"}
_LESS = {2: "s", 3: "s", 6: "u", 7: "u"}


@dataclass(frozen=True)
class Extreme:
    """The extreme of the init and `value` where the masks hold; `keeps_nan`: a NaN init is kept."""

    combiner: Combiner
    value: mlir.Value
    masks: tuple[Mask, ...]
    keeps_nan: bool


def match_extreme(nest: Nest) -> Extreme:
    """The extreme that a generic computes; raises `NoMatch` for other generics."""
    if len(nest.inits) != 1 or not any(nest.reduction):
        raise NoMatch("no reduction to one output")
    out, value = nest.arguments[-1], nest.yields[0]
    masks: tuple[Mask, ...] = ()
    while True:
        op = nest.inner(value)
        if op is None:
            raise NoMatch("nothing is computed")
        if op.name != "arith.select":
            found = combination_of(value, out)
            if found is None or not found.combiner.is_extreme or nest.reads_out(found.term):
                raise NoMatch("no extreme of the out and one value")
            return Extreme(found.combiner, found.term, masks, keeps_nan=False)
        condition, yes, no = op.operands
        if nest.reads_out(condition):
            return match_select(nest, op, masks)
        if out not in (yes, no):
            raise NoMatch("a condition between two values")
        masks += tuple(masks_of(nest, condition, no == out))
        value = yes if no == out else no


def match_select(nest: Nest, op: mlir.Operation, masks: tuple[Mask, ...]) -> Extreme:
    """`select(x > out, x, out)` and equivalent forms."""
    out = nest.arguments[-1]
    condition, yes, no = op.operands
    compare = nest.inner(condition)
    if compare is None or compare.name not in COMPARISONS:
        raise NoMatch("no comparison")
    value = yes if no == out else no
    if out not in (yes, no) or set(compare.operands) != {value, out} or nest.reads_out(value):
        raise NoMatch("no extreme of the out and one value")
    predicate = mlir.IntegerAttr(compare.attributes["predicate"]).value
    # True if the value is selected when the comparison holds, and True if it is the first operand.
    wins, first = no == out, compare.operands[0] == value
    if compare.name == "arith.cmpf":
        if not wins or predicate not in (*_GREATER_FLOAT, *_LESS_FLOAT):
            raise NoMatch("a later number wins over NaN")
        largest = (predicate in _GREATER_FLOAT) == first
        return Extreme(COMBINERS["arith.maxnumf" if largest else "arith.minnumf"], value, masks, keeps_nan=True)
    if predicate in _GREATER:
        largest, sign = first == wins, _GREATER[predicate]
    elif predicate in _LESS:
        largest, sign = first != wins, _LESS[predicate]
    else:
        raise NoMatch("no order")
    return Extreme(COMBINERS[f"arith.{'max' if largest else 'min'}{sign}i"], value, masks, keeps_nan=False)


def build_extreme(nest: Nest, extreme: Extreme) -> mlir.Value:
    """A reduction with one combiner, followed by a select for a NaN init."""
    start = nest.inits[0]
    type_ = start.type.element_type

    def body(arguments: list[mlir.Value]) -> list[mlir.Value]:
        rebuild = Rebuild(nest, range(nest.rank), dict(enumerate(arguments[:-1])))
        value = rebuild(extreme.value)
        for mask in extreme.masks:
            nothing = emit.constant(emit.identity(extreme.combiner, type_))
            branches = [value, nothing] if mask.wanted else [nothing, value]
            value = emit.same_type("arith.select", rebuild(mask.condition), *branches)
        return [emit.same_type(extreme.combiner.op, arguments[-1], value)]

    kinds = ["reduction" if reduced else "parallel" for reduced in nest.reduction]
    result = emit.generic(nest.inputs, nest.inits, nest.maps, kinds, body).results[0]
    return kept_nan(start, result) if extreme.keeps_nan and not is_number(start) else result


def is_number(start: mlir.Value) -> bool:
    """True if a tensor is filled with a constant that is not NaN."""
    op = defining_op(start)
    constant = defining_op(op.operands[0]) if op is not None and op.name == "linalg.fill" else None
    if constant is None or constant.name != "arith.constant":
        return False
    return not math.isnan(mlir.FloatAttr(constant.attributes["value"]).value)


def kept_nan(start: mlir.Value, result: mlir.Value) -> mlir.Value:
    """The init where it is NaN, else the result."""
    rank = len(start.type.shape)
    identity_map = mlir.AffineMap.get_identity(rank)

    def body(arguments: Sequence[mlir.Value]) -> list[mlir.Value]:
        first, last = arguments[:2]
        return [emit.same_type("arith.select", emit.compare("uno", first, first), first, last)]

    out = emit.empty(result.type)
    return emit.generic([start, result], [out], [identity_map] * 3, ["parallel"] * rank, body).results[0]


def describe_extreme(nest: Nest, extreme: Extreme) -> str:
    """The name of the operation in remarks."""
    slides = any(not isinstance(e, mlir.AffineDimExpr | mlir.AffineConstantExpr) for m in nest.maps for e in m.results)
    return f"a {extreme.combiner.word} over windows" if slides else f"a {extreme.combiner.word}"
