"""Orders of products: which factors of a sum of products are multiplied first, as binary trees, and what they cost.

A factor is the set of its dims. Dynamic programming over the sets of factors that contractions connect finds the
cheapest tree; for a chain of matrices these sets are its intervals. It imports nothing of MLIR.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TypeAlias

from mlirml.analysis.costs import costs
from mlirml.core.dataclass import dataclass
from mlirml.core.no_match import NoMatch

Tree: TypeAlias = "int | tuple[Tree, Tree]"
"""The index of a factor, or two trees whose products are multiplied."""

_MOST_SETS = 160


@dataclass(frozen=True)
class Cost:
    """The flops of a tree, and its time in the unit of bytes that are read from memory."""

    flops: float = 0.0
    time: float = 0.0

    def __add__(self, other: Cost) -> Cost:
        return Cost(self.flops + other.flops, self.time + other.time)

    def times(self, weight: float) -> Cost:
        """The cost of a part of the runs."""
        return Cost(self.flops * weight, self.time * weight)


@dataclass(frozen=True)
class Problem:
    """The sum of the product of `factors`, each a set of dims, over the dims that are not in `result`.

    Products of nothing but `invariant` factors are computed once in `trips` evaluations.
    """

    factors: tuple[frozenset[int], ...]
    result: frozenset[int]
    sizes: Mapping[int, int]
    element_bytes: int
    invariant: frozenset[int] = frozenset()
    trips: int = 1

    def volume(self, dims: frozenset[int]) -> int:
        """The number of elements of an array with these dims."""
        return math.prod(self.sizes[d] for d in dims)

    def dims_of(self, members: frozenset[int]) -> frozenset[int]:
        """The dims of the product of some factors: those that the others or the result have too."""
        inside = frozenset[int]().union(*(self.factors[m] for m in members))
        outside = frozenset[int]().union(*(f for m, f in enumerate(self.factors) if m not in members))
        return inside & (outside | self.result)

    def step(self, left: frozenset[int], right: frozenset[int], out: frozenset[int]) -> Cost:
        """The cost of the product of two arrays with these dims."""
        flops = 2.0 * self.volume(left | right)
        read = sum(map(self.volume, (left, right, out))) * self.element_bytes
        return Cost(flops, costs().product_bytes(flops, read, self.element_bytes))

    def weight(self, members: frozenset[int]) -> float:
        """The part of the evaluations in which the product of some factors is computed."""
        return 1 / self.trips if members <= self.invariant else 1.0


def sum_cost(problem: Problem, dims: frozenset[int], kept: frozenset[int]) -> Cost:
    """The cost of the sum of an array over the dims that are not kept."""
    count = problem.volume(dims)
    return Cost(float(count), costs().sum_bytes(float(count + problem.volume(kept)) * problem.element_bytes))


def members_of(tree: Tree) -> frozenset[int]:
    """The factors in a tree."""
    return frozenset([tree]) if isinstance(tree, int) else members_of(tree[0]) | members_of(tree[1])


def cost_of(problem: Problem, tree: Tree) -> Cost:
    """The cost of a tree."""
    if isinstance(tree, int):
        return Cost()
    left, right = map(members_of, tree)
    both = left | right
    own = problem.step(problem.dims_of(left), problem.dims_of(right), problem.dims_of(both))
    return cost_of(problem, tree[0]) + cost_of(problem, tree[1]) + own.times(problem.weight(both))


def best_tree(problem: Problem) -> tuple[Tree, Cost]:
    """The cheapest tree, each of whose products sums over a dim; raises `NoMatch` where there are too many to look at.

    Of trees of one cost it is the first in the order of the factors, so that it depends on nothing else.
    """
    count = len(problem.factors)
    dims: dict[frozenset[int], frozenset[int]] = {}
    best: dict[frozenset[int], tuple[Cost, Tree]] = {}
    sets: list[list[frozenset[int]]] = [[], []]
    for member in range(count):
        alone = frozenset([member])
        dims[alone], best[alone] = problem.dims_of(alone), (Cost(), member)
        sets[1].append(alone)
    for size in range(2, count + 1):
        sets.append([])
        for small in range(1, size // 2 + 1):
            for left in sets[small]:
                for right in sets[size - small]:
                    if left & right or (2 * small == size and min(left) > min(right)):
                        continue
                    both = left | right
                    if both not in dims:
                        dims[both] = problem.dims_of(both)
                    if not (dims[left] & dims[right]) - dims[both]:
                        continue
                    own = problem.step(dims[left], dims[right], dims[both]).times(problem.weight(both))
                    total = best[left][0] + best[right][0] + own
                    if both not in best:
                        sets[size].append(both)
                    elif best[both][0].time <= total.time:
                        continue
                    first, second = sorted((left, right), key=min)
                    best[both] = total, (best[first][1], best[second][1])
        if len(best) > _MOST_SETS:
            raise NoMatch("too many orders")
    found = best.get(frozenset(range(count)))
    if found is None:
        raise NoMatch("the factors are not connected by contractions")
    return found[1], found[0]


def shown(flops: float) -> str:
    """A number of flops as text: `160 Mflop`.

    >>> shown(160e6), shown(5.92e6), shown(840)
    ('160 Mflop', '5.92 Mflop', '840 flop')
    """
    for factor, prefix in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if flops >= factor:
            return f"{flops / factor:.3g} {prefix}flop"
    return f"{flops:.3g} flop"


def saving(old: Cost, new: Cost) -> str:
    """The saving of a rewrite as text: `160 Mflop become 5.92 Mflop`."""
    return f"{shown(old.flops)} become {shown(new.flops)}"


def names_of(tree: Tree, names: Sequence[str]) -> str:
    """A tree as the text of products: `a @ (b @ c)`."""
    if isinstance(tree, int):
        return names[tree]
    return " @ ".join(f"({names_of(part, names)})" if isinstance(part, tuple) else names[part] for part in tree)
