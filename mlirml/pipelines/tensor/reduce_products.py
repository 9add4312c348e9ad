"""Reduce products: of a product of which a part is read, or only sums, no more than that is computed.

Before:
    %p = linalg.matmul ins(%a, %b : tensor<90x20xf32>, tensor<20x90xf32>) outs(%zeros0)
    %f = tensor.collapse_shape %p [[0, 1]] : tensor<90x90xf32> into tensor<8100xf32>
    %d = tensor.extract_slice %f[0] [90] [91] : tensor<8100xf32> to tensor<90xf32>          // the diagonal
    %q = linalg.matmul ins(%a, %c : tensor<90x20xf32>, tensor<20x70xf32>) outs(%zeros1)
    %s = linalg.generic {maps = [(i, j) -> (i, j), (i, j) -> (i)]} ins(%q) outs(%zeros2) { arith.addf }
After:
    %d = linalg.contract indexing_maps = [(i, k) -> (i, k), (i, k) -> (k, i), (i, k) -> (i)] ins(%a, %b) outs(%zeros0)
    %t = linalg.generic {maps = [(k, j) -> (k, j), (k, j) -> (k)]} ins(%c) outs(%zeros1) { arith.addf }
    %s = linalg.matvec ins(%a, %t : tensor<90x20xf32>, tensor<20xf32>) outs(%zeros2)

Slices and diagonals of products are exact: each element is the same sum. A sum of products is the product of sums,
which reassociates: with `exact` only sums of integers, which wrap around to the same, are rewritten. The product must
have no other user.
"""

from __future__ import annotations

from collections.abc import Sequence

from mlirml.analysis.constants import constant_of
from mlirml.analysis.costs import is_worth
from mlirml.analysis.dimensions import kept_dims, slice_numbers
from mlirml.analysis.structured import indexing_maps, map_of, reductions_of
from mlirml.analysis.values import has_one_use
from mlirml.core.dataclass import dataclass, replace
from mlirml.ir import emit
from mlirml.ir.bindings import block_ops, defining_op, mlir, named_operations
from mlirml.passes import NoMatch, Pass, register
from mlirml.passes.presence import ANY_CONTRACTION
from mlirml.pipelines.tensor.products import networks, orders
from mlirml.pipelines.tensor.products.networks import Dims, Factor, Product

_READERS = ("tensor.extract_slice", "linalg.generic")
_ADDS = ("arith.addf", "arith.addi")


@register(when=ANY_CONTRACTION, optional=True)
class ReduceProductsPass(Pass):
    """Compute the slices, diagonals and sums of products without the products. With `exact` sums of integers only."""

    exact: bool = False

    def run(self, module: mlir.Operation) -> None:
        todo = named_operations(module, _READERS)
        while todo:  # the last one first: what it needs of its factors may be reduced in turn
            op = todo.pop()
            try:
                todo += self._reduced(op)
            except NoMatch:
                continue

    def _reduced(self, op: mlir.Operation) -> list[mlir.Operation]:
        if op.name == "tensor.extract_slice":
            return reduced_slice(op)
        return reduced_gather(op) if len(op.operands) == 1 else reduced_sum(op, self.exact)


@dataclass(frozen=True)
class Window:
    """The indices of a dim that are read: `size` of them from `offset` on, `stride` apart."""

    offset: int
    size: int
    stride: int = 1


def product_read(value: mlir.Value, block: mlir.Block) -> tuple[Product, Dims, list[mlir.Operation]]:
    """The product that a value is, the label of each dim of the value, and the transposes between.

    Raises `NoMatch` if there are other users of it.
    """
    rank = len(value.type.shape)
    product, source, passed = networks.inner_product(Factor(value, tuple(range(rank))), block)
    labels: list[int] = [0] * rank
    for label, dim in zip(product.dims, source.dims, strict=True):
        labels[dim] = label
    return product, tuple(labels), passed


def reduced_slice(op: mlir.Operation) -> list[mlir.Operation]:
    """Replace a slice or the diagonal of a product; returns new operations that may read products.

    Raises `NoMatch` where it is none.
    """
    source = op.operands[0]
    if len(op.operands) != 1 or not has_one_use(source):
        raise NoMatch("no static slice, or it has other users")
    owner = defining_op(source)
    if owner is not None and owner.name == "tensor.collapse_shape":
        return reduced_diagonal(op, owner)
    product, labels, passed = product_read(source, op.block)
    numbers = slice_numbers(op)
    windows = {label: Window(*found) for label, found in zip(labels, zip(*numbers, strict=True), strict=True)}
    kept = kept_dims(op, list(op.results[0].type.shape))
    dims = tuple(labels[d] for d in kept)
    dropped = frozenset(labels) - frozenset(dims)
    return rebuilt(op, product, windows, dims, dropped, {}, [op, *passed, product.op], "a slice")


def reduced_diagonal(op: mlir.Operation, collapse: mlir.Operation) -> list[mlir.Operation]:
    """Replace the diagonal of a product: a slice of the product with two dims collapsed to one."""
    product, labels, passed = product_read(collapse.operands[0], op.block)
    groups = [[dim.value for dim in group] for group in collapse.attributes["reassociation"]]
    shape = list(collapse.operands[0].type.shape)
    windows: dict[int, Window] = {}
    same: dict[int, int] = {}
    kept = kept_dims(op, list(op.results[0].type.shape))
    if len(kept) != len(groups):
        raise NoMatch("a dim is dropped")
    for group, offset, size, stride in zip(groups, *slice_numbers(op), strict=True):
        if len(group) == 1:
            windows[labels[group[0]]] = Window(offset, size, stride)
            continue
        if len(group) != 2 or stride != shape[group[1]] + 1 or same:
            raise NoMatch("no diagonal")
        row, column = divmod(offset, shape[group[1]])
        if row + size > shape[group[0]] or column + size > shape[group[1]]:
            raise NoMatch("the slice goes beyond the diagonal")
        first, second = labels[group[0]], labels[group[1]]
        windows |= {first: Window(row, size), second: Window(column, size)}
        same[second] = first
    if not same or any(set(next(iter(same.items()))) <= set(factor.dims) for factor in product.factors):
        raise NoMatch("no diagonal, or that of a factor")
    dims = tuple(labels[group[0]] for group in groups)
    ops = [op, collapse, *passed, product.op]
    return rebuilt(op, product, windows, dims, frozenset(), same, ops, "the diagonal")


def reduced_gather(op: mlir.Operation) -> list[mlir.Operation]:
    """Replace the elements that a `linalg.generic` reads of a product at the indices of its loops: a diagonal, too."""
    extract, indices = match_gather(op)
    product, labels, passed = product_read(extract.operands[0], op.block)
    shape = list(op.results[0].type.shape)
    windows: dict[int, Window] = {}
    same: dict[int, int] = {}
    of_loop: dict[int, int] = {}
    for label, (loop, offset) in zip(labels, indices, strict=True):
        size = 1 if loop is None else shape[loop]
        if not 0 <= offset <= product.sizes[label] - size:
            raise NoMatch("an index is out of bounds")
        windows[label] = Window(offset, size)
        if loop is not None and of_loop.setdefault(loop, label) != label:
            same[label] = of_loop[loop]
    if len(of_loop) != len(shape):
        raise NoMatch("it repeats elements")
    if any({label, first} <= set(factor.dims) for label, first in same.items() for factor in product.factors):
        raise NoMatch("the diagonal of a factor")
    dims = tuple(of_loop[loop] for loop in range(len(shape)))
    dropped = frozenset(labels) - frozenset(dims) - frozenset(same)
    ops = [op, *passed, product.op]
    return rebuilt(op, product, windows, dims, dropped, same, ops, "the diagonal" if same else "a slice")


def match_gather(op: mlir.Operation) -> tuple[mlir.Operation, list[tuple[int | None, int]]]:
    """The `tensor.extract` of a `linalg.generic` that does nothing else, and its indices: a loop, None for none, and
    what is added to its index.

    Raises `NoMatch` for other operations.
    """
    if op.name != "linalg.generic" or len(op.results) != 1 or any(reductions_of(op)):
        raise NoMatch("no reads of elements")
    (target,) = indexing_maps(op)
    *inner, last = block_ops(op.regions[0].blocks[0])
    found = [each for each in inner if each.name == "tensor.extract"]
    if target != mlir.AffineMap.get_identity(target.n_dims) or len(found) != 1:
        raise NoMatch("no reads of elements")
    if last.operands[0] != found[0].results[0]:
        raise NoMatch("it computes something else")
    return found[0], [_loop_index(value) for value in list(found[0].operands)[1:]]


def _loop_index(value: mlir.Value) -> tuple[int | None, int]:
    op = defining_op(value)
    number = constant_of(value)
    if number is not None:
        return None, number
    if op is not None and op.name == "linalg.index":
        return int(mlir.IntegerAttr(op.attributes["dim"]).value), 0
    if op is None or op.name != "arith.addi":
        raise NoMatch("an index depends on something else")
    (first, one), (second, two) = map(_loop_index, op.operands)
    if first is not None and second is not None:
        raise NoMatch("an index depends on two loops")
    return (second if first is None else first), one + two


def rebuilt(
    op: mlir.Operation,
    product: Product,
    windows: dict[int, Window],
    dims: Dims,
    dropped: frozenset[int],
    same: dict[int, int],
    ops: Sequence[mlir.Operation],
    what: str,
) -> list[mlir.Operation]:
    """Replace `op` by the product of slices of the factors.

    `windows` has the indices of each label of the result that are read, `dims` the labels of the new result, of which
    `dropped` are no part. Labels in `same` are read at the index of another one.
    """
    sizes = {**product.sizes, **{label: window.size for label, window in windows.items()}}
    if 0 in sizes.values():
        raise NoMatch("it is empty")

    def part_of(factor: Factor) -> tuple[list[Window], Dims]:
        own = [windows.get(d, Window(0, product.sizes[d])) for d in factor.dims]
        return own, tuple(same.get(d, d) for d in factor.dims if d not in dropped)

    parts = [part_of(factor) for factor in product.factors]
    used = frozenset(parts[0][1]) | frozenset(parts[1][1])
    new_problem = replace(
        product.problem, factors=tuple(frozenset(p[1]) for p in parts), result=frozenset(dims), sizes=sizes
    )
    old, new = orders.cost_of(product.problem, (0, 1)), orders.cost_of(new_problem, (0, 1))
    if not is_worth(new.time, old.time) or not product.summed <= used:
        raise NoMatch("it would cost as much")
    with op.location, mlir.InsertionPoint(op):
        operands = [sliced(f, own, dropped) for f, (own, _) in zip(product.factors, parts, strict=True)]
        out = networks.zeros([sizes[d] for d in dims], product.element)
        order = {d: position for position, d in enumerate(sorted(used))}
        lists = [[order[d] for d in each] for each in (parts[0][1], parts[1][1], dims)]
        body = product.op.regions[0].blocks[0]
        attributes = {"cast": product.op.attributes["cast"]} if "cast" in product.op.attributes else {}
        maps = [map_of(len(order), each) for each in lists]
        result = emit.contract([*operands, out], maps, lambda xs: emit.body_again(body, xs)[0], attributes)
    networks.tell(product.op.location, f"{what} of `a @ b` is computed alone: {orders.saving(old, new)}")
    op.results[0].replace_all_uses_with(result)
    networks.erase_unused(ops)
    made = [operand for operand, factor in zip(operands, product.factors) if operand != factor.value]
    return [each for each in map(defining_op, made) if each is not None]


def sliced(factor: Factor, windows: Sequence[Window], dropped: frozenset[int]) -> mlir.Value:
    """A slice of a factor, without the dropped dims."""
    shape = list(factor.value.type.shape)
    whole = all(window == Window(0, size) for window, size in zip(windows, shape, strict=True))
    if whole and not any(d in dropped for d in factor.dims):
        return factor.value
    kept = [window.size for window, d in zip(windows, factor.dims, strict=True) if d not in dropped]
    fields = [[getattr(window, name) for window in windows] for name in ("offset", "size", "stride")]
    return emit.extract_slice(factor.value, fields[0], fields[1], kept, fields[2])


def reduced_sum(op: mlir.Operation, exact: bool) -> list[mlir.Operation]:
    """Replace a sum over dims of a product; returns the sums of its factors. Raises `NoMatch` where it is none."""
    kept = match_sum(op)
    product, labels, passed = product_read(op.operands[0], op.block)
    if product.casts or not networks.may_rewrite(product.element, exact):
        raise NoMatch("not to be reordered")
    dims = tuple(labels[d] for d in kept)
    first, second = product.factors

    def left_of(factor: Factor, other: Factor) -> Dims:
        return tuple(d for d in factor.dims if d in other.dims or d in dims)

    left = left_of(first, second), left_of(second, first)
    old, new = costs_of(product, dims, left)
    if not is_worth(new.time, old.time):
        raise NoMatch("it would cost as much")
    with op.location, mlir.InsertionPoint(op):
        sums = []
        for factor, own in zip(product.factors, left, strict=True):
            if len(own) < len(factor.dims):
                factor = networks.through_transposes(factor, only_uses=False)[0]
            sums.append(networks.build_sum(factor, own, product.element))
        result = networks.build_product(sums[0], sums[1], dims, product.sizes, product.element)
    networks.tell(op.location, f"sums of `a @ b` are computed without the product: {orders.saving(old, new)}")
    op.results[0].replace_all_uses_with(result)
    networks.erase_unused([op, *passed, product.op])
    made = [f.value for f, own, old_factor in zip(sums, left, product.factors) if len(own) < len(old_factor.dims)]
    return [each for each in map(defining_op, made) if each is not None]


def costs_of(product: Product, dims: Dims, left: tuple[Dims, Dims]) -> tuple[orders.Cost, orders.Cost]:
    """The costs of the sums over a product, and of the product of the sums of its factors over all but `left`."""
    problem = product.problem
    old = orders.cost_of(problem, (0, 1)) + orders.sum_cost(problem, frozenset(product.dims), frozenset(dims))
    reduced = replace(problem, factors=tuple(map(frozenset, left)), result=frozenset(dims))
    new = orders.cost_of(reduced, (0, 1))
    for factor, own in zip(product.factors, left, strict=True):
        if len(own) < len(factor.dims):
            new += orders.sum_cost(problem, frozenset(factor.dims), frozenset(own))
    return old, new


def match_sum(op: mlir.Operation) -> list[int]:
    """The dims of its operand that a sum keeps, in the order of its result; raises `NoMatch` for other operations."""
    if op.name != "linalg.generic" or len(op.operands) != 2 or len(op.results) != 1 or not has_one_use(op.operands[0]):
        raise NoMatch("no sum")
    if not any(reductions_of(op)) or not networks.is_zero(op.operands[1]):
        raise NoMatch("no sum from zero")
    source, target = indexing_maps(op)
    if not source.is_permutation or not target.is_projected_permutation:
        raise NoMatch("it repeats elements")
    block = op.regions[0].blocks[0]
    *inner, last = block_ops(block)
    if len(inner) != 1 or inner[0].name not in _ADDS or last.operands[0] != inner[0].results[0]:
        raise NoMatch("it computes something else")
    if set(inner[0].operands) != set(block.arguments):
        raise NoMatch("it adds something else")
    read = [expression.position for expression in source.results]
    kept = [read.index(expression.position) for expression in target.results]
    reduced = reductions_of(op)
    if any(reduced[read[d]] == (d in kept) for d in range(len(read))):
        raise NoMatch("it broadcasts")
    return kept
