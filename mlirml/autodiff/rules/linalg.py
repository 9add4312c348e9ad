"""Transposes of linalg's operations.

Contractions become contractions. Any other operation becomes one generic for each active operand: the same iteration
space, the output map that of the operand, dimensions that the map lacks summed up, and a body that is the old one and
its reverse: the values of the body are recomputed, never stored over the iteration space. Window maps (convolutions,
poolings) are fixed at one kernel position at a time, so that a projection is left.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable

from mlirml.analysis.reductions import Combination, combination_of, is_only_use
from mlirml.analysis.structured import dims_of
from mlirml.analysis.values import depends_on, walk
from mlirml.autodiff import tensors
from mlirml.autodiff.arithmetic import add, div, is_float, mul, number, select
from mlirml.autodiff.bodies import Pullback, depends, refuse
from mlirml.autodiff.reverse import Sweep, transpose
from mlirml.autodiff.rules.argmax import at_index, indices_of, match_found, where_init
from mlirml.autodiff.rules.convolutions import image_cotangent
from mlirml.autodiff.structured import Read, Structured, is_projection, window_dims
from mlirml.core.dataclass import dataclass
from mlirml.ir import emit
from mlirml.ir.bindings import defining_op, mlir
from mlirml.ir.combiners import COMBINERS, Combiner

Values = dict[mlir.Value, mlir.Value]
Seed = Callable[[Pullback, Values, list[mlir.Value]], None]

_SELECTS = {"arith.select", *(op for op, row in COMBINERS.items() if row.is_extreme and row.is_float)}
_UNROLLED = 64  # more kernel positions than these become loops over elements instead of being unrolled


@dataclass(frozen=True)
class Adjoint:
    """Cotangents entering the body: `extra` tensors are read too, and `seed(pullback, values, extras)` uses them."""

    s: Structured
    extra: list[Read]
    seed: Seed


@transpose("linalg.")
def structured(sweep: Sweep, op: mlir.Operation) -> None:
    """Cotangents of the operands of any structured operation."""
    s = Structured.of(op)
    adjoint, masked = _adjoint(sweep, s), _is_masked(sweep, s)
    for number_, read in enumerate((*s.inputs, *s.inits)):
        if not sweep.is_active(read.tensor):
            continue
        if number_ < len(s.inputs):
            found = _of_operand(sweep, adjoint, number_)
        elif s.reduces:
            found = _of_init(sweep, s, number_ - len(s.inputs))
        elif list(s.argument(number_).uses):
            found = _of_operand(sweep, adjoint, number_)
        else:
            continue
        if found is not None:
            sweep.add(read.tensor, found, masked)
    for tensor in captured(s):
        if sweep.is_active(tensor):
            sweep.add(tensor, _of_captured(sweep, adjoint, tensor), masked)


def _is_masked(sweep: Sweep, s: Structured) -> bool:
    """True if cotangents of the operands may be zero because a select took the other operand."""
    return any(r in sweep.masked for r in s.op.results) or any(op.name in _SELECTS for op in s.body)


def captured(s: Structured) -> list[mlir.Value]:
    """Tensors that the body reads at computed indices."""
    return list(dict.fromkeys(op.operands[0] for op in s.body if op.name == "tensor.extract"))


def _adjoint(sweep: Sweep, s: Structured) -> Adjoint:
    """The cotangents that enter the body."""
    pairs = [(k, sweep.cotangents[r]) for k, r in enumerate(s.op.results) if r in sweep.cotangents]
    if not s.reduces:
        extra = [Read(ct, s.inits[k].map) for k, ct in pairs]

        def seed(pullback: Pullback, values: Values, extras: list[mlir.Value]) -> None:
            for (k, _), ct in zip(pairs, extras):
                pullback.add(s.yields[k], ct, s.op.results[k] in sweep.masked)

        return Adjoint(s, extra, seed)
    if len(s.op.results) != 1:
        return _several(sweep, s, pairs)
    cotangent, masked = pairs[0][1], s.op.results[0] in sweep.masked
    found = combination(s)
    if found is None:
        # As in a contraction, the products of a convolution are not masked by zeros, so that it stays a convolution.
        masked = masked and ".conv_" not in s.op.name and "_conv_" not in s.op.name
        return Adjoint(
            s, [Read(cotangent, s.out_map)], lambda pullback, _, extras: pullback.add(s.yields[0], extras[0], masked)
        )
    final, term = Read(s.op.results[0], s.out_map), found.term
    if found.combiner.word == "product":
        return _product(s, term, Read(cotangent, s.out_map), final)
    if not found.combiner.is_extreme:
        return _by_partial(s, found, Read(cotangent, s.out_map), final)
    share = _share(s, term, cotangent, final)

    def seed_extremum(pullback: Pullback, values: Values, extras: list[mlir.Value]) -> None:
        here = values.get(term, term)
        hit = emit.compare("oeq", here, extras[1])
        pullback.add(term, select(hit, extras[0], number(extras[0], 0)), True)

    return Adjoint(s, [Read(share, s.out_map), final], seed_extremum)


def _several(sweep: Sweep, s: Structured, pairs: list[tuple[int, mlir.Value]]) -> Adjoint:
    """The cotangents of a body with several results: sums, as in a product of complex numbers, or an argmax."""
    finds = [match_found(s, k) for k, _ in pairs]
    check_sums(s, [k for (k, _), found in zip(pairs, finds) if found is None])
    extra = [Read(ct, s.inits[k].map) for k, ct in pairs] + [
        indices_of(s, found) for found in finds if found is not None
    ]

    def seed(pullback: Pullback, values: Values, extras: list[mlir.Value]) -> None:
        indices = iter(extras[len(pairs) :])
        for (k, _), ct, found in zip(pairs, extras, finds):
            if found is None:
                pullback.add(s.yields[k], ct, s.op.results[k] in sweep.masked)
            else:
                here = values.get(found.position, found.position)
                pullback.add(found.term, at_index(here, next(indices), ct), True)

    return Adjoint(s, extra, seed)


def check_sums(s: Structured, numbers: Iterable[int]) -> None:
    """Refuse a reduction unless each of these results is a sum of terms that depend on no other result."""
    accumulators = [s.argument(len(s.inputs) + k) for k in range(len(s.inits))]
    for k in numbers:
        others = [x for i, x in enumerate(accumulators) if i != k]
        terms_alone = not any(depends_on(s.yields[k], [x]) for x in others)
        if not terms_alone or not _adds_to(accumulators[k], s.yields[k]):
            raise refuse(s.op, "a reduction with several results, which are no sums", "compute each result by itself")


def combination(s: Structured) -> Combination | None:
    """The combination of a reduction that is no sum; None for a sum of terms."""
    accumulator, result = s.argument(len(s.inputs)), s.yields[0]
    found = combination_of(result, accumulator)
    if found is not None and is_only_use(found, accumulator) and _has_derivative(found.combiner):
        return found
    if _adds_to(accumulator, result):
        return None
    raise refuse(s.op, "a reduction that is no sum, product, maximum or minimum", "write it with those")


def _has_derivative(combiner: Combiner) -> bool:
    """True for extremes and products of floats, and for what has a derivative in the table."""
    return combiner.partial is not None or (combiner.is_float and combiner.word in ("maximum", "minimum", "product"))


def _adds_to(accumulator: mlir.Value, result: mlir.Value) -> bool:
    """True if the result is the accumulator plus or minus terms, some of them under a condition."""

    def totals(value: mlir.Value) -> list[mlir.Value]:
        op = defining_op(value)
        if value == accumulator or op is None or op.name not in ("arith.addf", "arith.subf", "arith.select"):
            return []
        *others, left, right = op.operands
        if op.name == "arith.select":
            return [] if depends_on(others[0], [accumulator]) else [left, right]
        if not depends_on(right, [accumulator]):
            return [left]
        return [right] if op.name == "arith.addf" and not depends_on(left, [accumulator]) else []

    return all(totals(value) or value == accumulator for value in walk(result, totals))


def _share(s: Structured, term: mlir.Value, cotangent: mlir.Value, final: Read) -> mlir.Value:
    """The cotangent, divided by the number of terms that are equal to the extremum."""
    count = ties(s, term, final)
    return tensors.elementwise([cotangent, count], cotangent.type, lambda xs: div(xs[0], xs[1]))


def ties(s: Structured, term: mlir.Value, final: Read) -> mlir.Value:
    """The number of terms that are equal to the extremum."""
    return _reduced(s, [final], lambda values, extras: _one_if_equal(values.get(term, term), extras[0]))


def _one_if_equal(a: mlir.Value, b: mlir.Value) -> mlir.Value:
    return select(emit.compare("oeq", a, b), number(a, 1), number(a, 0))


def _reduced(
    s: Structured,
    extra: list[Read],
    term: Callable[[Values, list[mlir.Value]], mlir.Value],
    combine: str = "arith.addf",
    start: float = 0,
) -> mlir.Value:
    """A reduction over the same iteration space with another term."""
    reads = [*s.inputs, *extra]
    type_ = s.op.results[0].type
    kept = dims_of(s.out_map)
    iterators = ["parallel" if d in kept else "reduction" for d in range(len(s.sizes))]

    def body(xs: list[mlir.Value]) -> list[mlir.Value]:
        values = dict(zip(s.block.arguments, [*xs[: len(s.inputs)], xs[-1]]))
        s.copy_body(values)
        return [emit.same_type(combine, xs[-1], term(values, xs[len(s.inputs) : -1]))]

    out = tensors.constant_like(type_, start)
    op = emit.generic([r.tensor for r in reads], [out], [*(r.map for r in reads), s.out_map], iterators, body)
    return tensors.pruned(op).results[0]


def product_parts(s: Structured, term: mlir.Value) -> tuple[mlir.Value, mlir.Value]:
    """The product of the nonzero factors, and the number of zero factors."""

    def nonzero(values: Values, extras: list[mlir.Value]) -> mlir.Value:
        x = values.get(term, term)
        return select(emit.compare("oeq", x, number(x, 0)), number(x, 1), x)

    def is_zero(values: Values, extras: list[mlir.Value]) -> mlir.Value:
        x = values.get(term, term)
        return _one_if_equal(x, number(x, 0))

    return _reduced(s, [], nonzero, "arith.mulf", 1), _reduced(s, [], is_zero)


def other_factors(x: mlir.Value, product: mlir.Value, rest: mlir.Value, zeros: mlir.Value) -> mlir.Value:
    """The product of all factors but x: the product over x, or the product of the rest if x is the only zero factor."""
    zero, one = number(x, 0), number(x, 1)
    this = emit.compare("oeq", x, zero)
    single = select(emit.compare("oeq", zeros, one), select(this, rest, zero), zero)
    return select(emit.compare("oeq", zeros, zero), div(product, select(this, one, x)), single)


def _product(s: Structured, term: mlir.Value, cotangent: Read, final: Read) -> Adjoint:
    """All other factors times the cotangent."""
    rest, zeros = (Read(t, s.out_map) for t in product_parts(s, term))

    def seed(pullback: Pullback, values: Values, extras: list[mlir.Value]) -> None:
        pullback.add(term, mul(extras[0], other_factors(values.get(term, term), *extras[1:])), True)

    return Adjoint(s, [cotangent, final, rest, zeros], seed)


def _by_partial(s: Structured, found: Combination, cotangent: Read, final: Read) -> Adjoint:
    """The cotangent times the derivative of the result in a term."""

    def seed(pullback: Pullback, values: Values, extras: list[mlir.Value]) -> None:
        factor = partial(found.combiner, values.get(found.term, found.term), extras[1])
        pullback.add(found.term, mul(extras[0], factor), True)

    return Adjoint(s, [cotangent, final], seed)


def partial(combiner: Combiner, x: mlir.Value, result: mlir.Value) -> mlir.Value:
    """The derivative of the result of a reduction in a term."""
    assert combiner.partial is not None
    return emit.formula(combiner.partial, {"x": x, "r": result})


def _of_init(sweep: Sweep, s: Structured, number_: int) -> mlir.Value | None:
    """The cotangent of the init of a reduction."""
    cotangent = sweep.cotangents.get(s.op.results[number_])
    found = match_found(s, number_) if len(s.inits) > 1 else None
    if found is not None:
        cotangent = None if cotangent is None else where_init(s, found, cotangent)
    if (found is not None and cotangent is None) or (len(s.inits) == 1 and combination(s) is not None):
        raise refuse(s.op, "what it starts from is differentiated")
    return cotangent


def _of_operand(sweep: Sweep, adjoint: Adjoint, operand: int) -> mlir.Value:
    """The cotangent of one operand."""
    s = adjoint.s
    read = (*s.inputs, *s.inits)[operand]
    if is_projection(read.map):
        return _projected(sweep, adjoint, operand, s)
    if operand == 0 and len(adjoint.extra) == 1 and len(s.inputs) == 2 and _multiplies(s):
        gathered = image_cotangent(s, adjoint.extra[0].tensor)
        if gathered is not None:
            return gathered
    fixed_dims = window_dims(read.map, s.sizes)
    if fixed_dims is not None and _num_positions(s, fixed_dims) <= _UNROLLED:
        return _by_windows(sweep, adjoint, operand, fixed_dims)
    return _by_elements(sweep, adjoint, s.argument(operand), read)


def _num_positions(s: Structured, fixed_dims: list[int]) -> int:
    total = 1
    for d in fixed_dims:
        total *= s.sizes[d]
    return total


def _by_windows(sweep: Sweep, adjoint: Adjoint, operand: int, fixed_dims: list[int]) -> mlir.Value:
    """The cotangents of one kernel position at a time, each added to the slice of the operand that it reads."""
    s = adjoint.s
    read = (*s.inputs, *s.inits)[operand]
    total = tensors.zeros_like(read.tensor)
    for index in itertools.product(*(range(s.sizes[d]) for d in fixed_dims)):
        fixed = dict(zip(fixed_dims, index))
        window = s.window(read.map, read.tensor.type, fixed)
        extra = [s.cut(r, fixed) for r in adjoint.extra]
        part = _projected(sweep, Adjoint(s, extra, adjoint.seed), operand, s.at(fixed))
        old = tensors.extract(total, window.kind, window.offsets, window.counts, window.strides)
        total = tensors.insert(tensors.sum_of(old, part), total, window.offsets, window.counts, window.strides)
    return total


def _projected(sweep: Sweep, adjoint: Adjoint, operand: int, s: Structured) -> mlir.Value:
    """The cotangent of an operand whose map is a projection, as one generic or contraction."""
    reads = [*s.inputs, *s.inits]
    target = reads[operand]
    contraction = _contraction(adjoint, operand, s)
    if contraction is not None:
        return contraction
    elementwise = not adjoint.s.reduces
    given = reads if elementwise else s.inputs
    active = _active_values(sweep, s)

    def body(xs: list[mlir.Value]) -> mlir.Value:
        values = dict(zip(s.block.arguments, xs[: len(given)]))
        if not elementwise:
            values.update(s.empty_accumulators())
        s.copy_body(values)
        pullback = Pullback(values, active)
        adjoint.seed(pullback, values, xs[len(given) :])
        pullback.run(s.body)
        argument = s.argument(operand)
        return pullback.cotangents.get(argument) or zero_like(argument)

    everything = [*given, *adjoint.extra]
    type_ = tensors.type_like(target.tensor.type, target.tensor.type.shape)
    return tensors.generic([r.tensor for r in everything], [r.map for r in everything], type_, target.map, body)


def zero_like(like: mlir.Value) -> mlir.Value:
    """Zero of the type of a value."""
    return emit.number(like.type, 0)


def _active_values(sweep: Sweep, s: Structured) -> set[mlir.Value]:
    """The values of the body that have cotangents."""
    roots = [s.argument(i) for i, r in enumerate((*s.inputs, *s.inits)) if is_float(s.argument(i).type)]
    roots += [op.results[0] for op in s.body if op.name == "tensor.extract" and is_float(op.results[0].type)]
    return depends(s.body, roots)


def _contraction(adjoint: Adjoint, operand: int, s: Structured) -> mlir.Value | None:
    """The cotangent of a factor of a contraction as a contraction of the cotangent and the other factor.

    Small floats that the body extends are extended before it, and their sums are rounded once.
    """
    if operand > 1 or len(s.inputs) != 2 or len(adjoint.extra) != 1 or not _multiplies(s, extended=True):
        return None
    other, target, cotangent = s.inputs[1 - operand], s.inputs[operand], adjoint.extra[0]
    maps = [cotangent.map, other.map, target.map]
    summed = set(range(len(s.sizes))) - dims_of(target.map)
    if not all(map(is_projection, maps)) or not all(summed <= dims_of(m) for m in maps[:2]):
        return None
    if not summed:
        return None  # an outer product: as a generic it fuses
    wide = cotangent.tensor.type.element_type
    total = contract(cotangent.tensor, _cast(other.tensor, wide), maps, _with_elements(target.tensor.type, wide))
    return _cast(total, target.tensor.type.element_type)


def _with_elements(type_: mlir.Type, element: mlir.Type) -> mlir.Type:
    """A tensor type with other elements."""
    return mlir.RankedTensorType.get(type_.shape, element)


def _cast(tensor: mlir.Value, element: mlir.Type) -> mlir.Value:
    """A tensor of floats, extended or rounded to another type."""
    own = tensor.type.element_type
    if own == element:
        return tensor
    name = "arith.extf" if own.width < element.width else "arith.truncf"
    type_ = _with_elements(tensor.type, element)
    return tensors.elementwise([tensor], type_, lambda xs: emit.value(name, [xs[0]], element))


def contract(
    a: mlir.Value, b: mlir.Value, maps: list[mlir.AffineMap], type_: mlir.Type, out: mlir.Value | None = None
) -> mlir.Value:
    """`linalg.contract` into zeros, or added to `out`."""
    out = tensors.zeros(type_) if out is None else out
    return emit.contract([a, b, out], maps, lambda xs: add(xs[2], mul(xs[0], xs[1])))


def _multiplies(s: Structured, *, extended: bool = False) -> bool:
    """True if the body is accumulator + x * y, with factors that may be `extended`."""
    casts = [op for op in s.body if op.name == "arith.extf"] if extended else []
    if len(s.body) != 2 + len(casts) or len(s.block.arguments) != 3:
        return False
    product, total = (op for op in s.body if op not in casts)
    wide = {op.operands[0]: op.results[0] for op in casts}
    x, y, accumulator = s.block.arguments
    return (
        product.name == "arith.mulf"
        and total.name == "arith.addf"
        and set(product.operands) == {wide.get(x, x), wide.get(y, y)}
        and set(total.operands) == {accumulator, product.results[0]}
        and s.yields[0] == total.results[0]
    )


def _by_elements(sweep: Sweep, adjoint: Adjoint, wanted: mlir.Value, read: Read) -> mlir.Value:
    """The cotangent of an operand with any map, by loops over the iteration space."""

    def store(values: Values, pullback: Pullback, indices: list[mlir.Value], total: mlir.Value) -> mlir.Value:
        cotangent = pullback.cotangents.get(wanted)
        if cotangent is None:
            return total
        index = [_apply(e, indices) for e in read.map.results]
        return _added(total, cotangent, index)

    return _over_elements(sweep, adjoint, tensors.zeros_like(read.tensor), store)


def _of_captured(sweep: Sweep, adjoint: Adjoint, tensor: mlir.Value) -> mlir.Value:
    """The cotangent of a tensor that the body reads at computed indices: the transpose of a gather is a scatter."""
    s = adjoint.s

    def store(values: Values, pullback: Pullback, indices: list[mlir.Value], total: mlir.Value) -> mlir.Value:
        for op in s.body:
            if op.name == "tensor.extract" and op.operands[0] == tensor and op.results[0] in pullback.cotangents:
                index = [values.get(x, x) for x in list(op.operands)[1:]]
                total = _added(total, pullback.cotangents[op.results[0]], index)
        return total

    return _over_elements(sweep, adjoint, tensors.zeros_like(tensor), store)


def _over_elements(sweep: Sweep, adjoint: Adjoint, start: mlir.Value, store: Callable[..., mlir.Value]) -> mlir.Value:
    s = adjoint.s
    given = [*s.inputs, *([] if s.reduces else s.inits)]
    active = _active_values(sweep, s)

    def body(indices: list[mlir.Value], total: mlir.Value) -> mlir.Value:
        scalars = [_element(r, indices) for r in (*given, *adjoint.extra)]
        values = dict(zip(s.block.arguments, scalars[: len(given)]))
        if s.reduces:
            values.update(s.empty_accumulators())
        s.copy_body(values, indices)
        pullback = Pullback(values, active)
        adjoint.seed(pullback, values, scalars[len(given) :])
        pullback.run(s.body)
        return store(values, pullback, indices, total)

    return tensors.nest(s.sizes, start, body)


def _element(read: Read, indices: list[mlir.Value]) -> mlir.Value:
    index = [_apply(e, indices) for e in read.map.results]
    return emit.value("tensor.extract", [read.tensor, *index], read.tensor.type.element_type)


def _added(total: mlir.Value, term: mlir.Value, index: list[mlir.Value]) -> mlir.Value:
    old = emit.value("tensor.extract", [total, *index], total.type.element_type)
    return emit.value("tensor.insert", [add(old, term), total, *index], total.type)


def _apply(expression: mlir.AffineExpr, indices: list[mlir.Value]) -> mlir.Value:
    if isinstance(expression, mlir.AffineDimExpr):
        return indices[expression.position]
    map_ = mlir.AffineMapAttr.get(mlir.AffineMap.get(len(indices), 0, [expression]))
    return emit.value("affine.apply", indices, mlir.IndexType.get(), map=map_)


@transpose("linalg.fill")
def fill(sweep: Sweep, op: mlir.Operation) -> None:
    """The cotangent of the fill value is the sum of the cotangents."""
    scalar, cotangent = op.operands[0], sweep.cotangents[op.results[0]]
    if not sweep.is_active(scalar):
        return
    rank = len(cotangent.type.shape)
    empty = mlir.AffineMap.get(rank, 0, [])
    type_ = tensors.type_like(cotangent.type, [])
    total = tensors.generic([cotangent], [mlir.AffineMap.get_identity(rank)], type_, empty, lambda xs: xs[0])
    sweep.add(scalar, emit.value("tensor.extract", [total], scalar.type), op.results[0] in sweep.masked)
