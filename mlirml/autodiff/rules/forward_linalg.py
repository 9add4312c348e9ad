"""Pushforwards of linalg operations: bilinear ones once for each factor, others with tangents in their body."""

from __future__ import annotations

from collections.abc import Callable

from mlirml.analysis.reductions import Combination
from mlirml.autodiff import tensors
from mlirml.autodiff.arithmetic import div, is_float, mul, number, select
from mlirml.autodiff.bodies import depends, refuse
from mlirml.autodiff.bodies import push as push_scalars
from mlirml.autodiff.forward import Push, pushforward
from mlirml.autodiff.rules import linalg as transposes
from mlirml.autodiff.rules.argmax import at_index, indices_of, match_found, where_init
from mlirml.autodiff.structured import Read, Structured
from mlirml.ir import emit
from mlirml.ir.bindings import clone_with, mlir

Values = dict[mlir.Value, mlir.Value]
Weight = Callable[[mlir.Value, mlir.Value, list[mlir.Value]], mlir.Value]


@pushforward("linalg.fill")
def fill(push: Push, op: mlir.Operation) -> None:
    """The tangent of a filled tensor is filled with the tangent of the scalar."""
    scalar, out = op.operands
    if scalar in push.tangents:
        push.tangents[op.results[0]] = emit.fill(push.tangents[scalar], tensors.empty(out.type, out)).results[0]


@pushforward("linalg.")
def structured(push: Push, op: mlir.Operation) -> None:
    """Tangents of the float results of any structured operation."""
    s = Structured.of(op)
    if op.name != "linalg.generic" and s.reduces and len(s.inputs) == 2:
        push.tangents[op.results[0]] = _bilinear(push, op)
        return
    if s.reduces and len(op.results) > 1:  # of argmax, mostly only the index is read
        read = [k for k, r in enumerate(op.results) if is_float(r.type) and list(r.uses)]
        transposes.check_sums(s, [k for k in read if match_found(s, k) is None])
    else:
        read = [k for k, r in enumerate(op.results) if is_float(r.type)]
    for number_ in read:
        tangent = _tangent(push, s, number_)
        if tangent is not None:
            push.tangents[op.results[number_]] = tangent


def _bilinear(push: Push, op: mlir.Operation) -> mlir.Value:
    """A product rule: the tangent of each factor times the other factor."""
    x, y, out = op.operands
    total = push.of(out)
    for factor in dict.fromkeys((x, y)):
        if factor not in push.tangents:
            continue
        positions = [i for i, operand in enumerate((x, y)) if operand == factor]
        for position in positions:
            copy = clone_with(op, {})
            copy.operands[position] = push.tangents[factor]
            copy.operands[2] = total
            total = copy.results[0]
    return total


def _tangent(push: Push, s: Structured, number_: int) -> mlir.Value | None:
    """The tangent of one result; None if it does not depend on any, as the number of elements equal to another."""
    reads = [*s.inputs, *([] if s.reduces else s.inits)]
    moved = [(i, Read(push.tangents[r.tensor], r.map)) for i, r in enumerate(reads) if r.tensor in push.tangents]
    extra: list[Read] = [read for _, read in moved]
    captured = transposes.captured(s)
    result = s.op.results[number_]
    extracts = [op for op in s.body if op.name == "tensor.extract" and op.operands[0] in captured]
    followed = [op.results[0] for op in extracts if op.operands[0] in push.tangents]
    active = depends(s.body, {*(s.argument(i) for i, _ in moved), *followed})

    def tangents_of(values: Values, extras: list[mlir.Value]) -> Values:
        found = {s.argument(i): x for (i, _), x in zip(moved, extras)}
        for op in extracts:
            if op.results[0] in followed:
                position = [values.get(x, x) for x in list(op.operands)[1:]]
                source = push.tangents[op.operands[0]]
                found[op.results[0]] = emit.value("tensor.extract", [source, *position], op.results[0].type)
        push_scalars(s.body, values, found)
        return found

    init: mlir.Value | None = None
    end = watched = s.yields[number_]
    weight: Weight = _no_weight
    find = match_found(s, number_) if s.reduces and len(s.inits) > 1 else None
    if find is not None:
        end, watched, weight = find.term, find.position, lambda t, here, extras: at_index(here, extras[0], t)
        extra, init = [*extra, indices_of(s, find)], _init_tangent(push, s, number_)
    elif s.reduces:
        found = transposes.combination(s) if len(s.inits) == 1 else None
        if found is None:
            init = push.tangents.get(s.inits[number_].tensor)
        else:
            end = watched = found.term
            if end not in active:
                return None
            more, weight = _weight(s, found, result)
            extra = [*extra, *more]
    if init is None and end not in active:
        return None
    count = len(reads)

    def body(xs: list[mlir.Value]) -> mlir.Value:
        values = dict(zip(s.block.arguments, xs[:count]))
        if s.reduces:
            values.update(s.empty_accumulators())
        s.copy_body(values)
        found = tangents_of(values, xs[count : count + len(moved)]).get(end)
        here = values.get(watched, watched)
        return (
            emit.number(result.type.element_type, 0) if found is None else weight(found, here, xs[count + len(moved) :])
        )

    everything = [*reads, *extra]
    out_map = s.inits[number_].map
    return tensors.generic(
        [r.tensor for r in everything], [r.map for r in everything], result.type, out_map, body, init
    )


def _init_tangent(push: Push, s: Structured, number_: int) -> mlir.Value | None:
    """The tangent of the init of an argmax, where no term was selected."""
    start, find = push.tangents.get(s.inits[number_].tensor), match_found(s, number_)
    if start is None or find is None:
        return None
    kept = where_init(s, find, start)
    if kept is None:
        raise refuse(s.op, "what it starts from is differentiated")
    return kept


def _no_weight(tangent: mlir.Value, term: mlir.Value, extras: list[mlir.Value]) -> mlir.Value:
    return tangent


def _weight(s: Structured, found: Combination, result: mlir.Value) -> tuple[list[Read], Weight]:
    """The weight of the tangent of a term in a reduction that is no sum, and the tensors that it reads."""
    final, term = Read(result, s.out_map), found.term
    if found.combiner.partial is not None:
        return [final], lambda tangent, x, extras: mul(tangent, transposes.partial(found.combiner, x, extras[0]))
    if found.combiner.is_extreme:
        ties = Read(transposes.ties(s, term, final), s.out_map)

        def share(tangent: mlir.Value, x: mlir.Value, extras: list[mlir.Value]) -> mlir.Value:
            hit = emit.compare("oeq", x, extras[0])
            return select(hit, div(tangent, extras[1]), number(tangent, 0))

        return [final, ties], share
    rest, zeros = (Read(t, s.out_map) for t in transposes.product_parts(s, term))

    def rest_of_product(tangent: mlir.Value, x: mlir.Value, extras: list[mlir.Value]) -> mlir.Value:
        return mul(tangent, transposes.other_factors(x, *extras))

    return [final, rest, zeros], rest_of_product
