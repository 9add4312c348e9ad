"""Positions beside slices with dynamic bounds: rows that are exchanged, as pivots are."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mlirml as ml
from tests.frontend.loops.against_python import check

Array = Any
A = np.random.default_rng(0).random((5, 5))


def factors(a: Array) -> Any:
    n = a.shape[0]
    upper, lower, order = a.copy(), np.eye(n), np.eye(n)
    for k in range(n - 1):
        p = k + np.argmax(np.abs(upper[k:, k]))
        upper[[k, p], k:] = upper[[p, k], k:]
        order[[k, p]] = order[[p, k]]
        lower[[k, p], :k] = lower[[p, k], :k]
        lower[k + 1 :, k] = upper[k + 1 :, k] / upper[k, k]
        upper[k + 1 :, k:] -= np.outer(lower[k + 1 :, k], upper[k, k:])
    return lower, upper, order


def columns(a: Array) -> Array:
    n = a.shape[0]
    for k in range(n - 1):
        p = k + np.argmax(np.abs(a[k, k:]))
        a[:, [k, p]] = a[:, [p, k]]
        a[k:, [k, p]] = a[k:, [p, k]] * 2
        a[k, k] += a[[k, p], k:].sum() + a[k, [p, k]].sum() + a[[-1, k], : k + 1][0, k]
    return a


def many_rows(a: Array) -> Array:
    rows = np.array([4, -4, 0, 2, 3])
    for k in range(a.shape[0]):
        a[rows, k:] = a[rows[::-1], k:]
        a[rows, : k + 1] += 1
        a[rows[:3], k:] *= a[k, k:]
        a[k:, rows] = a[k:, [k]]
    return a


def blocks(a: Array) -> Array:
    b = np.stack([a, a + 1, a * 2])
    for k in range(1, 4):
        b[k - 1, [0, k], :k] = b[2, [k, 0], :k]
        b[[0, 1], k, k:] = b[[1, 2], 0, k:]
        b[k:, :, [0, k]] -= b[k:, :, [k, 1]]
    return b


@pytest.mark.parametrize("function", [factors, columns, many_rows, blocks])
def test_function(function: Any) -> None:
    check(function, A, exact=False)


def test_positions_are_checked() -> None:
    def late(a: Array, rows: Array) -> Array:
        for k in range(len(a) - 2):
            a[rows, k:] = 0
        return a

    compiled, many = ml.compile(late), np.ones((12, 12))
    with pytest.raises(ml.IndexOutOfBoundsError, match="a position is out of bounds for axis 0"):
        compiled(many, np.array([1, 12]))
    few = ml.compile(late)  # whose loop is unrolled
    with pytest.raises(ml.IndexOutOfBoundsError, match="index 5 is out of bounds for axis 0 with size 5"):
        few(A, np.array([1, 5]))


def test_the_gradient_goes_through_exchanged_rows() -> None:
    def determinant(a: Array) -> Any:
        u, n = a.copy(), a.shape[0]
        total = 1.0
        for k in range(n):
            p = k + np.argmax(np.abs(u[k:, k]))
            u[[k, p], k:] = u[[p, k], k:]
            if p != k:
                total = -total
            total *= u[k, k]
            for i in range(k + 1, n):
                u[i, k:] = u[i, k:] - u[i, k] / u[k, k] * u[k, k:]
        return total

    found = ml.grad(determinant)(A)
    np.testing.assert_allclose(found, np.linalg.det(A) * np.linalg.inv(A).T, rtol=1e-10)


def exchanged_with_itself(m: Any) -> None:
    for row in range(2):
        if m[row][row] != 0:
            m[1][1] -= 1
        else:
            m[row], m[1] = m[1], m[row]


def rank(m: Any) -> Any:
    found = 2
    for row in range(2):
        if m[row][row] == 0:
            for i in range(row + 1, 2):
                if m[i][row] != 0:
                    m[row], m[i] = m[i], m[row]
                    break
            else:
                found -= 1
                m[0][row] = m[0][found]
        else:
            m[1][1] -= 0.5
    return found


@pytest.mark.parametrize("m", [[[3, 2, 1], [-6, -4, -2]], [[0, 2, 1], [1, -4, -2]], [[0, 0, 1], [0, -4, -2]]])
@pytest.mark.parametrize("function", [exchanged_with_itself, rank])
def test_a_row_that_one_branch_stores_into_and_the_other_exchanges(function: Any, m: Any) -> None:
    expected, found = [*map(list, m)], [*map(list, m)]
    assert ml.compile(function, frontend="loops")(found) == function(expected)
    assert found == expected
