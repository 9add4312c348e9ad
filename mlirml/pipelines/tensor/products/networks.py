"""Products of tensors read and built: contractions whose dims have labels, and trees of them as one sum of products."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field

from mlirml.analysis.constants import constant_of, float_of
from mlirml.analysis.contractions import BY_MAPS, CONTRACTIONS
from mlirml.analysis.cost import element_bytes
from mlirml.analysis.structured import indexing_maps, map_of
from mlirml.analysis.trip_counts import trip_count
from mlirml.analysis.values import has_one_use
from mlirml.codegen.cpu.contract.problem import match_contraction
from mlirml.core.dataclass import dataclass
from mlirml.ir import emit, erase
from mlirml.ir.bindings import block_ops, defining_op, mlir
from mlirml.passes import NoMatch
from mlirml.passes.report import add_remark
from mlirml.pipelines.tensor.fold_contract import match_copy
from mlirml.pipelines.tensor.products.orders import Problem, Tree

Dims = tuple[int, ...]

MOST_FACTORS = 10
"""The most factors of one sum of products that are ordered together."""
_UNKNOWN_TRIPS = 100
"""The trip count that is assumed for a loop whose bounds are not known."""
_LOOPS = ("scf.for", "scf.while")
_VIEWS = ("tensor.extract_slice", "tensor.collapse_shape", "tensor.expand_shape", "tensor.empty", "arith.constant")


@dataclass(frozen=True)
class Factor:
    """A tensor, and the label of each of its dims."""

    value: mlir.Value
    dims: Dims


@dataclass(frozen=True)
class Product:
    """A contraction: the sum of the product of two factors over the labels that are not in `dims`, those of its result.

    `element` is the type that it multiplies and adds in; `casts` tells whether it converts its factors to that.
    """

    op: mlir.Operation
    factors: tuple[Factor, Factor]
    dims: Dims
    sizes: Mapping[int, int]
    element: mlir.Type
    casts: bool

    @property
    def summed(self) -> frozenset[int]:
        """The labels of the dims that are summed over."""
        return frozenset(self.factors[0].dims) & frozenset(self.factors[1].dims) - frozenset(self.dims)

    @property
    def problem(self) -> Problem:
        """The sum of products for `orders`."""
        first, second = (frozenset(factor.dims) for factor in self.factors)
        return Problem((first, second), frozenset(self.dims), self.sizes, element_bytes(self.element))


@dataclass
class Network:
    """Factors whose product is summed over the labels that are not in `dims`; `tree` is the order in the program.

    `ops` are the operations of the tree, the last of the program first.
    """

    element: mlir.Type
    dims: Dims
    sizes: dict[int, int]
    factors: list[Factor] = field(default_factory=list)
    ops: list[mlir.Operation] = field(default_factory=list)
    tree: Tree = 0


def match_product(op: mlir.Operation | None) -> Product:
    """Match a contraction of tensors of static shape whose init is zero; raises `NoMatch`."""
    if op is None or op.name not in CONTRACTIONS or len(op.results) != 1:
        raise NoMatch("no contraction of tensors")
    if "mlirml.schedule" in op.attributes or not is_zero(op.operands[2]):
        raise NoMatch("it is scheduled, or adds to something")
    found = match_contraction(op)
    if any(found.sizes[d] != 1 for d in found.rest) or found.rest or not found.k or 0 in found.sizes:
        raise NoMatch("no sum of products")
    a, b, dims = found.maps
    factors = Factor(op.operands[0], a), Factor(op.operands[1], b)
    element = op.results[0].type.element_type
    casts = any(str(operand.element) != str(element) for operand in found.operands)
    return Product(op, factors, dims, dict(enumerate(found.sizes)), element, casts)


def may_be_product(value: mlir.Value) -> bool:
    """False for values that are clearly no product, which takes less time than to match one."""
    op = defining_op(value)
    while op is not None and may_be_copy(op, most_ops=1):
        op = defining_op(op.operands[0])
    return op is not None and op.name in CONTRACTIONS


def may_be_copy(op: mlir.Operation, most_ops: int) -> bool:
    """True for a transpose, and for a `linalg.generic` of one or two tensors with so few operations in its body."""
    if op.name == "linalg.transpose":
        return True
    return op.name == "linalg.generic" and len(op.operands) <= 3 and len(op.regions[0].blocks[0].operations) <= most_ops


def is_zero(value: mlir.Value) -> bool:
    """True for a tensor that is filled with zero."""
    fill = defining_op(value)
    if fill is None or fill.name != "linalg.fill":
        return False
    return constant_of(fill.operands[0]) == 0 or float_of(fill.operands[0]) == 0


def may_rewrite(element: mlir.Type, exact: bool) -> bool:
    """True if sums and products of elements may be added up in another order: integers wrap around to the same."""
    return not exact or isinstance(element, mlir.IntegerType)


def through_transposes(factor: Factor, *, only_uses: bool) -> tuple[Factor, list[mlir.Operation]]:
    """The factor before its transposes, and these; with `only_uses` they must be the only users of what they read."""
    passed: list[mlir.Operation] = []
    while True:
        try:
            copy = match_copy(defining_op(factor.value))
        except NoMatch:
            return factor, passed
        if copy.casts or (only_uses and not has_one_use(factor.value)):
            return factor, passed
        factor = Factor(copy.source, tuple(factor.dims[d] for d in copy.order))
        passed.append(copy.op)


def inner_product(factor: Factor, block: mlir.Block) -> tuple[Product, Factor, list[mlir.Operation]]:
    """The product that a factor is, with the factor before transposes, and these; raises `NoMatch` if it is used
    elsewhere.
    """
    source, passed = through_transposes(factor, only_uses=True)
    op = defining_op(source.value)
    if op is None or not has_one_use(source.value) or op.block != block:
        raise NoMatch("it is used elsewhere")
    return match_product(op), source, passed


def read_network(root: Product) -> Network:
    """The tree of the products that are computed for `root` only, as one sum of products."""
    network = Network(root.element, root.dims, dict(root.sizes), ops=[root.op])

    def absorb(factor: Factor, left: int) -> Tree:
        try:
            if left < 2:
                raise NoMatch("enough factors")
            found, source, passed = inner_product(factor, root.op.block)
            if found.casts or found.element != root.element:
                raise NoMatch("it is computed in another type")
        except NoMatch:
            network.factors.append(factor)
            return len(network.factors) - 1
        labels = dict(zip(found.dims, source.dims, strict=True))
        for d, size in found.sizes.items():
            if d not in labels:
                labels[d] = len(network.sizes)
                network.sizes[labels[d]] = size
        network.ops += [*passed, found.op]
        return both(Product(found.op, _renamed(found, labels), (), {}, found.element, False), left)

    def both(product: Product, left: int) -> Tree:
        first, second = product.factors
        before = len(network.factors)
        one = absorb(first, left - 1)
        return one, absorb(second, left - (len(network.factors) - before))

    network.tree = both(root, MOST_FACTORS)
    return network


def _renamed(product: Product, labels: Mapping[int, int]) -> tuple[Factor, Factor]:
    first, second = (Factor(f.value, tuple(labels[d] for d in f.dims)) for f in product.factors)
    return first, second


def loop_around(op: mlir.Operation) -> tuple[mlir.Operation | None, int]:
    """The loop whose body an operation is in, and its trip count, or a guess at that; None and 1 outside of loops."""
    parent = op.parent
    loop = None if parent is None else parent.operation
    if loop is None or loop.name not in _LOOPS:
        return None, 1
    known = trip_count(loop) if loop.name == "scf.for" else None
    return loop, max(1, _UNKNOWN_TRIPS if known is None else known)


def is_invariant(value: mlir.Value, block: mlir.Block, depth: int = 4) -> bool:
    """True if a value is the same in each iteration of the loop whose body is `block`."""
    op = defining_op(value)
    if op is None:
        return bool(value.owner != block)
    if op.block != block:
        return True
    if not depth or not (op.name.startswith("linalg.") or op.name in _VIEWS):
        return False
    return all(is_invariant(operand, block, depth - 1) for operand in op.operands)


def build_tree(network: Network, tree: Tree) -> mlir.Value:
    """The result of a network, its products in the order of a tree, at the insertion point."""
    uses: dict[int, int] = {}
    for factor in network.factors:
        for d in factor.dims:
            uses[d] = uses.get(d, 0) + 1
    shared = {d for d, count in uses.items() if count > 2}

    def factor_of(part: Tree, out: Dims | None) -> Factor:
        if isinstance(part, int):
            return network.factors[part]
        first, second = factor_of(part[0], None), factor_of(part[1], None)
        for dims in (first.dims, second.dims):
            for d in dims:
                uses[d] -= 1
        if out is None:
            found = dict.fromkeys((*first.dims, *second.dims))
            kept = [d for d in found if uses[d] or d in network.dims]
            out = (*(d for d in kept if d in shared), *(d for d in kept if d not in shared))
            for d in out:
                uses[d] += 1
        return Factor(build_product(first, second, out, network.sizes, network.element), out)

    return factor_of(tree, network.dims).value


def build_product(
    first: Factor, second: Factor, dims: Dims, sizes: Mapping[int, int], element: mlir.Type
) -> mlir.Value:
    """The contraction of two factors to `dims` at the insertion point, a named one where there is one."""
    kept = [d for d in dims if d not in first.dims or d not in second.dims]
    if kept and kept[0] not in first.dims and kept[-1] not in second.dims:
        first, second = second, first
    batch = [d for d in dims if d in first.dims and d in second.dims]
    m, n = ([d for d in dims if d in f.dims and d not in batch] for f in (first, second))
    k = [d for d in first.dims if d in second.dims and d not in dims]
    order = {d: position for position, d in enumerate((*batch, *m, *n, *k))}
    lists = [[order[d] for d in each] for each in (first.dims, second.dims, dims)]
    out = zeros([sizes[d] for d in dims], element)
    operands = [first.value, second.value, out]
    floats = isinstance(element, mlir.FloatType)

    def body(xs: list[mlir.Value]) -> mlir.Value:
        product = emit.same_type("arith.mulf" if floats else "arith.muli", xs[0], xs[1])
        return emit.same_type("arith.addf" if floats else "arith.addi", xs[2], product)

    name = _NAMES.get(_normal(lists))
    if name is not None:
        return emit.named_contraction(name, operands, body)
    return emit.contract(operands, [map_of(len(order), each) for each in lists], body)


def zeros(shape: Sequence[int], element: mlir.Type) -> mlir.Value:
    """A tensor of zeros."""
    return emit.fill(emit.zero(element), emit.empty(mlir.RankedTensorType.get(list(shape), element))).results[0]


def _normal(maps: Sequence[Sequence[int | str]]) -> tuple[Dims, ...]:
    """Dims named in the order in which they occur."""
    names: dict[int | str, int] = {}
    return tuple(tuple(names.setdefault(d, len(names)) for d in dims) for dims in maps)


_NAMES = {_normal([list(text) for text in key]): name for key, name in BY_MAPS.items()}


def build_sum(factor: Factor, kept: Dims, element: mlir.Type) -> Factor:
    """The sum of a factor over the dims that are not kept, at the insertion point."""
    lost = [d for d in factor.dims if d not in kept]
    rest = tuple(d for d in factor.dims if d in kept)
    if not lost:
        return factor
    shape = dict(zip(factor.dims, factor.value.type.shape, strict=True))
    rank = len(factor.dims)
    maps = [mlir.AffineMap.get_identity(rank), map_of(rank, [factor.dims.index(d) for d in rest])]
    add = "arith.addf" if isinstance(element, mlir.FloatType) else "arith.addi"
    iterators = ["parallel" if d in kept else "reduction" for d in factor.dims]
    out = zeros([shape[d] for d in rest], element)
    op = emit.generic([factor.value], [out], maps, iterators, lambda xs: [emit.same_type(add, xs[0], xs[1])])
    return Factor(op.results[0], rest)


def erase_unused(ops: Sequence[mlir.Operation]) -> None:
    """Erase operations whose results are unused, the users first, and the inits that they leave."""
    for op in ops:
        if erase.is_unused(op):
            operands = list(op.operands)
            op.erase()
            erase.erase_unused(operands, lambda init: init.name in ("linalg.fill", "tensor.empty"))


def tell(location: mlir.Location, text: str) -> None:
    """Add the remark about a rewrite, which `.explain()` shows at the user's line."""
    add_remark(location, f"rewritten: {text}", outcome="rewritten")


def same_maps(op: mlir.Operation) -> bool:
    """True if a structured operation reads and writes element by element in the order of its loops."""
    maps = indexing_maps(op)
    return all(each == mlir.AffineMap.get_identity(each.n_dims) for each in maps)


def body_of(op: mlir.Operation) -> tuple[list[mlir.Operation], mlir.Block]:
    """The operations of the body of a structured operation without its `linalg.yield`, and the body."""
    block = op.regions[0].blocks[0]
    return block_ops(block)[:-1], block
