"""Functions that call themselves are compiled where shapes or static arguments end the recursion."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest

import mlirml as ml

X = np.arange(1.0, 9.0)
FRONTENDS = ("auto", "loops", "trace")


def fibonacci(n: int, x: Any) -> Any:
    return x if n < 2 else fibonacci(n - 1, x) + fibonacci(n - 2, x)


def is_even(n: int, x: Any) -> Any:
    return x if n == 0 else is_odd(n - 1, x + 1)


def is_odd(n: int, x: Any) -> Any:
    return -x if n == 0 else is_even(n - 1, x * 2)


def halves(n: int, x: Any) -> Any:
    if len(x) == 1:
        return x[0]
    middle = len(x) // 2
    return halves(n, x[:middle]) + 2 * halves(n, x[middle:])


def nested(n: int, x: Any) -> Any:
    def power(k: int) -> Any:
        return 1.0 if k == 0 else power(k - 1) * x

    return power(n)


def partly(n: int, x: Any) -> Any:
    return x if n == 0 else functools.partial(partly, n - 1)(x) * 2


LAMBDA: Any = lambda n, x: x if n == 0 else LAMBDA(n - 1, x) * x  # noqa: E731


@functools.lru_cache
def remembered(n: int) -> int:
    return 1 if n < 2 else remembered(n - 1) + remembered(n - 2)


def uses_remembered(n: int, x: Any) -> Any:
    return x * remembered(n)


@ml.compile(static_argnums=0)
def decorated(n: int, x: Any) -> Any:
    return x if n == 0 else decorated(n - 1, x) + 1


@ml.loops
def marked(n: int, x: Any) -> Any:
    return x if n == 0 else marked(n - 1, x) + 1


def sorted_in_place(n: int, x: Any) -> Any:
    if len(x) > 1:
        middle = len(x) // 2
        sorted_in_place(n, x[:middle])
        sorted_in_place(n, x[middle:])
        out = np.zeros(len(x))
        i, j = 0, middle
        for k in range(len(x)):
            if j >= len(x) or (i < middle and x[min(i, middle - 1)] <= x[min(j, len(x) - 1)]):
                out[k] = x[i]
                i += 1
            else:
                out[k] = x[j]
                j += 1
        x[:] = out
    return x


def transformed(n: int, x: Any) -> Any:
    size = len(x)
    if size == 1:
        return x.astype(complex)
    even, odd = transformed(n, x[::2]), transformed(n, x[1::2])
    turned = np.exp(-2j * np.pi * np.arange(size // 2) / size) * odd
    return np.concatenate([even + turned, even - turned])


@pytest.mark.parametrize("frontend", FRONTENDS)
@pytest.mark.parametrize("function", [fibonacci, is_even, halves, nested, partly, LAMBDA, uses_remembered, transformed])
def test_recursion_that_ends(function: Any, frontend: str) -> None:
    compiled = ml.compile(function, frontend=frontend, static_argnums=0)
    np.testing.assert_allclose(compiled(5, X), function(5, X), rtol=1e-12)


def test_decorated() -> None:
    np.testing.assert_array_equal(decorated(4, X), X + 4)
    np.testing.assert_array_equal(ml.compile(marked, static_argnums=0)(4, X), X + 4)


def test_stores_into_parts() -> None:
    x = np.array([3.0, 1.0, 2.0, -1.0, 5.0])
    np.testing.assert_array_equal(ml.compile(sorted_in_place, static_argnums=0)(0, x), np.sort(x))
    np.testing.assert_array_equal(x, np.sort(x))


class Tree:
    def __init__(self, value: float, *children: Tree) -> None:
        self.value = value
        self.children = list(children)

    def total(self, x: Any) -> Any:
        return x * self.value + sum(child.total(x) for child in self.children)


@pytest.mark.parametrize("frontend", FRONTENDS)
def test_methods(frontend: str) -> None:
    tree = Tree(1.0, Tree(2.0, Tree(3.0)), Tree(4.0))
    compiled = ml.compile(tree.total, frontend=frontend)
    np.testing.assert_array_equal(compiled(X), 10 * X)
    tree.children[0].children.append(Tree(5.0))
    np.testing.assert_array_equal(compiled(X), 15 * X)


def test_transforms() -> None:
    np.testing.assert_array_equal(ml.grad(lambda x: halves(0, x * x))(X[:2]), [2.0, 8.0])
    np.testing.assert_array_equal(ml.vmap(lambda x: halves(0, x))(np.ones((3, 2))), [3.0, 3.0, 3.0])


def best_sum(x: Any, low: int, high: int) -> Any:
    if low == high:
        return x[low]
    middle = (low + high) // 2
    across, left, right = 0.0, -np.inf, -np.inf
    for i in range(middle, low - 1, -1):
        across += x[i]
        if across > left:
            left = across
    across = 0.0
    for i in range(middle + 1, high + 1):
        across += x[i]
        if across > right:
            right = across
    one, other = best_sum(x, low, middle), best_sum(x, middle + 1, high)
    return max(one, other, left + right)


def test_limits_of_a_recursion_with_loops_are_static() -> None:
    compiled = ml.compile(best_sum)
    for seed in range(3):
        x = np.random.default_rng(seed).normal(size=7)
        assert float(compiled(x, 0, 6)) == pytest.approx(best_sum(x, 0, 6), rel=1e-14)
    assert "`low` is static" in compiled.explain()
