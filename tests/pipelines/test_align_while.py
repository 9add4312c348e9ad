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
