"""Loops in which a store has to copy a whole array, as another one is read after it: the copy is copied back."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import mlirml as ml


def butterflies(x: Any) -> Any:
    n, re = len(x), x * 2.0
    for i in range(1, n):
        re[i] = re[i - 1] + x[i]
    size = 2
    while size <= n:
        for s in range(0, n, size):
            for k in range(size // 2):
                c = math.cos(size * k)
                a, b = s + k, s + k + size // 2
                t = re[b] * c
                re[b] = re[a] - t
                re[a] = re[a] + t
        size *= 2
    return sum(re[k] ** 2 for k in range(n))


@pytest.mark.parametrize("n", [4, 8, 16])
def test_gradients(n: int) -> None:
    x, step = np.arange(1.0, n + 1) / 3, 1e-5
    slopes = [(butterflies(x + step * e) - butterflies(x - step * e)) / (2 * step) for e in np.eye(n)]
    np.testing.assert_allclose(ml.grad(butterflies)(x), slopes, rtol=1e-7, atol=1e-6 * np.max(np.abs(slopes)))


def test_lists_of_lists() -> None:
    def filled(x: Any, k: Any) -> Any:
        a, s, w, g, h = list(x), 0, [], [], 0
        t = [[i + j for j in range(4)] for i in range(4)]
        for _ in range(17):
            for i in range(4):
                if a[1] < a[k[i]]:
                    h = 3
                for _ in range(4):
                    if h > 1:
                        w.append(True)
                t[i] = [s] * 4
                q = [0] * 4
                g.append(q)
                q[k[i]] = a[0]
                a[-1 - i] = 1
                if x[(i * 3 + 2) % 4] > s:
                    w.append(s)
                    w.append(x[i])
        return a, t, g, w

    x, k = np.array([1.0, -2.0, 3.0, 0.0]), np.array([1, 0, 3, 2])
    for found, expected in zip(ml.compile(filled, frontend="loops")(x, k), filled(x, k), strict=True):
        np.testing.assert_array_equal(np.array(found), np.array(expected))


def updated_from_a_copy_then_in_branches(p: Any, q: Any) -> Any:
    for i in range(1, 4):
        c = q.copy()
        for j in range(i):
            q[j, (i + 1) % 5] += c[j, i]
        if q[i, 0] > 0:
            p[i, i] -= q[i, i]
        else:
            for r in range(i + 1):
                for _ in range(2, 5):
                    q[r, min(r, 2)] = 2
    return p


def test_a_loop_that_reads_a_copy_and_branches_after_it_that_store() -> None:
    p, q = np.random.default_rng(3).standard_normal((2, 5, 5))
    given, expected = (p.copy(), q.copy()), (p.copy(), q.copy())
    updated_from_a_copy_then_in_branches(*expected)
    ml.compile(updated_from_a_copy_then_in_branches, frontend="loops")(*given)
    np.testing.assert_array_equal(given, expected)


def updated_in_loops_and_branches(a: Any, b: Any, p: Any, q: Any) -> Any:
    n, s, t = len(a), p[1, 1], a[-1]
    for i in range(n):
        j = 0
        while j < n:
            if i % 2 == 0:
                for m in range(n):
                    t = max(t, a[j])
                    p[m, j] = (max(b[i], b[i]) if i % 2 == 0 else p[i, j % 2]) - b[m]
                for r in range(n):
                    p[r - n, j - 1] -= b[j // 2]
                    t = s - t
            j += 2
        if i in range(n - 1, 2, -1):
            for u in range(n - 1, 0, -2):
                p[u, u] -= min(b[i], (q[u % 2, i] - a[i - n]) - min(a[i], b[u - n]))
        elif i > 1:
            if b[i] > 0:
                q[i, (i + 1) % n] = (p[i, i] * p[0, i]) * p[i, i] if i % 2 == 0 else p[i, i]
            else:
                p[i, i] += q[i, i] + (q[i, i] * q[0, 2] if b[i // 2] > 0 else 0.0)
        s, t = t, s
    return s, t


def test_a_loop_that_upstream_refuses_starts_from_a_copy() -> None:
    rng = np.random.default_rng(19)
    given = [rng.integers(-3, 4, shape).astype(float) for shape in (5, 5, (5, 5), (5, 5))]
    expected = [x.copy() for x in given]
    updated_in_loops_and_branches(*expected)
    ml.compile(updated_in_loops_and_branches, frontend="loops")(*given)
    for one, other in zip(given, expected):
        np.testing.assert_array_equal(one, other)
