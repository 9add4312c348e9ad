"""Rewrite reductions with inits or conditions that the rules do not handle into the form that they do handle.

Before:
    %1 = linalg.generic {iterator_types = ["reduction"]} ins(%x) outs(%start : tensor<f64>) {
    ^bb0(%in: f64, %out: f64):
      %2 = arith.mulf %out, %in : f64
      %3 = arith.select %c, %2, %out : f64
      linalg.yield %3 : f64
    }
After:
    %0 = linalg.fill ins(1.0) outs(%e : tensor<f64>)
    %1 = linalg.generic {iterator_types = ["reduction"]} ins(%x) outs(%0 : tensor<f64>) {
    ^bb0(%in: f64, %out: f64):
      %2 = arith.select %c, %in, 1.0 : f64
      %3 = arith.mulf %out, %2 : f64
      linalg.yield %3 : f64
    }
    %4 = linalg.generic {iterator_types = []} ins(%start, %1) { arith.mulf }

So the init of a product or an extremum has the derivative of an ordinary operand.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from mlirml.autodiff import tensors
from mlirml.autodiff.arithmetic import number, select
from mlirml.autodiff.structured import Structured, dims_of
from mlirml.core.dataclass import dataclass
from mlirml.ir import emit
from mlirml.ir.bindings import block_ops, clone_with, defining_op, mlir, operations

_NEUTRAL = {
    "arith.mulf": 1.0, "arith.maximumf": -math.inf, "arith.maxnumf": -math.inf,
    "arith.minimumf": math.inf, "arith.minnumf": math.inf,
}  # fmt: skip


@dataclass(frozen=True)
class Combined:
    """The combination of a reduction body: the accumulator and a term, always, or if a condition is (not) met."""

    s: Structured
    combiner: mlir.Operation
    term: mlir.Value
    condition: mlir.Value | None
    negated: bool


def plain_reductions(ops: Iterable[mlir.Operation]) -> None:
    """Rewrite every product and extremum among operations, and in them, that is not in the form the rules handle."""
    for op in [inner for outer in ops for inner in operations(outer) if inner.name.startswith("linalg.")]:
        found = _match(op) if op.regions and len(op.results) == 1 else None
        if found is None:
            continue
        if found.condition is None and _starts_at(found.s.inits[0].tensor, found.combiner.name):
            continue
        with op.location, mlir.InsertionPoint(op):
            _rewrite(found, _NEUTRAL[found.combiner.name])


def _match(op: mlir.Operation) -> Combined | None:
    last = defining_op(block_ops(op.regions[0].blocks[0])[-1].operands[0])
    if last is None or last.name not in (*_NEUTRAL, "arith.select"):
        return None
    s = Structured.of(op)
    if not s.reduces:
        return None
    accumulator, condition, negated = s.argument(len(s.inputs)), None, False
    combiner: mlir.Operation | None = last
    if last.name == "arith.select":
        condition, met, other = last.operands
        negated = met == accumulator
        if not negated and other != accumulator:
            return None
        combiner = defining_op(other if negated else met)
    uses = 1 if condition is None else 2
    if combiner is None or combiner.name not in _NEUTRAL or len(list(accumulator.uses)) != uses:
        return None
    terms = [x for x in combiner.operands if x != accumulator]
    if len(terms) != 1 or (condition is not None and len(list(combiner.results[0].uses)) != 1):
        return None
    return Combined(s, combiner, terms[0], condition, negated)


def _starts_at(tensor: mlir.Value, combiner: str) -> bool:
    """True if a reduction starts at a constant, which for a product has to be 1."""
    op = defining_op(tensor)
    if op is None:
        return False
    constant = op if op.name == "arith.constant" else defining_op(op.operands[0]) if op.name == "linalg.fill" else None
    if constant is None or constant.name != "arith.constant":
        return False
    value = constant.attributes["value"]
    if op is constant:  # constant tensor
        dense = mlir.DenseElementsAttr(value)
        if not dense.is_splat:
            return False
        value = dense.get_splat_value()
    return combiner != "arith.mulf" or mlir.FloatAttr(value).value == 1


def _rewrite(found: Combined, neutral: float) -> None:
    s, name = found.s, found.combiner.name
    init, op = s.inits[0], s.op
    start = emit.number(op.results[0].type.element_type, neutral)
    out = emit.fill(start, tensors.empty(init.tensor.type, init.tensor)).results[0]

    def body(xs: list[mlir.Value]) -> list[mlir.Value]:
        values = dict(zip(s.block.arguments, xs))
        for each in s.body:
            if each != found.combiner and s.yields[0] not in list(each.results):
                clone_with(each, values)
        term = values.get(found.term, found.term)
        if found.condition is not None:
            condition = values.get(found.condition, found.condition)
            rest = number(term, neutral)
            term = select(condition, rest, term) if found.negated else select(condition, term, rest)
        return [emit.same_type(name, xs[-1], term)]

    kept = dims_of(init.map)
    iterators = ["parallel" if d in kept else "reduction" for d in range(len(s.sizes))]
    reads = [*s.inputs, init]
    inputs = [r.tensor for r in s.inputs]
    new = emit.generic(inputs, [out], [r.map for r in reads], iterators, body)
    whole = tensors.elementwise(
        [init.tensor, new.results[0]], init.tensor.type, lambda xs: emit.same_type(name, xs[0], xs[1])
    )
    op.results[0].replace_all_uses_with(whole)
    op.erase()
