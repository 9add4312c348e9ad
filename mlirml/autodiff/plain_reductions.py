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

from collections.abc import Iterable

from mlirml.analysis.reductions import combination_of, is_only_use
from mlirml.analysis.structured import dims_of
from mlirml.autodiff import tensors
from mlirml.autodiff.arithmetic import number, select
from mlirml.autodiff.structured import Structured
from mlirml.core.dataclass import dataclass
from mlirml.ir import emit
from mlirml.ir.bindings import block_ops, clone_with, defining_op, mlir, operations, replace_op
from mlirml.ir.combiners import Combiner


@dataclass(frozen=True)
class Combined:
    """The combination of a reduction body: the accumulator and a term, always, or if a condition is (not) met."""

    s: Structured
    combiner: Combiner
    ops: tuple[mlir.Operation, ...]
    term: mlir.Value
    condition: mlir.Value | None
    negated: bool


def plain_reductions(ops: Iterable[mlir.Operation]) -> None:
    """Rewrite every product and extremum among operations, and in them, that is not in the form the rules handle."""
    for op in [inner for outer in ops for inner in operations(outer) if inner.name.startswith("linalg.")]:
        found = _match(op) if op.regions and len(op.results) == 1 else None
        if found is None:
            continue
        if found.condition is None and _starts_at(found.s.inits[0].tensor, found.combiner):
            continue
        with op.location, mlir.InsertionPoint(op):
            _rewrite(found)


def _match(op: mlir.Operation) -> Combined | None:
    block = op.regions[0].blocks[0]
    accumulator, value = block.arguments[len(block.arguments) - 1], block_ops(block)[-1].operands[0]
    last, condition, negated = defining_op(value), None, False
    if last is not None and last.name == "arith.select":
        condition, met, other = last.operands
        negated = met == accumulator
        if not negated and other != accumulator:
            return None
        value = other if negated else met
    found = combination_of(value, accumulator)
    if found is None or not found.combiner.is_float or found.combiner.word == "sum":
        return None
    s = Structured.of(op)
    others = [last] if last is not None and condition is not None else []
    if not s.reduces or not is_only_use(found, accumulator, others):
        return None
    return Combined(s, found.combiner, found.ops, found.term, condition, negated)


def _starts_at(tensor: mlir.Value, combiner: Combiner) -> bool:
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
    return combiner.word != "product" or mlir.FloatAttr(value).value == 1


def _rewrite(found: Combined) -> None:
    s, formula, neutral = found.s, found.combiner.formula, found.combiner.identity()
    init, op = s.inits[0], s.op
    start = emit.number(op.results[0].type.element_type, neutral)
    out = emit.fill(start, tensors.empty(init.tensor.type, init.tensor)).results[0]

    def body(xs: list[mlir.Value]) -> list[mlir.Value]:
        values = dict(zip(s.block.arguments, xs))
        for each in s.body:
            if each not in found.ops and s.yields[0] not in list(each.results):
                clone_with(each, values)
        term = values.get(found.term, found.term)
        if found.condition is not None:
            condition = values.get(found.condition, found.condition)
            rest = number(term, neutral)
            term = select(condition, rest, term) if found.negated else select(condition, term, rest)
        return [emit.formula(formula, {"a": xs[-1], "b": term})]

    kept = dims_of(init.map)
    iterators = ["parallel" if d in kept else "reduction" for d in range(len(s.sizes))]
    reads = [*s.inputs, init]
    inputs = [r.tensor for r in s.inputs]
    new = emit.generic(inputs, [out], [r.map for r in reads], iterators, body)
    whole = tensors.elementwise(
        [init.tensor, new.results[0]], init.tensor.type, lambda xs: emit.formula(formula, dict(zip("ab", xs)))
    )
    replace_op(op, whole)
