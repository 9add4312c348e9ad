"""Contractions: sums of products of two operands become `linalg.matmul` and its relatives, or `linalg.contract`.

Before:
    %r = linalg.generic {maps = [(i, j, k) -> (i, k), (i, j, k) -> (k, j), (i, j, k) -> (i, j)]}
        ins(%a, %b) outs(%c) { %0 = arith.mulf %x, %y  %1 = arith.addf %out, %0 }
After:
    %r = linalg.matmul ins(%a, %b) outs(%c)

Every factor of a term goes to one of two operands, by the loops that it depends on. An operand that is more than an
element of a tensor (scale factors, signs, conditions, functions of elements) is computed before the product, if that is
cheap compared with it: scale factors and signs on the smaller operand, so that `C -= alpha * A @ B` is one contraction.
Factors are thereby reassociated. Several terms are several contractions in sequence. Three operands are contracted
pairwise where that is less work than all at once.

A condition on the loops of the result selects between the old value and the sum. Any other one zeroes an operand, by
select, so that elements that the loops do not read have no effect even if they are NaN; but where the *other* operand
is not finite, its product with zero is NaN. Triangular domains are split into blocks (`triangle.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from mlirml.analysis.contractions import BY_MAPS
from mlirml.analysis.structured import map_of
from mlirml.core.dataclass import dataclass
from mlirml.ir import emit
from mlirml.ir.bindings import mlir
from mlirml.passes import NoMatch
from mlirml.raising.recognition.factors import Operand, build_operand, gather, match_direct, used
from mlirml.raising.recognition.nest import Loops, Nest, Rebuild, loop_of_dims, narrowed, restricted
from mlirml.raising.recognition.terms import Factor, Mask, Term, read_terms
from mlirml.raising.recognition.triangle import match_strips

_CHEAP = 2
"""The factor by which the work of the product must exceed that of computing an operand before it."""


@dataclass(frozen=True)
class Product:
    """One contraction: its operands, the conditions on the loops of the result, and the loops that repeat it.

    No operand depends on the loops `repeated`: the product is computed once for all their iterations.
    """

    x: Operand
    y: Operand
    masks: tuple[Mask, ...]
    repeated: tuple[int, ...] = ()

    @property
    def all_masks(self) -> tuple[Mask, ...]:
        return (*self.masks, *self.x.masks, *self.y.masks)


@dataclass(frozen=True)
class Contraction:
    """A generic as products that are added to its init; `out` are the loops of the result in order."""

    products: tuple[Product, ...]
    out: tuple[int, ...]


def match_contraction(nest: Nest) -> Contraction:
    """The products that a generic adds to its init; raises `NoMatch` for other generics."""
    terms = read_terms(nest)
    if not terms:
        raise NoMatch("nothing is added")
    out = loop_of_dims(nest.maps[-1])
    return Contraction(tuple(match_product(nest, term, out) for term in terms), out)


def is_plain(nest: Nest, contraction: Contraction) -> bool:
    """True if the generic is one product of two of its operands."""
    if len(contraction.products) != 1:
        return False
    (product,) = contraction.products
    direct = all(match_direct(nest, operand) is not None for operand in (product.x, product.y))
    return direct and not product.masks and not product.repeated


def match_product(nest: Nest, term: Term, out: tuple[int, ...]) -> Product:
    """The two operands of a term. Raises `NoMatch`."""
    operands, scalars = gather(nest, term.factors)
    if len(operands) != 2:
        raise NoMatch(f"a product of {len(operands)} operands")
    repeated = tuple(d for d in out if nest.sizes[d] != 1 and d not in used(operands))
    if repeated and not nest.is_static(out):
        raise NoMatch("a loop indexes the result only, whose sizes are dynamic")
    check_kind(nest, operands, out, repeated)
    # The operands keep the order of the body: a and b of `a * b`.
    masks = []
    for mask in term.masks:
        loops = nest.loops(mask.condition)
        if loops <= set(out):
            masks.append(mask)
        else:
            operands = put_mask(nest, operands, mask, loops)
    operands = put_scalars(nest, operands, scalars, term.negative)
    for operand in operands:
        check_cheap(nest, operand, (used(operands) | set(out)) - set(repeated))
    return Product(operands[0], operands[1], tuple(masks), repeated)


def check_kind(nest: Nest, operands: list[Operand], out: tuple[int, ...], repeated: tuple[int, ...]) -> None:
    """Refuse elementwise products, and loops that index one operand only, except those of the result alone."""
    x, y, c = (operands[0].loops, operands[1].loops, frozenset(out))
    if x | y | c != frozenset(range(nest.rank)):
        raise NoMatch("a loop indexes nothing")
    shared = [d for d in range(nest.rank) if nest.sizes[d] != 1 and d not in repeated]
    if any(sum(d in part for part in (x, y, c)) < 2 for d in shared):
        raise NoMatch("a loop indexes one operand only")
    m, n, k = (x & c) - y, (y & c) - x, (x & y) - c
    if not k:
        raise NoMatch("nothing is summed: an elementwise operation is as fast")
    if not m and not n:
        directs = [match_direct(nest, operand) for operand in operands]
        if any(direct is None for direct in directs):
            raise NoMatch("a sum of computed values along rows")
        first, second = (nest.inputs[direct.number] for direct in directs if direct is not None)
        if first == second:
            raise NoMatch("a sum of squares")


def put_mask(nest: Nest, operands: list[Operand], mask: Mask, loops: Loops) -> list[Operand]:
    """Zero an operand where the mask does not hold: the smaller one of those that have its loops."""
    fits = [o for o in operands if loops <= o.loops]
    if not fits:
        raise NoMatch("a condition on loops of both operands")
    host = min(fits, key=lambda o: nest.volume(o.loops))
    return [replace(o, masks=(*o.masks, mask)) if o is host else o for o in operands]


def put_scalars(nest: Nest, operands: list[Operand], scalars: list[Factor], negative: bool) -> list[Operand]:
    """Scale and negate one operand: one that must be computed anyway, or else the smaller one."""
    if not scalars and not negative:
        return operands
    sizes = [nest.volume(o.loops) for o in operands]
    computed = [match_direct(nest, o) is None for o in operands]
    # The order of the body is preserved unless the other operand is much smaller.
    host = min((0, 1), key=lambda n: (sizes[n] >= 4 * sizes[1 - n], not computed[n], sizes[n]))
    scaled = replace(operands[host], factors=(*scalars, *operands[host].factors), negative=negative)
    return [scaled if number == host else operand for number, operand in enumerate(operands)]


def check_cheap(nest: Nest, operand: Operand, loops: Loops) -> None:
    """Refuse an operand that is not cheap to compute compared with the product."""
    if match_direct(nest, operand) is not None:
        return
    if not nest.is_static(operand.loops):
        raise NoMatch("an operand of unknown size would be computed before the product")
    if _CHEAP * nest.volume(operand.loops) > nest.volume(loops):
        raise NoMatch("computing an operand before the product would not pay")


def build_contraction(nest: Nest, contraction: Contraction) -> tuple[mlir.Value, str]:
    """The new value of the output, and the name of the operation that computes it."""
    masks = [product.all_masks for product in contraction.products]
    shared = [mask for mask in contraction.products[0].all_masks if all(mask in each for each in masks)]
    repeated = any(product.repeated for product in contraction.products)
    strips = [] if repeated else match_strips(nest, shared, contraction.out)
    if not strips:
        return build_products(nest, contraction)
    total, names = nest.inits[0], []
    for strip in strips:
        part = narrowed(replace(nest, inits=(total,)), strip)
        value, name = build_products(part, contraction)
        total = emit.insert_slice(value, total, [strip.get(d, (0, 0))[0] for d in contraction.out])
        names.append(name)
    return total, f"{names[0]} in {len(strips)} strips of a triangle"


def build_products(nest: Nest, contraction: Contraction) -> tuple[mlir.Value, str]:
    """The contractions of a nest as a whole."""
    total = nest.inits[0]
    groups: dict[tuple[tuple[Mask, ...], tuple[int, ...]], list[Product]] = {}
    for product in contraction.products:
        groups.setdefault((product.masks, product.repeated), []).append(product)
    names = []
    for (masks, repeated), products in groups.items():
        added = tuple(d for d in contraction.out if d not in repeated)
        is_direct = not masks and not repeated
        start = total if is_direct else zeros(total.type, [nest.sizes[d] for d in added])
        for product in products:
            start, name = build_product(nest, product, added, start)
            names.append(name)
        total = start if is_direct else merge(nest, masks, contraction.out, (start, added), total)
    return total, " and ".join(dict.fromkeys(names))


def zeros(type_: mlir.Type, shape: Sequence[int] | None = None) -> mlir.Value:
    """Zeros of a type, or of its element type in another shape."""
    if shape is not None:
        type_ = mlir.RankedTensorType.get(list(shape), type_.element_type)
    return emit.fill(emit.zero(type_.element_type), emit.empty(type_)).results[0]


def merge(
    nest: Nest,
    masks: tuple[Mask, ...],
    out: tuple[int, ...],
    added: tuple[mlir.Value, tuple[int, ...]],
    old: mlir.Value,
) -> mlir.Value:
    """`old + added` where all masks hold, else `old`; `added` comes with its loops."""
    type_ = old.type.element_type
    numbers = list(dict.fromkeys(number for mask in masks for number in nest.leaves(mask.condition)))
    identity = map_of(len(out), range(len(out)))
    maps = [restricted(nest.maps[number], out) for number in numbers]

    def body(arguments: list[mlir.Value]) -> list[mlir.Value]:
        *values, extra, before = arguments
        rebuild = Rebuild(nest, out, dict(zip(numbers, values)))
        name = "arith.addf" if isinstance(type_, mlir.FloatType) else "arith.addi"
        value = emit.same_type(name, before, extra)
        for mask in masks:
            branches = [value, before] if mask.wanted else [before, value]
            value = emit.same_type("arith.select", rebuild(mask.condition), *branches)
        return [value]

    operands = [*(nest.operands[number] for number in numbers), added[0]]
    maps.append(map_of(len(out), [out.index(d) for d in added[1]]))
    return emit.generic(operands, [old], [*maps, identity], ["parallel"] * len(out), body).results[0]


def build_product(nest: Nest, product: Product, out: tuple[int, ...], start: mlir.Value) -> tuple[mlir.Value, str]:
    """`start` plus the product, and the name of the operation."""
    type_ = start.type.element_type
    values, orders, casts = [], [], []
    for operand in (product.x, product.y):
        direct = match_direct(nest, operand)
        if direct is not None:
            values.append(nest.inputs[direct.number])
            orders.append(direct.order)
            casts.append(direct.cast)
        else:
            values.append(build_operand(nest, operand, type_))
            orders.append(operand.order)
            casts.append(None)
    return emit_contraction(values, [*orders, out], casts, start)


def emit_contraction(
    values: Sequence[mlir.Value],
    orders: Sequence[Sequence[int]],
    casts: Sequence[mlir.Operation | None],
    start: mlir.Value,
) -> tuple[mlir.Value, str]:
    """`start` plus a contraction of two values; `orders` has the loops of their dims and of those of `start`."""
    values, casts = list(values), list(casts)
    x, y, out = map(tuple, orders)
    if named(x, y, out) is None and named(y, x, out) is not None:
        values, casts = values[::-1], casts[::-1]
        x, y = y, x
    name = named(x, y, out)
    letter = "f" if isinstance(start.type.element_type, mlir.FloatType) else "i"

    def body(xs: list[mlir.Value]) -> mlir.Value:
        *factors, total = xs
        inputs = [
            x if cast is None else emit.value(cast.name, [x], total.type)
            for x, cast in zip(factors, casts, strict=True)
        ]
        return emit.same_type(f"arith.add{letter}", total, emit.same_type(f"arith.mul{letter}", *inputs))

    if name is not None:
        return emit.named_contraction(name, [*values, start], body), name
    loops = sorted({*x, *y, *out})
    maps = [map_of(len(loops), [loops.index(d) for d in order]) for order in (x, y, out)]
    return emit.contract([*values, start], maps, body), "linalg.contract"


def named(x: Sequence[int], y: Sequence[int], out: Sequence[int]) -> str | None:
    """The named operation with these indexing maps; None if there is none."""
    batch = set(x) & set(y) & set(out)
    letters = dict(zip(batch, "hgf" if len(batch) == 1 else "???"))
    names = iter("ijklmnopq")
    for d in (*x, *y, *out):
        if d not in letters:
            letters[d] = next(names, "?")
    first, second, third = ("".join(letters[d] for d in order) for order in (x, y, out))
    return BY_MAPS.get((first, second, third))
