"""Bounds of slices of every integer dtype, and products of a sparse row with what its columns pick of a vector."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mlirml as ml
from tests.frontend.loops.against_python import check as check_loops
from tests.fuzz.oracle import check

INTEGERS = [np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64]


def sums(x: Any, bounds: Any, out: Any) -> Any:
    for i in range(out.shape[0]):
        out[i] = np.sum(x[bounds[i] : bounds[i + 1]]) + np.sum(x[: bounds[i]]) * 100
    return out


def last_of_each(x: Any, bounds: Any, out: Any) -> Any:
    for i in range(out.shape[0]):
        x[bounds[i] : bounds[i] + 2] *= 3
        out[i] = np.max(x[-bounds[i + 1] :])
    return out


@pytest.mark.parametrize("dtype", INTEGERS)
def test_bounds_of_every_dtype(dtype: Any) -> None:
    x = np.arange(1.0, 8.0)
    check(sums, x, np.array([0, 2, 2, 7], dtype), np.zeros(3))
    if np.dtype(dtype).kind == "i":
        check(sums, x, np.array([1, -2, -1, 7], dtype), np.zeros(3))
        check(last_of_each, x, np.array([0, 2, 5, 7], dtype), np.zeros(3))


def window_at_the_largest(x: Any, k: Any) -> Any:
    t = np.argmax(k)
    return x[t : t + 5] * 2, np.outer(x[t + 1 : t + 4], x[t : t + 3])


def window_that_is_clamped(x: Any, k: Any) -> Any:
    t = max(0, min(int(k[0] * 30), len(x) - 5))
    u = np.minimum(np.maximum(np.int64(k[1] * 100) - 10, 0), 40)
    return x[t : t + 5], x[u : u + 10] - 1


def window_at_a_place(x: Any, k: Any) -> Any:
    t = np.searchsorted(x, k[0])
    y = np.concatenate([x, x])
    y[t : t + 3] = 0.0
    return y, y[t : t + 7], np.sum(y[t : t + 45])


@pytest.mark.parametrize("function", [window_at_the_largest, window_that_is_clamped, window_at_a_place])
def test_windows_in_array_code(function: Any) -> None:
    rng = np.random.default_rng(3)
    for _ in range(20):
        check(function, np.sort(rng.random(50)), rng.random(20) * 1.4, rtol=1e-12)


def test_a_window_beyond_the_end() -> None:
    def late(x: Any, k: Any) -> Any:
        t = np.argmax(k)
        return x[t + 40 : t + 50]

    x, k = np.arange(50.0), np.zeros(20)
    program = ml.compile(late)
    np.testing.assert_array_equal(program(x, k), x[40:])
    k[1] = 1
    with pytest.raises(ml.IndexOutOfBoundsError, match="a slice of length 10 goes beyond the end"):
        program(x, k)


def test_bounds_beyond_the_greatest_index() -> None:
    check(sums, np.arange(7.0), np.array([1, 2**64 - 1, 2**63, 2**63 + 5], np.uint64), np.zeros(3))


def spmv(rows: Any, columns: Any, values: Any, x: Any) -> Any:
    y = np.empty(rows.size - 1, values.dtype)
    for i in range(rows.size - 1):
        y[i] = values[rows[i] : rows[i + 1]] @ x[columns[rows[i] : rows[i + 1]]]
    return y


def spmv_with_names(rows: Any, columns: Any, values: Any, x: Any) -> Any:
    y = np.zeros(rows.size - 1, values.dtype)
    for i in range(rows.size - 1):
        picked = columns[rows[i] : rows[i + 1]]
        weights = values[rows[i] : rows[i + 1]]
        y[i] = np.sum(weights * x[picked]) + np.dot(weights, x[picked])
    return y


def rows_of_matrix(rows: Any, columns: Any, values: Any, x: Any) -> Any:
    y = np.zeros((rows.size - 1, x.shape[1]))
    for i in range(rows.size - 1):
        y[i] = values[rows[i] : rows[i + 1]] @ x[columns[rows[i] : rows[i + 1]]]
    return y


@pytest.mark.parametrize("dtype", [np.int64, np.int32, np.uint32, np.uint8])
def test_sparse_rows(dtype: Any) -> None:
    rows, columns = np.array([0, 2, 2, 4], dtype), np.array([0, 2, 1, 2], dtype)
    values = np.arange(1.0, 5.0)
    check(spmv, rows, columns, values, np.array([1.0, 2.0, 5.0]))
    check(spmv_with_names, rows, columns, values, np.array([1.0, 2.0, 5.0]))
    check(rows_of_matrix, rows, columns, values, np.arange(6.0).reshape(3, 2))


def test_a_slice_of_a_mask_as_index() -> None:
    def masks(x: Any, rows: Any, mask: Any) -> Any:
        total = 0.0
        for i in range(rows.size - 1):
            total += np.sum(x[mask[rows[i] : rows[i + 1]]])
        return total

    check(masks, np.arange(4.0), np.array([0, 4]), np.arange(4) > 1)
    with pytest.raises(ml.errors.MlirmlError, match="slices of different lengths"):
        ml.compile(masks)(np.ones(4), np.array([0, 3]), np.ones(4, bool))


def backwards(x: Any) -> Any:
    out = np.zeros((len(x), 4))
    for n in range(4, len(x)):
        out[n] = x[n : n - 4 : -1]
        u = x[n - 1 : n - 4 : -1].reshape(3, 1)
        out[n, 0] += (u @ u.T)[0, 2]
        out[n, 2:] -= x[n : n - 4 : -2]
    return out


def stores_backwards(x: Any) -> Any:
    y = x.reshape(6, 5)
    for n in range(4, len(x)):
        x[n : n - 3 : -1] += x[n - 3 : n]
        x[n : n - 3 : -1] *= 0.3
    for i in range(3, 6):
        y[i, i - 1 : i - 3 : -1] -= y[i : i - 2 : -1, 0]
    return x


def backwards_to_the_start(x: Any) -> Any:
    total = 0.0
    for n in range(len(x)):  # an end below 0 counts from the end of the array
        total += x[n : n - 4 : -1].sum() + x[n + 3 : n - 1 : -1].sum()
    return total


@pytest.mark.parametrize("function", [backwards, stores_backwards, backwards_to_the_start])
def test_slices_that_go_backwards(function: Any) -> None:
    x = np.random.default_rng(0).standard_normal(30)
    check_loops(function, x, exact=False)
    compiled = ml.compile(function)
    compiled(x)
    assert "unrolled" not in str(compiled.explain())


@pytest.mark.parametrize("stop", [1, 2, 3, 5])
def test_a_slice_that_starts_from_the_end_is_cut_at_the_end(stop: int) -> None:
    def add(a, b, k):
        n = a.shape[0]
        for i in range(n):
            b[i - n : i + stop] += a[i - n : i + stop]
            for j in range(n - 1, 0, -2):
                b[i - n : j + i] += a[i - n : j + i] * k
        return b.sum()

    found, expected = (np.arange(20.0) for _ in range(2))
    a = np.arange(3.0) + 5
    assert ml.compile(add)(a, found[:3], 2.0) == add(a, expected[:3], 2.0)
    np.testing.assert_array_equal(found, expected)  # nothing is stored after the end


def sums_of_windows(x: Any, out: Any) -> Any:
    total = 0.0
    for i in range(len(x)):
        total += np.sum(x[i : i + 2]) * x[2 * i : 2 * i + 3].shape[0]
    for i in range(0, len(x), 3):
        out[i : i + 4] += x[i : i + 4] * total
    return out, total


def windows_in_rows(x: Any, out: Any) -> Any:
    a = np.outer(x, x)
    for i in range(0, len(x), 2):
        for j in range(0, len(x), 3):
            a[i : i + 2, j : j + 3] *= i - j
            out[i] += a[i : i + 5, j].max()
    return a, out


@pytest.mark.parametrize("function", [sums_of_windows, windows_in_rows])
def test_windows_that_the_last_iterations_cut(function: Any) -> None:
    check_loops(function, np.arange(1.0, 8.0), np.zeros(7))


def test_the_error_of_a_window_beyond_the_end_says_what_to_write() -> None:
    def late(x: Any, k: Any) -> Any:
        total = 0.0
        for i in range(len(k)):
            if k[i] > 0:
                total += np.sum(x[i : i + 3])
        return total

    with pytest.raises(ml.IndexOutOfBoundsError) as caught:
        ml.compile(late)(np.ones(4), np.ones(4))
    assert "min(i + n, len(x))" in str(caught.value)
