"""Stores under masks, and `where` in their place."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mlirml as ml
from tests.fuzz.oracle import check

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
def test_what_a_mask_picks_is_returned(index: Any) -> None:
    check(index, X)


def test_what_a_mask_picks_is_stored_under_it() -> None:
    def f(x: Any, y: Any, v: Any) -> Any:
        x[x > 2] *= 2
        m = y > 0
        y[m] = np.sqrt(y[m].astype(float)) + x[m]
        x[m], y[m] = y[m], x[m] // 2
        y[y < 0] = np.abs(y[y < 0])
        picked = x[m]
        same = picked
        picked += 1
        x[m] = same
        x[~m] -= x[~m].max()
        y[y[:, 1] > 0] -= y[y[:, 1] > 0].max(axis=0)
        x[:, x[0] < v] **= 2
        return x[m].size + x[m].shape[0]

    for dtype in (np.float64, np.float32, np.int64):
        check(f, X.astype(dtype), X[::-1].astype(dtype) * 3, 3)


def test_an_array_as_long_as_what_a_mask_picks() -> None:
    def f(x: Any, y: Any, v: Any) -> Any:
        x[x > 0] = v
        y[:, y[0] > -4] = v[:2]
        y[y[:, 0] > 0] = v[:4][None]
        y[y > 99] = v[:0]

    check(f, X, X * 1, np.arange(6.0) * 10)


def test_sums_of_what_a_mask_picks() -> None:
    def f(x: Any, y: Any) -> Any:
        m, rows = x > 0, y[:, 0] > -10
        return (
            x[m].sum(),
            np.mean(x[m]),
            (x[m].min(), x[m].max(), np.max(x[x > 99], initial=3)),
            (np.prod(x[m]), np.all(x[m] > 1), (x[m] > 1).any(), np.count_nonzero(x[m] > 2)),
            (x[m] + y[m]).sum() + np.sum(x[m] * 2 - 1) + np.dot(x[m], y[m]) + x[m] @ x[m] + np.linalg.norm(y[m]),
            (np.sum(x[1, x[1] > 0]), x[1:, x[0] < 0].sum(axis=1, keepdims=True)),
            (y[rows].mean(axis=0), y[rows].max(axis=0, keepdims=True), (y[rows] @ x[0]).sum(), y[rows].sum(1).sum()),
            divmod(x[m], 2)[1].sum() + np.where(x[m] > 2, x[m], 0).sum() + x[m].clip(1, 2).sum(),
        )

    for dtype in (np.float64, np.int64):
        check(f, X.astype(dtype), X[::-1].astype(dtype) * 3)
    check(lambda x: (x[x > 0].std(ddof=1), x[x > 0].var()), X)


def test_powers_of_what_a_mask_picks_need_no_others() -> None:
    def f(x: Any) -> Any:
        m = x >= 0
        x[m] **= x[m]

    check(f, np.arange(6) - 3)


def test_what_a_mask_picks_in_a_loop() -> None:
    def f(points: Any, centres: Any) -> Any:
        label = np.argmin(np.sum((points[:, None] - centres) ** 2, axis=-1), axis=1)
        for k in range(centres.shape[0]):
            if np.any(label == k):
                centres[k] = points[label == k].mean(axis=0)
        return label

    points = np.array([[0.0, 0], [1, 0], [8, 8], [9, 8], [0, 1]])
    check(f, points, np.array([[0.0, 0], [9, 9], [50, 50]]))


def test_derivatives_of_what_a_mask_picks() -> None:
    def f(x: Any) -> Any:
        y = x.copy()
        y[y > 0] *= y[y > 0]
        return np.sum(np.sqrt(x[x > 0])) + np.sum(y)

    expected = np.where(X > 0, 0.5 / np.sqrt(np.abs(np.where(X == 0, 1, X))) + 2 * X, 1)
    np.testing.assert_allclose(ml.grad(f)(X), expected, rtol=1e-14)
    np.testing.assert_array_equal(ml.vmap(lambda x: x[x > 2].sum())(X), [0, 0, 18])


def test_ufuncs_under_a_mask() -> None:
    def f(x: Any, y: Any) -> Any:
        ratio = np.divide(x, y, out=np.zeros_like(x), where=y != 0)
        np.add(x[0], 1, out=x[1], where=[True, False, True, False])
        np.sqrt(x, out=y, where=x > 0)
        np.multiply(x, 2, x, where=True)
        return ratio

    check(f, X, X[::-1] * (X % 2))
    with pytest.raises(ml.errors.UnsupportedSyntaxError, match="elements are left without a value"):
        ml.compile(lambda x: np.sqrt(x, where=x > 0))(X)


def test_averages_of_what_a_mask_picks() -> None:
    def f(x: Any, w: Any) -> Any:
        m = x > 0
        return np.average(x[m]), np.average(x[m], weights=w[m]), np.average(x[x[:, 0] > -4], axis=0)

    check(f, X, np.ones((3, 4)) * 2.0)


def test_counts_of_numbers_below_a_limit() -> None:
    def f(x: Any, w: Any) -> Any:
        return np.bincount(x, minlength=5), np.bincount(x, w, 5), np.bincount(x[:0], minlength=2)

    check(f, np.array([0, 3, 3, 1, 4], np.int32), np.arange(5.0))
    with pytest.raises(ml.errors.ShapeError, match="a number is negative, or not below minlength=3"):
        ml.compile(lambda x: np.bincount(x, minlength=3))(np.array([1, 3]))


def test_one_known_truth_value_adds_an_axis() -> None:
    def f(x: Any) -> Any:
        two = np.full_like(x, 2)
        return two[two > 0], np.max(two[two < 0], initial=1), x[True], x[np.bool_(False)]

    check(lambda x: [x[True], x[np.bool_(False)]], np.arange(3.0))
    for x in (np.array(3.0), np.float32(3.0), np.complex64(1 + 2j)):
        check(f, x)
