"""Move scalings: numbers by which products are multiplied or divided, and broadcasts, leave chains of products.

Before:
    %p = linalg.matmul ins(%a, %b : tensor<90x4xf32>, tensor<4x80xf32>) outs(%zeros0)
    %q = linalg.generic {maps = [(i, j) -> (i, j), ...]} ins(%p) outs(%e0) { arith.divf %in, %c }
    %r = linalg.matvec ins(%q, %v : tensor<90x80xf32>, tensor<80xf32>) outs(%zeros1)
    %w = linalg.generic {maps = [(i, j) -> (j), (i, j) -> (i, j)]} ins(%u : tensor<80xf32>) outs(%e1)   // broadcast
    %s = linalg.matmul ins(%w, %d : tensor<60x80xf32>, tensor<80x50xf32>) outs(%zeros2)
After:
    %p = linalg.matmul ins(%a, %b : tensor<90x4xf32>, tensor<4x80xf32>) outs(%zeros0)
    %q = linalg.matvec ins(%p, %v : tensor<90x80xf32>, tensor<80xf32>) outs(%zeros1)
    %r = linalg.generic {maps = [(i) -> (i), ...]} ins(%q) outs(%e0) { arith.divf %in, %c }
    %x = linalg.vecmat ins(%u, %d : tensor<80xf32>, tensor<80x50xf32>) outs(%zeros2)
    %s = linalg.generic {maps = [(i, j) -> (j), (i, j) -> (i, j)]} ins(%x : tensor<50xf32>) outs(%e1)

The products may then be ordered, and the gradient of a sum, whose chain begins with a broadcast one, needs no matrix of
ones. Scalings of products of which no factor is a product stay: kernels compute them as they read or write. A broadcast
over dims of the result is exact; one over dims that are summed, and a scaling, are reassociated, which `exact` forbids
for floats. A division of integers stays.
"""

from __future__ import annotations

from contextlib import suppress

from mlirml.analysis.constants import is_constant
from mlirml.analysis.contractions import CONTRACTIONS
from mlirml.analysis.costs import is_worth
from mlirml.analysis.structured import indexing_maps, is_parallel, map_of
from mlirml.analysis.values import has_one_use
from mlirml.core.dataclass import dataclass, replace
from mlirml.ir import emit
from mlirml.ir.bindings import defining_op, mlir, named_operations
from mlirml.passes import NoMatch, Pass, register
from mlirml.passes.presence import ANY_CONTRACTION
from mlirml.pipelines.tensor.products import networks, orders
from mlirml.pipelines.tensor.products.networks import Dims, Factor, Product

_MOST_OPS = 3
"""The operations in the body of a scaling: a constant, the scaling, and the yield."""
_SCALINGS = ("arith.mulf", "arith.muli", "arith.divf")


@register(when=ANY_CONTRACTION, optional=True)
class MoveScalingsPass(Pass):
    """Move scalings and broadcasts of factors after the product. With `exact` only where no float is reassociated."""

    exact: bool = False

    def run(self, module: mlir.Operation) -> None:
        for op in named_operations(module, CONTRACTIONS):  # in the order of the program: they move through chains
            with suppress(NoMatch):
                move(op, self.exact)


def move(op: mlir.Operation, exact: bool) -> None:
    """Move what the factors of a product are scaled by, then what they are broadcast over; raises `NoMatch`."""
    owners = [defining_op(value) for value in list(op.operands)[:2]]
    if not any(owner is not None and networks.may_be_copy(owner, _MOST_OPS) for owner in owners):
        raise NoMatch("no scaling and no broadcast")
    product = networks.match_product(op)
    if product.casts:
        raise NoMatch("it converts its factors")
    if networks.may_rewrite(product.element, exact):
        for number in (0, 1):
            try:
                product = scaling_moved(product, number)
            except NoMatch:
                continue
    broadcasts_moved(product, exact)


@dataclass(frozen=True)
class Scaling:
    """An elementwise operation on the operand at `position` and a number.

    The number is the operand `scalar`, which has rank 0, or a constant in the body.
    """

    op: mlir.Operation
    position: int
    scalar: mlir.Value | None


def match_scaling(op: mlir.Operation | None) -> Scaling:
    """Match an elementwise operation that multiplies or divides a tensor by one number; raises `NoMatch`."""
    if op is None or op.name != "linalg.generic" or len(op.results) != 1 or not is_parallel(op):
        raise NoMatch("no scaling")
    ops, block = networks.body_of(op)
    computed = [each for each in ops if each.name != "arith.constant"]
    maps = indexing_maps(op)
    if len(computed) != 1 or computed[0].name not in _SCALINGS:
        raise NoMatch("no scaling")
    if block.operations[len(block.operations) - 1].operands[0] != computed[0].results[0]:
        raise NoMatch("it gives something else")
    identity = mlir.AffineMap.get_identity(maps[0].n_dims)
    wide = [n for n in range(len(op.operands) - 1) if maps[n] == identity and maps[n].n_dims]
    if len(wide) != 1 or maps[-1] != identity or len(op.operands) > 3:
        raise NoMatch("it scales by more than a number")
    scalars = [value for n, value in enumerate(list(op.operands)[:-1]) if n not in wide]
    if any(value.type.rank for value in scalars if isinstance(value.type, mlir.RankedTensorType)):
        raise NoMatch("it scales by more than a number")
    element, *others = sorted(computed[0].operands, key=lambda value: value != block.arguments[wide[0]])
    known = [block.arguments[n] for n in range(len(op.operands) - 1) if n not in wide]
    if element != block.arguments[wide[0]] or not (others[0] in known or is_constant(others[0])):
        raise NoMatch("it computes something else")
    if computed[0].name == "arith.divf" and computed[0].operands[0] != element:
        raise NoMatch("it divides by the product")
    return Scaling(op, wide[0], scalars[0] if scalars else None)


def scaling_moved(product: Product, number: int) -> Product:
    """The product with a factor that is a scaled product replaced by that; its result is scaled. Raises `NoMatch`."""
    if not has_one_use(product.factors[number].value):
        raise NoMatch("it is used elsewhere")
    factor, passed = networks.through_transposes(product.factors[number], only_uses=True)
    scaling = match_scaling(defining_op(factor.value))
    if not has_one_use(factor.value) or scaling.op.block != product.op.block:
        raise NoMatch("it is used elsewhere")
    inner = Factor(scaling.op.operands[scaling.position], factor.dims)
    networks.inner_product(inner, product.op.block)  # or there is no chain
    factors = [*product.factors]
    factors[number] = inner
    op = product.op
    with op.location, mlir.InsertionPoint(op):
        made = networks.build_product(factors[0], factors[1], product.dims, product.sizes, product.element)
        result = build_scaling(scaling, made)
    op.results[0].replace_all_uses_with(result)
    networks.erase_unused([op, *passed, scaling.op])
    return networks.match_product(defining_op(made))


def build_scaling(scaling: Scaling, value: mlir.Value) -> mlir.Value:
    """A tensor scaled in the same way, at the insertion point."""
    rank = value.type.rank
    identity, nothing = mlir.AffineMap.get_identity(rank), mlir.AffineMap.get(rank, 0, [])
    more = [] if scaling.scalar is None else [scaling.scalar]
    _, block = networks.body_of(scaling.op)
    first = scaling.position == 0

    def body(xs: list[mlir.Value]) -> list[mlir.Value]:
        element, *scalar = xs[:-1]
        ordered = [element, *scalar] if first else [*scalar, element]
        return emit.body_again(block, [*ordered, xs[-1]])

    maps = [identity, *[nothing] * len(more), identity]
    return emit.generic([value, *more], [emit.empty(value.type)], maps, ["parallel"] * rank, body).results[0]


@dataclass(frozen=True)
class Broadcast:
    """The factor before a broadcast, and the operation that broadcasts it."""

    factor: Factor
    op: mlir.Operation


def match_broadcast(factor: Factor) -> Broadcast:
    """Match a factor that repeats a tensor of lower rank along dims; raises `NoMatch`."""
    op = defining_op(factor.value)
    if op is None or op.name != "linalg.generic" or len(op.operands) != 2 or len(op.results) != 1:
        raise NoMatch("no broadcast")
    source, target = indexing_maps(op)
    ops, block = networks.body_of(op)
    last = block.operations[len(block.operations) - 1]
    if ops or last.operands[0] != block.arguments[0] or not isinstance(op.operands[0].type, mlir.RankedTensorType):
        raise NoMatch("no broadcast")
    if not source.is_projected_permutation or not target.is_permutation or len(source.results) == target.n_dims:
        raise NoMatch("no broadcast")
    written = [mlir.AffineDimExpr(e).position for e in target.results]
    dims = tuple(factor.dims[written.index(mlir.AffineDimExpr(e).position)] for e in source.results)
    return Broadcast(Factor(op.operands[0], dims), op)


def broadcasts_moved(product: Product, exact: bool) -> None:
    """Replace a product with a broadcast factor by that of the factor before it; raises `NoMatch`."""
    found: list[Broadcast | None] = []
    factors: list[Factor] = []
    for factor in product.factors:
        try:
            broadcast = match_broadcast(networks.through_transposes(factor, only_uses=False)[0])
        except NoMatch:
            found.append(None)
            factors.append(factor)
        else:
            found.append(broadcast)
            factors.append(broadcast.factor)
    if not any(found):
        raise NoMatch("no broadcast")
    first, second = (frozenset(factor.dims) for factor in factors)
    if not product.summed <= first | second:
        raise NoMatch("a sum of equal numbers")
    result = frozenset(product.dims)
    kept = [tuple(d for d in f.dims if d in result or d in first & second) for f in factors]
    if (first ^ second) - result and not networks.may_rewrite(product.element, exact):
        raise NoMatch("the factor of a sum would leave it")
    dims = tuple(d for d in product.dims if d in first | second)
    without = replace(product.problem, factors=tuple(map(frozenset, kept)), result=frozenset(dims))
    old, new = orders.cost_of(product.problem, (0, 1)), orders.cost_of(without, (0, 1))
    if not is_worth(new.time, old.time):
        raise NoMatch("it would cost as much")
    op = product.op
    with op.location, mlir.InsertionPoint(op):
        sums = [networks.build_sum(f, own, product.element) for f, own in zip(factors, kept, strict=True)]
        made = build_term(sums[0], sums[1], dims, product)
        whole = build_broadcast(made, dims, product)
    networks.tell(op.location, f"a broadcast factor of `a @ b` is not repeated: {orders.saving(old, new)}")
    op.results[0].replace_all_uses_with(whole)
    networks.erase_unused([op, *(each.op for each in found if each is not None)])


def build_term(first: Factor, second: Factor, dims: Dims, product: Product) -> mlir.Value:
    """The product of two factors, summed over the labels that are not in `dims` if there are any."""
    if set(first.dims) - set(dims):
        return networks.build_product(first, second, dims, product.sizes, product.element)
    rank = len(dims)
    maps = [map_of(rank, [dims.index(d) for d in factor.dims]) for factor in (first, second)]
    out = emit.empty(mlir.RankedTensorType.get([product.sizes[d] for d in dims], product.element))
    multiply = "arith.mulf" if isinstance(product.element, mlir.FloatType) else "arith.muli"

    def body(xs: list[mlir.Value]) -> list[mlir.Value]:
        return [emit.same_type(multiply, xs[0], xs[1])]

    operands, all_maps = [first.value, second.value], [*maps, mlir.AffineMap.get_identity(rank)]
    return emit.generic(operands, [out], all_maps, ["parallel"] * rank, body).results[0]


def build_broadcast(value: mlir.Value, dims: Dims, product: Product) -> mlir.Value:
    """A tensor with the labels `dims` repeated along the others of a product's result, at the insertion point."""
    rank = len(product.dims)
    if len(dims) == rank:
        return value
    out = emit.empty(product.op.results[0].type)
    maps = [map_of(rank, [product.dims.index(d) for d in dims]), mlir.AffineMap.get_identity(rank)]
    return emit.generic([value], [out], maps, ["parallel"] * rank, lambda xs: [xs[0]]).results[0]
