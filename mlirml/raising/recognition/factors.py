"""Operands of products: factors grouped by the loops that they depend on.

An operand that is more than the elements of one tensor is built as a tensor before the product.

Before, in the body of a contraction over i, j, k:
    %0 = arith.mulf %alpha, %a        // %a = A[i, k]
    %1 = arith.mulf %0, %b            // %b = B[k, j]
    %2 = arith.addf %out, %1
After, an operand of the contraction:
    %s = linalg.generic ["parallel", "parallel"] ins(%alpha, %A) outs(%empty) { arith.mulf }
"""

from __future__ import annotations

from dataclasses import replace

from mlirml.analysis.structured import dims_in, map_of
from mlirml.core.dataclass import dataclass
from mlirml.ir import emit
from mlirml.ir.bindings import mlir
from mlirml.passes import NoMatch
from mlirml.raising.recognition.nest import Loops, Nest, Rebuild, loop_of_dims, restricted, union
from mlirml.raising.recognition.terms import Factor, Mask

_CASTS = ("arith.extf", "arith.extsi")
"""Conversions that named contractions include."""


@dataclass(frozen=True)
class Operand:
    """A product of factors, zero where a mask does not hold; `order` are the loops that it depends on."""

    order: tuple[int, ...]
    factors: tuple[Factor, ...]
    masks: tuple[Mask, ...] = ()
    negative: bool = False

    @property
    def loops(self) -> Loops:
        return frozenset(self.order)

    def times(self, other: Operand) -> Operand:
        """The product with the factors of an operand that depends on a subset of the loops."""
        return replace(self, factors=(*self.factors, *other.factors), masks=(*self.masks, *other.masks))


@dataclass(frozen=True)
class Direct:
    """An operand that is an operand of the nest unchanged: its number, its loops, and its widening cast."""

    number: int
    order: tuple[int, ...]
    cast: mlir.Operation | None


def operand_of(nest: Nest, factor: Factor) -> Operand:
    """The operand of one factor. Raises `NoMatch` for a sliding window: its elements would be duplicated many times."""
    leaves = nest.leaves(factor.value)
    for number in leaves:
        for expression in nest.maps[number].results:
            if len(dims_in(expression)) > 1:
                raise NoMatch("a window slides")
    check_picked(nest, factor.value)
    loops = nest.loops(factor.value)
    order: list[int] = []
    for number in leaves:  # in the memory order of the largest operand
        dims = [d for e in nest.maps[number].results for d in sorted(dims_in(e))]
        if len(set(dims)) > len(set(order)):
            order = list(dict.fromkeys(dims))
    order += sorted(loops - set(order))
    return Operand(tuple(d for d in order if d in loops), (factor,))


def check_picked(nest: Nest, value: mlir.Value) -> None:
    """Refuse elements that the body extracts itself, if they are those of a window."""
    for each in nest.sources(value):
        op = nest.inner(each)
        indices = list(op.operands)[1:] if op is not None and op.name == "tensor.extract" else []
        if any(len(nest.loops(index)) > 1 for index in indices):
            raise NoMatch("a window slides")


def match_direct(nest: Nest, operand: Operand) -> Direct | None:
    """The operand of the nest that this operand is, if it is one."""
    if operand.masks or operand.negative or len(operand.factors) != 1 or operand.factors[0].divides:
        return None
    (factor,) = operand.factors
    value, casts = factor.value, list(factor.casts)
    op = nest.inner(value)
    if op is not None and op.name in _CASTS:
        value, casts = op.operands[0], [op, *casts]
    number = nest.number(value)
    if number is None or number >= len(nest.inputs) or len(casts) > 1:
        return None
    try:
        return Direct(number, loop_of_dims(nest.maps[number]), casts[0] if casts else None)
    except NoMatch:
        return None


def build_operand(nest: Nest, operand: Operand, type_: mlir.Type) -> mlir.Value:
    """The operand as a tensor of element type `type_`, its dims in the order of `operand.order`."""
    values = [*(factor.value for factor in operand.factors), *(mask.condition for mask in operand.masks)]
    numbers = list(dict.fromkeys(number for value in values for number in nest.leaves(value)))
    rank = len(operand.order)
    maps = [restricted(nest.maps[number], operand.order) for number in numbers]
    out = emit.empty(mlir.RankedTensorType.get([nest.sizes[d] for d in operand.order], type_))

    def body(arguments: list[mlir.Value]) -> list[mlir.Value]:
        rebuild = Rebuild(nest, operand.order, dict(zip(numbers, arguments)))
        value = build_product(rebuild, operand, type_)
        if operand.masks:
            zero = emit.zero(type_)
            for mask in operand.masks:
                branches = [value, zero] if mask.wanted else [zero, value]
                value = emit.same_type("arith.select", rebuild(mask.condition), *branches)
        return [value]

    operands = [nest.operands[number] for number in numbers]
    op = emit.generic(operands, [out], [*maps, map_of(rank, range(rank))], ["parallel"] * rank, body)
    return op.results[0]


def build_product(rebuild: Rebuild, operand: Operand, type_: mlir.Type) -> mlir.Value:
    """The product of the factors of an operand, in their order; divisors come after factors."""
    letter = "f" if isinstance(type_, mlir.FloatType) else "i"
    total: mlir.Value | None = None
    for factor in sorted(operand.factors, key=lambda factor: factor.divides):
        value = rebuild(factor.value)
        for cast in factor.casts:
            value = emit.value(cast.name, [value], cast.results[0].type)
        if total is None:
            total = emit.same_type("arith.divf", emit.number(type_, 1), value) if factor.divides else value
        else:
            total = emit.same_type("arith.divf" if factor.divides else f"arith.mul{letter}", total, value)
    if total is None:
        total = emit.number(type_, 1)
    if operand.negative:
        zero = [] if letter == "f" else [emit.zero(type_)]
        total = emit.same_type("arith.negf" if letter == "f" else "arith.subi", *zero, total)
    return total


def gather(nest: Nest, factors: tuple[Factor, ...]) -> tuple[list[Operand], list[Factor]]:
    """Factors grouped by the loops that they depend on, each operand with all that depends on a subset; and scalars.

    A factor that fits several operands goes to the smallest.
    """
    scalars = [factor for factor in factors if not nest.loops(factor.value)]
    operands = [operand_of(nest, factor) for factor in factors if nest.loops(factor.value)]
    merged = True
    while merged and len(operands) > 2:
        merged = False
        for small in sorted(operands, key=lambda o: nest.volume(o.loops)):
            others = [o for o in operands if o is not small and small.loops <= o.loops]
            if others:
                host = min(others, key=lambda o: nest.volume(o.loops))
                joined = host.times(small)
                operands = [joined if o is host else o for o in operands if o is not small]
                merged = True
                break
    return operands, scalars


def used(operands: list[Operand]) -> Loops:
    return union(operand.loops for operand in operands)
