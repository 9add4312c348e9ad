"""Stores at arrays of positions, and `ufunc.at`, against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mlirml as ml
from tests.fuzz.oracle import check

X = np.arange(24.0).reshape(4, 6)
ROWS = np.array([1, 0, -1, 1])


def test_the_last_of_equal_positions_counts() -> None:
    def f(x: Any, i: Any, v: Any) -> Any:
        x[i] = v
        return x

    for value in (7, 2.5, X, np.arange(6), np.arange(4.0)[:, None], np.float32(3), np.ones((1, 1, 6))):
        check(f, X, ROWS, value)
    check(f, X[:, 0].copy(), ROWS, np.arange(4.0))
    check(f, X.astype(np.int8), ROWS, 3.7)


def test_in_place_operators_read_before_they_store() -> None:
    def f(x: Any, i: Any, v: Any) -> None:
        x[i] += v
        x[:, i] *= 2
        x[i, i] -= 1

    check(f, X, ROWS, np.arange(6.0))
    check(f, X.astype(np.float32), ROWS, np.ones((4, 1), np.float32))


def test_ufunc_at_meets_equal_positions_again() -> None:
    def f(x: Any, i: Any, v: Any) -> None:
        np.add.at(x, i, v)
        np.multiply.at(x, (slice(None), i), 1.5)
        np.subtract.at(x, (i, i), 0.25)
        np.maximum.at(x, (0, i), 13)
        np.minimum.at(x[1:].T, i, 40)

    check(f, X, ROWS, 1)
    check(f, X, ROWS, np.arange(6.0))
    check(f, X, ROWS, X)


def test_ufunc_at_converts_as_numpy() -> None:
    def f(x: Any, i: Any, v: Any) -> None:
        np.add.at(x, i, v)

    check(f, X.astype(np.float32), ROWS, np.float64(0.1))
    check(f, X.astype(np.uint8), ROWS, 200)
    check(f, X.astype(np.float16), ROWS, np.float32(0.1))
    check(f, X.astype(np.int64), ROWS, 1.75)
    check(f, X > 4, ROWS, 1)


def test_ufunc_at_takes_every_index() -> None:
    def f(x: Any, k: Any, m: Any) -> None:
        np.add.at(x, 1, 5)
        np.add.at(x, (slice(1, 3), None, 2), [[1, 2]][0][0])
        np.subtract.at(x, k, 2)
        np.add.at(x, (k, [0, 0, 1]), [1, 2, 3])
        np.multiply.at(x, m, 3)
        np.add.at(x, x > 20, 100)

    check(f, X, 2, X % 2 == 0)


def test_stores_go_through_views() -> None:
    def f(x: Any, i: Any, k: Any) -> Any:
        y = x.T[::2]
        y[i] = 7
        x[1:][:, i] = -x[0, i]
        w = x.copy()
        w.reshape(2, 12)[k][i] = 9
        z = x[k]
        z[i] += 1
        return y, z, w

    check(f, X, np.array([0, 2]), 1)


def test_axes_of_the_values_are_those_of_the_elements() -> None:
    def f(x: Any, i: Any, v: Any) -> None:
        x[:, None, i] = v[:, None]
        x[0, :, None][i % 4] = v[0, 0]
        x[i[:, None], i[None, :] % 4] = v.T[:4, :4]
        x[:2, i] = v[:2] + 10

    check(f, X, ROWS, -X[:, :4])


def test_known_positions_and_masks() -> None:
    def f(x: Any) -> Any:
        even = np.arange(4) % 2 == 0
        y = np.zeros((3, 3))
        y[[0, 1, 2], [0, 1, 2]] = 1
        y[[2, 0], 1] = x[0, :2]
        x[[0, 1], [2, 3]] = [5, 6]
        x[even] = x[1::2]
        x[:, np.array([True, False] * 3)] += 1
        return y

    check(f, X)


def test_a_mask_among_other_items() -> None:
    def f(x: Any, m: Any, k: Any) -> None:
        x[:, m] = 0
        x[k, m] = x[0, 0] + 1
        x[::2, x[0] > 3] = 5

    check(f, X, np.arange(6) % 2 == 0, 3)


def test_nothing_is_stored_at_no_position() -> None:
    def f(x: Any, i: Any) -> None:
        x[i] = 1
        np.add.at(x, i, 1)

    check(f, X, np.zeros(0, int))
    check(f, X, np.zeros((0, 3), int))


def test_a_place_known_at_run_time() -> None:
    def f(x: Any, k: Any, v: Any) -> Any:
        y = np.zeros((4, 6))
        y[k] = v
        y[k, 1] += 3
        x[k, :, None][...] = 2
        x[:, k] = v[:4]
        row = y[k]
        row[2:] = 8
        return y, row

    check(f, X, 1, X[0])
    check(f, X, np.int8(-2), X[0])


def test_a_check_that_fails_stores_nothing_in_the_arguments() -> None:
    def f(x: Any, i: Any) -> None:
        x[i] = 1

    x = X.copy()
    for target in ("cpu", "reference"):
        with pytest.raises(ml.IndexOutOfBoundsError, match="index 4 is out of bounds for axis 0 with size 4"):
            ml.compile(f, target)(x, np.array([0, 4]))
        assert (x == X).all()
