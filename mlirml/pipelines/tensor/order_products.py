"""Order products: a chain of matrix products is computed in the order that costs least.

Before:
    %1 = linalg.matmul ins(%a, %b : tensor<2000x20xf32>, tensor<20x2000xf32>) outs(%zeros0)
    %2 = linalg.matmul ins(%1, %c : tensor<2000x2000xf32>, tensor<2000x20xf32>) outs(%zeros1)
    %3 = linalg.matmul ins(%2, %d : tensor<2000x20xf32>, tensor<20x500xf32>) outs(%zeros2)
After:
    %1 = linalg.matmul ins(%b, %c : tensor<20x2000xf32>, tensor<2000x20xf32>) outs(%zeros0)
    %2 = linalg.matmul ins(%1, %d : tensor<20x20xf32>, tensor<20x500xf32>) outs(%zeros1)
    %3 = linalg.matmul ins(%a, %2 : tensor<2000x20xf32>, tensor<20x500xf32>) outs(%zeros2)

The order is found by dynamic programming over flops and bytes, for vectors, batches and transposed products too.
Products that are used elsewhere stay. In the body of a loop a product of loop-invariant factors costs little, as it is
hoisted. Integers wrap around to the same numbers; floats are reassociated, which `exact` forbids.
"""

from __future__ import annotations

from mlirml.analysis.contractions import CONTRACTIONS
from mlirml.analysis.cost import element_bytes
from mlirml.analysis.costs import is_worth
from mlirml.ir.bindings import mlir, named_operations
from mlirml.passes import NoMatch, Pass, register
from mlirml.passes.presence import TWO_CONTRACTIONS
from mlirml.pipelines.tensor.products import networks, orders


@register(when=TWO_CONTRACTIONS, optional=True)
class OrderProductsPass(Pass):
    """Compute chains of products in the cheapest order. With `exact` only those of integers."""

    exact: bool = False

    def run(self, module: mlir.Operation) -> None:
        products = named_operations(module, CONTRACTIONS)
        positions = {op: position for position, op in enumerate(products)}
        done: set[int] = set()
        for position in reversed(range(len(products))):  # the last product of a chain first
            if position in done:
                continue
            try:
                ops, changed = order(products[position], self.exact)
            except NoMatch:
                continue
            done.update(positions[op] for op in ops if op in positions)
            if changed:
                networks.erase_unused(ops)


def order(op: mlir.Operation, exact: bool) -> tuple[list[mlir.Operation], bool]:
    """Order the products that end with `op`; returns their operations, and whether these are unused now.

    Raises `NoMatch` if there is but one product.
    """
    if not any(map(networks.may_be_product, list(op.operands)[:2])):
        raise NoMatch("one product")
    root = networks.match_product(op)
    if root.casts or not networks.may_rewrite(root.element, exact):
        raise NoMatch("not to be reordered")
    network = networks.read_network(root)
    if len(network.factors) < 3:
        raise NoMatch("one product")
    problem = problem_of(op, network)
    old, (tree, new) = orders.cost_of(problem, network.tree), orders.best_tree(problem)
    if not is_worth(new.time, old.time):
        return network.ops, False
    with op.location, mlir.InsertionPoint(op):
        result = networks.build_tree(network, tree)
    letters = "abcdefghijklmnopqrstuvwxyz"
    shown = [orders.names_of(each, letters) for each in (network.tree, tree)]
    networks.tell(op.location, f"{shown[0]} is computed as {shown[1]}: {orders.saving(old, new)}")
    op.results[0].replace_all_uses_with(result)
    return network.ops, True


def problem_of(op: mlir.Operation, network: networks.Network) -> orders.Problem:
    """The problem of the order of a network whose result `op` computes."""
    loop, trips = networks.loop_around(op)
    invariant = frozenset[int]()
    if loop is not None:
        values = enumerate(factor.value for factor in network.factors)
        invariant = frozenset(number for number, value in values if networks.is_invariant(value, op.block))
    return orders.Problem(
        tuple(frozenset(factor.dims) for factor in network.factors),
        frozenset(network.dims),
        network.sizes,
        element_bytes(network.element),
        invariant,
        trips,
    )
