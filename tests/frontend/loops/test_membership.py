"""`in`, `==` and `count` of containers with dynamic numbers, against plain Python."""

from __future__ import annotations

import numpy as np
import pytest

import mlirml as ml

from .against_python import check

N = np.array([1, 2, 3, 4, 5, 9, 2] * 20)


def in_constants(x):
    total = 0
    for v in x:
        if v in (1, 3, 5):
            total += 1
        if v not in [2, 4]:
            total += 10
        if 2 * int(v) in {4, 18} and v in frozenset([9]):
            total += 100
    return total


def in_ranges(n):
    total = 0
    for i in range(n):
        if i in range(3, 50, 4):
            total += i
        if i not in range(40, 2, -3):
            total += 1000
        if i in range(i // 2, n - 5):
            total += 7
    return total


def in_slices(x):
    repeated = 0
    for i in range(x.shape[0]):
        if x[i] in x[:i]:
            repeated += 1
    return repeated


def in_keys(x):
    total, weights = 0.0, {1: 2.0, 5: 6.0}
    for i in range(len(x)):
        if x[i] in weights:
            total += 0.5
    return total


def in_numbers_of_the_program(x):
    a, b = x[0] + x[1], x[2]
    return [x[3] in (a, b), x[2] in (a, b), 4 in [a, b, 4.0]]


def in_chains(x, k):
    return 0 < k in x[:3]


@pytest.mark.parametrize("function, arguments", [
    (in_constants, (N,)), (in_ranges, (70,)), (in_slices, (N,)), (in_keys, (N,)),
    (in_numbers_of_the_program, (np.arange(4.0),)), (in_chains, (N, 3)), (in_chains, (N, 9)), (in_chains, (N, -1)),
])  # fmt: skip
def test_membership(function, arguments) -> None:
    check(function, *arguments)


@pytest.mark.parametrize("n", [5, 100])
def test_lists_of_arguments(n: int) -> None:
    def looked_up(xs, v):
        return [xs.count(v), v in xs, v not in xs]

    def equal(xs, ys):
        return 1 if xs == ys else 0

    xs = [i * 7 % 8 for i in range(n)]
    check(looked_up, xs, 3)
    check(looked_up, xs, 9)
    for ys in ([*xs], xs[::-1], xs[:-1]):
        check(equal, xs, ys)


def test_what_is_no_number_is_looked_up_by_python() -> None:
    def mode(x, name):
        return x * 2 if name in ("double", "twice") else x

    x = np.arange(3.0)
    np.testing.assert_array_equal(ml.compile(mode, frontend="loops")(x, "twice"), 2 * x)
    np.testing.assert_array_equal(ml.compile(mode, frontend="loops")(x, "thrice"), x)
