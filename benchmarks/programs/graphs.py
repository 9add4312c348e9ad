"""Graphs and combinatorics, as a newcomer writes it."""

from __future__ import annotations

import numpy as np


def page_rank(sources, targets, count, damping, iterations):
    """The rank of pages, from a list of links."""
    rank = np.full(count, 1.0 / count)
    degree = np.zeros(count)
    for s in sources:
        degree[s] += 1
    for _ in range(iterations):
        new = np.full(count, (1 - damping) / count)
        for e in range(len(sources)):
            new[targets[e]] += damping * rank[sources[e]] / degree[sources[e]]
        rank = new
    return rank


def bellman_ford(sources, targets, weights, count, start):
    """Shortest paths from one node; stops when nothing gets shorter."""
    distance = np.full(count, np.inf)
    distance[start] = 0
    for _ in range(count - 1):
        changed = False
        for u, v, w in zip(sources, targets, weights):
            if distance[u] + w < distance[v]:
                distance[v] = distance[u] + w
                changed = True
        if not changed:
            break
    return distance


def triangles(adjacency):
    """How many triangles a graph has."""
    n = len(adjacency)
    count = 0
    for i in range(n):
        for j in range(i + 1, n):
            if adjacency[i, j]:
                for k in range(j + 1, n):
                    if adjacency[i, k] and adjacency[j, k]:
                        count += 1
    return count


def components(sources, targets, count):
    """Connected components: every node takes the smallest label around."""
    labels = np.arange(count)
    while True:
        new = labels.copy()
        for e in range(len(sources)):
            low = min(new[sources[e]], new[targets[e]])
            new[sources[e]] = low
            new[targets[e]] = low
        if np.array_equal(new, labels):
            return labels
        labels = new


def knapsack(values, weights, capacity):
    """The best value that fits, by dynamic programming."""
    best = np.zeros(capacity + 1)
    for value, weight in zip(values, weights):
        for c in range(capacity, weight - 1, -1):
            best[c] = max(best[c], best[c - weight] + value)
    return best[capacity]


def arguments(name):
    """Arguments of a size that takes a while."""
    rng = np.random.default_rng(0)
    sources, targets = rng.integers(0, 300, 2000), rng.integers(0, 300, 2000)
    upper = np.triu(rng.random((90, 90)) < 0.2, 1)
    return {
        "page_rank": (sources, targets, 300, 0.85, 20),
        "bellman_ford": (sources, targets, rng.random(2000), 300, 0),
        "triangles": (upper | upper.T,),
        "components": (sources[:250], targets[:250], 300),
        "knapsack": (rng.random(50), rng.integers(1, 40, 50), 1000),
    }[name]
