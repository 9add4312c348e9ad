"""`itertools.product`, `np.ndindex`, `np.ndenumerate` and `map` in `for`: one loop, however many positions."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from .against_python import check

X = np.random.default_rng(3).standard_normal((9, 14))


def mirrored(x):
    out = np.zeros(x.shape)
    for i, j in np.ndindex(x.shape):
        out[i, j] = 2 * x[i, j] if x[i, j] > 0 else x[i, -1 - j]
    return out


def at_positions(x):
    total = 0.0
    for position in np.ndindex(*x.shape):
        total += x[position]
    return total


def enumerated(x):
    total = 0.0
    for (i, j), v in np.ndenumerate(x):
        total += v * (i - j)
    return total


def numbers(n):
    total = 0
    for i, j, k in itertools.product(range(n), range(n, 2, -1), range(3)):
        total += i * 100 + j * 10 + k
    return total


def differences(x):
    out = []
    for i, j in itertools.product(range(x.shape[0]), repeat=2):
        out.append(x[i, 0] - x[j, 0])
    return np.array(out)


def first_below(x, bound):
    for i, j in np.ndindex(*x.shape):
        if x[i, j] < bound:
            return i * 1000 + j
    return -1


def of_items(x):
    total = 0.0
    for a, b in itertools.product(x[:, 0], [1.0, 2.5]):
        total += a * b
    return total


def mapped(x, y):
    def scaled(a, b):
        return 2 * a if a > b else b

    def doubled(a):
        return 2 * a

    total = 0.0
    for v in map(scaled, x[0], y[0]):
        total += v
    return total, np.array(list(map(doubled, x[:, 0])))


def repeated(x, n):
    w = np.zeros(2)
    for _ in itertools.repeat(None, n):
        w[0] += 0.1 * (x[0, 0] - w[1])
        w[1] += 0.2 * w[0]
    return w


@pytest.mark.parametrize("function, arguments", [
    (repeated, (X, 700)), (repeated, (X, 0)),
    (mirrored, (X,)), (mirrored, (X[:2, :3],)), (at_positions, (X,)), (at_positions, (X[:0],)),
    (enumerated, (X,)), (enumerated, (X[:, :0],)), (numbers, (12,)), (numbers, (2,)), (differences, (X,)),
    (first_below, (X, -1.5)), (first_below, (X, -100.0)), (of_items, (X,)), (mapped, (X, X[::-1])),
])  # fmt: skip
def test_against_python(function, arguments) -> None:
    static = function is numbers
    check(function, *arguments, exact=False) if not static else check(lambda: numbers(*arguments))


def test_positions_of_a_large_array_stay_one_loop() -> None:
    check(enumerated, np.ones((300, 200)))
