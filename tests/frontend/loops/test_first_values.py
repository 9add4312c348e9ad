"""Variables that get their first value in a loop and are read after it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mlirml as ml

X = np.linspace(0.1, 1.1, 9)


def item_and_index(x: Any, n: int) -> Any:
    for i in range(n):
        y = x[i] * 2
    return y, i


def kept_index(x: Any, n: int) -> Any:
    i = -1
    for i in range(0, n, 2):
        x[i] = 0.0
    return x, i


def arrays_in_a_list(x: Any, n: int) -> Any:
    for i in range(n):
        pair = [x * i, x + i]
    return pair[0] - pair[1]


def until_small(x: Any, n: int) -> Any:
    for i in range(n):
        step = x[i] ** 2
        if step < 0.05:
            break
    return step


def newton(x: Any, n: int) -> Any:
    root = 1.0
    for k in range(n):  # noqa: B007
        residual = root**3 - x[3]
        if abs(residual) < 1e-9:
            break
        root = root - residual / (3 * root**2)
    else:
        k = -1
    return root, k, residual


def conditional_loop(x: Any, n: int) -> Any:
    total = 0.0
    while total < n:
        step = total * x[0] + 1
        total += step
    return step, total


def triangle(x: Any, n: int) -> Any:
    for i in range(n):
        for j in range(n - i):
            v = x[i] * x[j]
        w = v + 1
    return v, w


def triangle_until(x: Any, n: int) -> Any:
    for i in range(n):
        for j in range(i, n):
            v = x[i] * x[j]
        w = v + 1
        if w > 1.2:
            break
    return v, w


FUNCTIONS: list[Callable[..., Any]] = [
    item_and_index, kept_index, arrays_in_a_list, until_small, newton, conditional_loop, triangle, triangle_until,
]  # fmt: skip


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_as_python(function: Callable[..., Any]) -> None:
    compiled = ml.compile(function)
    for n in (1, 2, 3, 6):
        got, wanted = compiled(X.copy(), n), function(X.copy(), n)
        for one, other in zip(*(x if isinstance(x, tuple) else (x,) for x in (got, wanted))):
            np.testing.assert_allclose(one, other, atol=1e-12)
    assert compiled.entries == 1


@pytest.mark.parametrize("function", [f for f in FUNCTIONS if f is not kept_index], ids=lambda f: f.__name__)
def test_without_iterations(function: Callable[..., Any]) -> None:
    with pytest.raises(UnboundLocalError):
        function(X.copy(), 0)
    compiled = ml.compile(function)
    compiled(X.copy(), 2)
    with pytest.raises(UnboundLocalError, match=r"may have no value: the `(for|while)` loop has no iterations"):
        compiled(X.copy(), 0)


def test_an_index_keeps_its_value() -> None:
    assert kept_index(X.copy(), 0)[1] == ml.compile(kept_index)(X.copy(), 0)[1] == -1


def inner_loop(x: Any, n: int, m: int) -> Any:
    for i in range(n):
        for j in range(m):
            v = x[i] * x[j]
        w = v + 1
    return v, w


def inner_loop_until(x: Any, n: int, m: int) -> Any:
    for i in range(n):
        for j in range(m):
            v = x[i] * x[j]
        w = v + 1
        if w > 5:
            break
    return v, w


@pytest.mark.parametrize("function", [inner_loop, inner_loop_until])
def test_an_inner_loop_without_iterations(function: Callable[..., Any]) -> None:
    compiled = ml.compile(function)
    np.testing.assert_allclose(compiled(X, 4, 3), function(X, 4, 3))
    with pytest.raises(UnboundLocalError, match="`v` may have no value"):
        compiled(X, 3, 0)


def test_derivative() -> None:
    gradient = ml.grad(lambda x, n: triangle(x, n)[1])(X, 3)
    wanted = np.zeros_like(X)
    wanted[2], wanted[0] = X[0], X[2]
    np.testing.assert_allclose(gradient, wanted)


def then_static(x: Any, k: int) -> Any:
    out = np.zeros((3, 3))
    for i in range(3):
        j = 1
        while j < 3:
            if j > 5:
                for l in range(j):  # noqa: E741
                    last = x[l]
                out[0, 0] = last + k
            j += 2
        for r, u in np.ndindex((k, 3)):
            out[i, r] += x[u]
    return out


def test_a_check_beside_an_argument_that_has_to_be_static() -> None:
    np.testing.assert_allclose(ml.compile(then_static)(X, 2), then_static(X, 2))


def summed_columns(x: Any, f: float) -> Any:
    for i in range(x.shape[1]):
        if i == 0:
            total = f * x[:, i]
        else:
            total += f * x[:, i]
    return total


def least_so_far(x: Any) -> Any:
    out = np.zeros_like(x)
    for i in range(len(x)):
        for j in range(3):
            least = x[i] if i + j == 0 else min(least, x[i] + j)  # noqa: F821
            out[i] += least
    return out


def of_the_first_only(x: Any) -> Any:
    out = np.zeros_like(x)
    for i in range(len(x)):
        if x[i] > 100:
            first = x[i]
        out[i] = first
    return out


def test_what_the_first_iteration_assigns() -> None:
    x = np.random.default_rng(2).random((4, 9))
    np.testing.assert_allclose(ml.compile(summed_columns)(x, 2.0), summed_columns(x, 2.0))
    np.testing.assert_allclose(ml.compile(summed_columns)(x[:, :2].copy(), 2.0), summed_columns(x[:, :2], 2.0))
    np.testing.assert_allclose(ml.compile(least_so_far)(X), least_so_far(X))
    with pytest.raises(UnboundLocalError, match="`first`"):
        ml.compile(of_the_first_only)(X)


def after_a_loop_in_a_branch(p: Any, q: Any, k: int) -> Any:
    s = p[1, 1]
    for i in range(k):
        if q[i % 4, 1] > 2:
            s = s + 1
        else:
            for y in range(4):
                for z in range(y, 4):
                    last = p[1, 0]
                    s += p[1, z]
                s = last + z
    return s


def test_first_values_of_a_loop_in_a_branch() -> None:
    rng = np.random.default_rng(0)
    for k in (0, 1, 3):
        p, q = rng.integers(0, 5, (2, 4, 4))
        assert ml.compile(after_a_loop_in_a_branch)(p, q, k) == after_a_loop_in_a_branch(p, q, k)
