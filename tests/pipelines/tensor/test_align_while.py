"""Loops with `break`, whose condition is carried in front of the arrays, compute in place what Python does."""

from __future__ import annotations

from typing import Any

import numpy as np

import mlirml as ml


def until_negative(a: Any, p: Any) -> None:
    n = a.shape[0]
    for i in range(0, n, 2):
        for j in range(1, n - 1):
            for k in range(n):
                p[i, k] = (a[j] * p[j, j]) * p[k - n, j]
            if p[i, j] < 0:
                break


def two_arrays(a: Any, p: Any) -> int:
    count = 0
    while count < 3:
        for i in range(a.shape[0]):
            a[i] += p[count, i]
            if a[i] > 4:
                break
            p[i, count] -= a[i]
        count += 1
    return count


def test_break_in_nests() -> None:
    for function in (until_negative, two_arrays):
        rng = np.random.default_rng(3)
        expected = rng.integers(-3, 4, 4).astype(float), rng.integers(-3, 4, (4, 4)).astype(float)
        given = tuple(x.copy() for x in expected)
        assert ml.compile(function)(*given) == function(*expected)
        for one, other in zip(given, expected):
            np.testing.assert_array_equal(one, other)


def changed_after_a_while_loop(p: Any, q: Any) -> None:
    for i in range(4):
        j = 0
        while j < 4:
            q[i] = p[j, 0]
            j += 2
        if i > 1 or p[0, 0] > 0:
            for k in range(3):
                q[k] -= p[k, i]


def test_an_array_after_a_while_loop_is_still_in_place() -> None:
    rng = np.random.default_rng(3)
    p, expected = rng.normal(size=(4, 4)), rng.normal(size=4)
    given = expected.copy()
    ml.compile(changed_after_a_while_loop)(p, given)
    changed_after_a_while_loop(p, expected)
    np.testing.assert_array_equal(given, expected)
