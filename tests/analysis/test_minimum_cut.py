"""Minimum cuts are what trying all cuts gives."""

from __future__ import annotations

import random
from itertools import combinations, pairwise

import pytest

from mlirml.analysis.minimum_cut import Network

Edges = list[tuple[int, int, int | None]]


def cut(edges: Edges) -> set[object] | None:
    network = Network()
    for edge in edges:
        network.add_edge(*edge)
    return network.minimum_cut(0, 1)


def best(edges: Edges, nodes: int) -> set[int] | None:
    """The smallest set behind a cut of the least capacity, of all sets."""
    found: list[tuple[int, set[int]]] = []
    for count in range(nodes - 1):
        for chosen in combinations(range(2, nodes), count):
            behind = {1, *chosen}
            across = [capacity for tail, head, capacity in edges if tail not in behind and head in behind]
            if None not in across:
                found.append((sum(c for c in across if c is not None), behind))
    return min(found, key=lambda pair: (pair[0], len(pair[1])), default=(0, None))[1]


@pytest.mark.parametrize("seed", range(60))
def test_random_networks(seed: int) -> None:
    rng = random.Random(seed)
    nodes = rng.randint(2, 8)
    edges: Edges = [(0, 1, 0)]
    for _ in range(rng.randint(1, 3 * nodes)):
        tail, head = rng.sample(range(nodes), 2)
        edges.append((tail, head, rng.choice([None, 0, 1, 1, 2, 5, 100])))
    found, named = cut(edges), {node for edge in edges for node in edge[:2]}
    expected = best(edges, nodes)
    assert found == (None if expected is None else expected & named)


def test_an_endless_way_has_no_cut() -> None:
    assert cut([(0, 2, None), (2, 1, None), (0, 1, 3)]) is None


def test_a_long_chain_is_cut_at_its_narrowest_place_closest_to_the_end() -> None:
    chain = [0, *range(2, 5000), 1]
    edges: Edges = [(a, b, 1 if a in (7, 4000) else 2) for a, b in pairwise(chain)]
    assert cut(edges) == {1, *range(4001, 5000)}
