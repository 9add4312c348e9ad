"""Factor products: sums and differences of products that have a factor in common become one product.

Before:
    %p = linalg.matmul ins(%a, %b : tensor<90x80xf32>, tensor<80x70xf32>) outs(%zeros0)
    %q = linalg.matmul ins(%a, %c : tensor<90x80xf32>, tensor<80x70xf32>) outs(%zeros1)
    %s = linalg.generic {maps = [(i, j) -> (i, j), ...]} ins(%p, %q) outs(%e) { arith.addf }
After:
    %t = linalg.generic {maps = [(k, j) -> (k, j), ...]} ins(%b, %c) outs(%e) { arith.addf }
    %s = linalg.matmul ins(%a, %t : tensor<90x80xf32>, tensor<80x70xf32>) outs(%zeros0)

Half of the flops are left. The products must have no other user. Integers wrap around to the same numbers; floats are
reassociated, which `exact` forbids.

Products that share a factor but are not added up (`x @ wq, x @ wk, x @ wv`) stay apart: joined in one wide product they
took 1.05 to 3 times as long for the weights to be concatenated, and as long with weights that were one array before (1
to 2048 rows, 256 and 768 columns, one thread, Zen 4).
"""

from __future__ import annotations

from contextlib import suppress

from mlirml.analysis.costs import is_worth
from mlirml.analysis.structured import is_parallel, map_of
from mlirml.analysis.values import has_one_use
from mlirml.core.dataclass import dataclass
from mlirml.ir import emit
from mlirml.ir.bindings import mlir, named_operations
from mlirml.passes import NoMatch, Pass, register
from mlirml.passes.presence import TWO_CONTRACTIONS
from mlirml.pipelines.tensor.products import networks, orders
from mlirml.pipelines.tensor.products.networks import Dims, Factor, Product

_SUMS = ("arith.addf", "arith.addi", "arith.subf", "arith.subi")


@register(when=TWO_CONTRACTIONS, optional=True)
class FactorProductsPass(Pass):
    """Take common factors out of sums of two products. With `exact` only of integers."""

    exact: bool = False

    def run(self, module: mlir.Operation) -> None:
        for op in named_operations(module, ("linalg.generic",)):
            with suppress(NoMatch):
                factor(op, self.exact)


@dataclass(frozen=True)
class Common:
    """The factor `shared` of two products, and the other factor of each, all with the labels of the first product."""

    shared: Factor
    first: Factor
    second: Factor


def factor(op: mlir.Operation, exact: bool) -> None:
    """Replace one sum of two products; raises `NoMatch` where it is none."""
    combine = match_combination(op)
    products, passed = [], []
    for value in list(op.operands)[:2]:
        whole = Factor(value, tuple(range(len(value.type.shape))))
        product, source, between = networks.inner_product(whole, op.block)
        if product.casts or not networks.may_rewrite(product.element, exact):
            raise NoMatch("not to be reordered")
        products.append((product, source.dims))
        passed += [*between, product.op]
    (first, dims), (second, others) = products
    # The labels of the first product, for each label of the second.
    known = {label: first.dims[dims.index(dim)] for label, dim in zip(second.dims, others, strict=True)}
    common = match_common(first, second, known)
    result = tuple(first.dims[dims.index(dim)] for dim in range(len(dims)))
    problem = first.problem
    old = orders.cost_of(problem, (0, 1)) + orders.cost_of(second.problem, (0, 1))
    terms = frozenset(common.first.dims)
    new = orders.cost_of(problem, (0, 1)) + orders.sum_cost(problem, terms, terms)
    if not is_worth(new.time, old.time):
        raise NoMatch("it would cost as much")
    with op.location, mlir.InsertionPoint(op):
        total = Factor(build_combination(combine, common), common.first.dims)
        value = networks.build_product(common.shared, total, result, first.sizes, first.element)
    sign = "+" if "add" in combine else "-"
    networks.tell(
        op.location, f"`a @ b {sign} a @ c` has one factor in common, and is one product: {orders.saving(old, new)}"
    )
    op.results[0].replace_all_uses_with(value)
    networks.erase_unused([op, *passed])


def match_combination(op: mlir.Operation) -> str:
    """The operation of an elementwise sum or difference of two tensors; raises `NoMatch` for others."""
    if len(op.operands) != 3 or len(op.results) != 1 or not networks.same_maps(op) or not is_parallel(op):
        raise NoMatch("not elementwise")
    inner, block = networks.body_of(op)
    if len(inner) != 1 or inner[0].name not in _SUMS or list(inner[0].operands) != list(block.arguments)[:2]:
        raise NoMatch("no sum of its operands")
    if not all(has_one_use(value) for value in list(op.operands)[:2]):
        raise NoMatch("a product has other users")
    return str(inner[0].name)


def match_common(first: Product, second: Product, known: dict[int, int]) -> Common:
    """The factor that two products share, at the same dims of the result; `known` maps labels of their results."""
    for number, one in enumerate(first.factors):
        for position, other in enumerate(second.factors):
            left = networks.through_transposes(one, only_uses=False)[0]
            right = networks.through_transposes(other, only_uses=False)[0]
            rest, others = first.factors[1 - number], second.factors[1 - position]
            labels = dict(known)
            if left.value == right.value and _agree(left.dims, right.dims, first, labels):
                renamed = Factor(others.value, tuple(labels[d] for d in others.dims))
                if set(renamed.dims) == set(rest.dims):
                    return Common(left, rest, renamed)
    raise NoMatch("no factor in common")


def _agree(mine: Dims, theirs: Dims, first: Product, labels: dict[int, int]) -> bool:
    """True if the dims of one tensor in two products are the same ones; adds the dims that are summed to `labels`."""
    for own, other in zip(mine, theirs, strict=True):
        if other not in labels and own in first.summed:
            labels[other] = own
        if labels.get(other) != own:
            return False
    return True


def build_combination(combine: str, common: Common) -> mlir.Value:
    """The sum or difference of the factors that are not shared, at the insertion point."""
    first, second = common.first, common.second
    rank = len(first.dims)
    identity = mlir.AffineMap.get_identity(rank)
    maps = [identity, map_of(rank, [first.dims.index(d) for d in second.dims]), identity]
    out = emit.empty(first.value.type)
    parallel = ["parallel"] * rank

    def body(xs: list[mlir.Value]) -> list[mlir.Value]:
        return [emit.same_type(combine, xs[0], xs[1])]

    return emit.generic([first.value, second.value], [out], maps, parallel, body).results[0]
