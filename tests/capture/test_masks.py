"""Stores under masks, and `where` in their place."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mlirml as ml
from tests.oracle import check

X = np.arange(12.0).reshape(3, 4) - 5


def test_stores_under_a_mask() -> None:
    def f(x: Any, m: Any, v: Any) -> Any:
        y = x.copy()
        y[y < 0] = 0
        y[m] = v
        y[m & (x > 2)] = x[0, 1]
        y[~m] = y[1, 3]
        y[x == 3] = x[0, 0]
        z = np.zeros((3, 4))
        z[m] = -1
        x[x > 4] = 4
        return y, z

    check(f, X, X % 2 == 0, 7.5)
    check(f, X.astype(np.float32), X % 2 == 0, np.float64(0.1))


def test_stores_under_a_mask_of_rows() -> None:
    def f(x: Any, m: Any) -> Any:
        y = x.copy()
        y[m] = 0
        y[y[:, 0] < 0] = [1, 2, 3, 4]
        return y

    check(f, X, np.array([True, False, True]))


def test_stores_under_a_mask_into_a_view() -> None:
    def f(x: Any) -> Any:
        part = x[1:, ::2]
        part[part > 0] = 100
        x.T[x.T < -3] = -100
        return part

    check(f, X)


def test_elements_that_stay_keep_every_bit() -> None:
    big = np.array([2**60 + 1, 3, -(2**62) - 3])

    def f(x: Any, value: Any) -> Any:
        x[x < 0] = value
        return x

    for value in (0.5, 7, True, np.uint64(3), np.float32(2.5), np.array(4.5)):
        check(f, big, value)
        check(f, big.astype(np.uint64) >> np.uint64(1), value)


def test_copyto_under_a_mask() -> None:
    def f(x: Any, y: Any, m: Any) -> Any:
        np.copyto(x, y, where=m)
        np.copyto(x, 3, where=x > 2**61)
        return x

    big = np.array([2**60 + 1, 3, 2**62 + 3])
    check(f, big, np.array([1, 2, 3], np.uint32), np.array([True, False, True]))
    check(f, big, np.array([1, 2, 3], np.uint64).astype(np.int8), np.array([True, False, True]))
    with pytest.raises(TypeError, match="cannot cast float64 to int64"):
        ml.compile(f)(big, big * 1.0, big > 3)


def test_masks_known_while_tracing() -> None:
    def f(x: Any) -> Any:
        k = np.arange(6)
        k[k % 2 == 0] = -1
        y = np.zeros(6)
        y[k < 0] = x[0, 0]
        m = np.array([True, False, True])
        z = np.ones(3)
        z[m] = 5
        return k + y, z + x[:, 0]

    check(f, X)


def test_selections_of_known_positions() -> None:
    def f(x: Any) -> Any:
        return np.where(x > 0, x, 0).sum(), np.where([True, False, True, False], x, -x), np.where(x, 1, 2)

    check(f, X)


@pytest.mark.parametrize("index", [lambda x: x[x > 0], lambda x: x[x > 0] + 1, lambda x: x[x[:, 0] > 0, 1]])
def test_selections_by_mask_are_refused(index: Any) -> None:
    with pytest.raises(ml.errors.ShapeError, match="the shape of the result would depend on the data"):
        ml.compile(index)(X)
