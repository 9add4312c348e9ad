"""Split long chains of stencils: intermediate tensors are stored if they would be recomputed at too many offsets."""

from __future__ import annotations

from mlirml.ir.bindings import mlir
from mlirml.pipelines.tensor.stencils.graph import Compute, Put, Take
from mlirml.pipelines.tensor.stencils.plan import MOST_OPS, MOST_READS, TRIES, Plan, Terms


def cut_chains(plan: Plan) -> None:
    """Choose tensors to store, so that no tensor is computed from more elements than fit in one loop.

    The steps of a stencil read their neighbours' neighbours: as one loop nest, the number of offsets grows with the
    square of the number of steps. Tensors are visited in order, so that all earlier ones fit already; `bounds` are
    upper bounds for numbers of operations and reads, which avoid the exact computation for most of them.
    """
    bounds: dict[mlir.Value, tuple[int, int]] = {}
    values = plan.recomputed()
    for value in sorted(values, key=lambda value: plan.graph.position[value]):
        node = plan.graph.nodes.get(value)
        if isinstance(node, Compute):
            bounds[value] = _bound(plan, node, value, bounds)
            if not _fits(bounds[value]):
                bounds[value] = _cut(plan, value)
        elif isinstance(node, Put):
            parts = [_read(plan, source, bounds) for source in plan.graph.sources(value)]
            bounds[value] = max(ops for ops, _ in parts), max(reads for _, reads in parts)
        elif isinstance(node, Take):
            bounds[value] = _read(plan, node.source, bounds)


def _read(plan: Plan, value: mlir.Value, bounds: dict[mlir.Value, tuple[int, int]]) -> tuple[int, int]:
    return (0, 1) if value in plan.roots else bounds.get(value, (0, 1))


def _bound(plan: Plan, node: Compute, value: mlir.Value, bounds: dict[mlir.Value, tuple[int, int]]) -> tuple[int, int]:
    parts = [_read(plan, source, bounds) for source, _ in node.inputs]
    return plan.weight(value) + sum(ops for ops, _ in parts), sum(reads for _, reads in parts)


def _fits(bound: tuple[int, int]) -> bool:
    return bound[0] <= MOST_OPS and bound[1] <= MOST_READS


def _cut(plan: Plan, value: mlir.Value) -> tuple[int, int]:
    """Store tensors so that one that does not fit halves its excess, at the lowest price; returns its new size."""
    box, terms = plan.inner([value])
    if not terms.excess():
        return terms.ops, len(terms.read)
    while terms.excess(2):
        best, least, price = None, terms, (terms.excess(2), 0)
        for candidate in _candidates(plan, terms):
            plan.keep(candidate)
            fewer = plan.terms([value], box)
            plan.keep(candidate, False)
            tried = fewer.excess(2), fewer.cost()
            if best is None or tried < price:
                best, least, price = candidate, fewer, tried
        if best is None:
            break
        plan.keep(best)
        terms = least
    return terms.ops, len(terms.read)


def _candidates(plan: Plan, terms: Terms) -> list[mlir.Value]:
    """The values that are recomputed at several offsets, the most expensive first; of equal ones the later first."""
    times: dict[mlir.Value, int] = {}
    for value, _ in terms.computed:
        times[value] = times.get(value, 0) + 1
    often = [value for value, count in times.items() if count > 1 and value not in plan.roots]
    position = plan.graph.position
    return sorted(often, key=lambda value: (-times[value] * plan.weight(value), -position[value]))[:TRIES]
