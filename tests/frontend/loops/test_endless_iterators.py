"""`for` over `itertools.count`, `combinations` and their like: one loop, which a `break` may end."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import mlirml as ml
from mlirml.frontend.loops import hooks

from .against_python import check

X = np.random.default_rng(5).random(30)


def square_root(x: float, tolerance: float) -> Any:
    y = x
    for k in itertools.count(1, 2):  # noqa: B007
        z = y - (y * y - x) / (2 * y)
        if abs(z - y) < tolerance:
            break
        y = z
    return y, k


def first_above(n: int, limit: int) -> int:
    total = 0
    for i in itertools.count(n):
        if total > limit:
            return i
        total += i
    return 0


def named(x: Any, weights: Any) -> Any:
    total = 0.0
    for k in itertools.count():
        if k > 3:
            break
        total += x[k] * weights[str(k)]
    return total


def nearest(x: Any) -> Any:
    best = np.inf
    for i, j in itertools.combinations(range(len(x)), 2):
        best = min(best, abs(x[i] - x[j]))
    return best


def nearest_values(x: Any) -> Any:
    best = np.inf
    for a, b in itertools.combinations(x, 2):
        best = min(best, abs(a - b))
    return best


def shortest_tour(d: Any) -> Any:
    best = np.inf
    for p in itertools.permutations(range(1, len(d))):
        length = d[0, p[0]] + d[p[-1], 0]
        for k in range(len(p) - 1):
            length += d[p[k], p[k + 1]]
        best = min(best, length)
    return best


def areas(x: Any, y: Any) -> Any:
    total = 0.0
    for (a, b), (c, d) in itertools.combinations(zip(x, y), 2):
        total += a * d - b * c
    return total


def sums_below(a: list[int], b: list[int]) -> Any:
    both, found = a + b, 0
    for count, some in enumerate(itertools.combinations(both, len(a)), 1):  # noqa: B007
        if sum(some) <= sum(a):
            found += 1
    return found * 100.0 / count


def products(x: Any) -> Any:
    total = 0.0
    for a, b in itertools.combinations_with_replacement(x, 2):
        total += a * b
    return total


@pytest.mark.parametrize("function, arguments", [
    (square_root, (2.0, 1e-9)), (first_above, (3, 100)), (first_above, (3, -1)), (nearest, (X,)), (nearest, (X[:5],)),
    (nearest_values, (X,)), (shortest_tour, (np.add.outer(X[:7], X[:7] ** 2),)), (areas, (X, X[::-1].copy())),
    (sums_below, ([8, 3, 7, 5, 9, 2], [1, 6, 4, 3, 8])), (products, (X,)),
    (shortest_tour, (np.add.outer(X[:4], X[:4] ** 2),)),
])  # fmt: skip
def test_against_python(function: Any, arguments: Any) -> None:
    if function in (sums_below, first_above):
        assert ml.compile(function)(*arguments) == function(*arguments)
    else:
        check(function, *arguments, exact=False)


def test_loops_that_end_where_it_is_known_are_unrolled() -> None:
    weights = {str(k): k + 0.5 for k in range(5)}
    np.testing.assert_allclose(ml.compile(named)(X, weights), named(X, weights))


def test_choices_outside_of_loops() -> None:
    def pairs(items: list[int], size: int) -> Any:
        return list(itertools.permutations(items, size))

    compiled = ml.compile(pairs)
    assert compiled([1, 2, 3], 2) == pairs([1, 2, 3], 2)
    assert compiled([1, 2, 3], 1) == pairs([1, 2, 3], 1)


def test_an_endless_loop_that_is_unrolled_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hooks, "UNROLLED", 50)

    def alternating(x: Any) -> Any:
        total = 0.0
        for sign in itertools.cycle([1, -1]):
            if total > 3:
                break
            total += sign * x[0]
        return total

    with pytest.raises(ml.errors.UnsupportedSyntaxError, match="up to 50 items are taken"):
        ml.compile(alternating)(X)


def test_too_many_choices_are_refused() -> None:
    def all_of(x: Any) -> Any:
        total = 0.0
        for a, *_ in itertools.combinations(x, 15):
            total += a
        return total

    with pytest.raises(ml.errors.UnsupportedSyntaxError, match="155,117,520"):
        ml.compile(all_of)(X)
