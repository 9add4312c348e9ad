"""Indexing with arrays, masks and integers known only at run time, against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mlirml as ml
from tests.fuzz.oracle import TARGETS, check

X = np.arange(120.0).reshape(4, 5, 6)
ROWS = np.array([1, 0, -1, 1])
J = np.array([[0, -2], [3, 0], [2, 2]])


@pytest.mark.parametrize("dtype", [np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64])
def test_integers_of_every_dtype(dtype: Any) -> None:
    i = (ROWS % 4).astype(dtype) if np.dtype(dtype).kind == "u" else ROWS.astype(dtype)

    def f(x: Any, i: Any, k: Any) -> Any:
        return x[i], x[:, i, 1], x[k], x[k, :, i], x[0, k, k]

    check(f, X, i, i[0])
    check(f, X, i, np.array(i[2]))


def test_python_numbers() -> None:
    def f(x: Any, i: Any, j: Any) -> Any:
        return x[i], x[i, j], x[..., j], x[i, ::-2, j], x[i, j, -1], x[None, :, j, None, i], x[::-1][i]

    check(f, X, 1, -2)


def test_dimensions_of_arrays_go_where_numpy_puts_them() -> None:
    def f(x: Any, i: Any, j: Any, k: Any) -> Any:
        side_by_side = (
            x[:, i],
            x[..., i],
            x[:, i, i],
            x[:, 0, i],
            x[:, k, j],
            x[None, j, j, :],
            x[:, None, j],
            x[1:, j, 2],
        )
        apart = (
            x[0, :, i],
            x[i, :, j[:, :1, None] * 0],
            x[i, None, 0],
            x[i, ..., i],
            x[k, :, j],
            x[k, None, j],
            x[i, ..., 1],
        )
        whole = x[i, i, i], x[j, j, j], x[i, ..., i, i], x[i, i, i, ...], x[i, i, ..., i], x[j, k, -1]
        return side_by_side, apart, whole

    check(f, X, ROWS, J, 1)


def test_index_arrays_broadcast() -> None:
    def f(x: Any, i: Any, j: Any) -> Any:
        return x[i[:, None], i], x[i[:, None, None], j, -1], x[j, [[0], [1], [2]]], x[np.ix_([0, 2], [1, 3])]

    check(f, X, ROWS, J)


def test_known_lists_and_arrays() -> None:
    def f(x: Any) -> Any:
        odd = np.arange(5) % 2 == 1
        return (
            x[[0, 2, -1]], x[[]], x[:, [[1, 0], [-1, 2]]], x[[0, 1], [2, 3]], x[..., np.arange(6)[::-2]], x[:, odd],
            x[0, odd, 1], x[odd[:4]], x[:, np.ones((5, 6), bool)], np.arange(10)[[3, 4]],
            np.arange(10)[[[1], [2]]] * x[0, 0, 0],
        )  # fmt: skip

    check(f, X)


def test_arrays_from_outside_are_read_at_each_call() -> None:
    places, k = np.array([0, 1]), np.array(2)
    compiled = ml.compile(lambda x: (x[places], x[k]))
    assert (compiled(X)[0] == X[[0, 1]]).all()
    places[:], k[...] = [3, -2], 3
    given = compiled(X)
    assert (given[0] == X[[3, -2]]).all()
    assert (given[1] == X[3]).all()
    places[0] = 4
    with pytest.raises(IndexError):
        compiled(X)


@pytest.mark.parametrize("target", TARGETS)
def test_masks_from_outside_are_read_at_each_call(target: str) -> None:
    mask = np.arange(20).reshape(4, 5) % 3 == 0
    compiled = ml.compile(lambda x: x[mask], target)
    assert (compiled(X) == X[mask]).all()
    mask[0, 0] = False
    assert (compiled(X) == X[mask]).all()


def test_computed_indices_and_operands() -> None:
    def f(x: Any, i: Any, j: Any) -> Any:
        y = np.exp(-x)
        best = np.argmax(y[0], axis=1)
        return (
            y[i % 3, i // 2] + 1,
            y[1, np.arange(5), best].sum(),
            (y.T @ np.ones(4))[j + 1],
            y[(y[:, 0, 0] * 0).astype(int)],
        )

    check(f, X, ROWS, J, rtol=1e-15)


def test_what_is_indexed_may_be_a_view() -> None:
    def f(x: Any, i: Any, k: Any) -> Any:
        return (
            x.T[i],
            x[::2, 1:][:, i],
            x.reshape(20, 6)[i],
            x[k].T[i],
            x[i].T[::-1],
            np.broadcast_to(x[0, 0], (3, 6))[k, i],
        )

    check(f, X, ROWS, 1)
    check(f, X.T.copy().T, ROWS, 1)


def test_results_are_copies_or_views_as_with_numpy() -> None:
    def f(x: Any, i: Any, k: Any, z: Any) -> Any:
        gathered, row, copied = x[i], x[k], x[z]
        gathered[...] = -1
        row[1] = -2
        copied[2] = -3
        x[0, 0, 0] = 100
        return gathered, row, copied

    check(f, X, ROWS, 1, np.array(2))


def test_empty_arrays() -> None:
    def f(x: Any, i: Any) -> Any:
        return x[i], x[:, i, i], x[:, :0][i], x[:0, i]

    check(f, X, np.zeros(0, int))
    check(lambda x, i: x[:, i], np.ones((0, 3)), ROWS)
    check(lambda x, i: x[i, :0], X, ROWS)


def test_every_dtype_is_gathered() -> None:
    for dtype in (np.bool_, np.int8, np.uint16, np.float16, np.float32, np.int64):
        check(lambda x, i, k: (x[i], x[k], x[k, k, k]), (X % 7).astype(dtype), ROWS, 2)


def test_a_known_array_at_a_place_known_at_run_time() -> None:
    def f(i: Any, k: Any) -> Any:
        table = np.arange(12).reshape(3, 4) ** 2
        part = table[k]
        part[1] = 7
        return table[i % 3], table, part, table[k, 2], (table[:, k] + 1)[i % 3]

    check(f, ROWS, 2)
    check(f, ROWS, np.int8(-1))


def test_errors_reach_every_call_and_leave_the_arguments_as_they_were() -> None:
    def f(x: Any, i: Any) -> Any:
        x[0] = -1
        return x[:, i]

    compiled = ml.compile(f)
    for wrong in (6, -6):
        for function in (f, compiled):
            x = X.copy()
            with pytest.raises(IndexError):
                function(x, np.array([0, wrong]))
            assert (x[0] == (-1 if function is f else X[0])).all()  # NumPy has stored before it fails
            assert (x[1:] == X[1:]).all()
    compiled(x, np.array([0, 1]))
    assert (x[0] == -1).all()


def test_the_first_failure_is_reported() -> None:
    compiled = ml.compile(lambda x, i, j: x[i] + x[:, j])
    with pytest.raises(IndexError, match="axis 0 with size 4"):
        compiled(X[:, :4, 0], np.full(4, 9), np.full(4, 9))
    with pytest.raises(IndexError, match="axis 1 with size 4"):
        compiled(X[:, :4, 0], np.full(4, 1), np.full(4, 9))


@pytest.mark.parametrize("x", [np.array(2.0), np.arange(3.0), np.ones((2, 2))])
@pytest.mark.parametrize("truth", [True, False, np.True_])
def test_stores_under_a_truth_value(x: Any, truth: Any) -> None:
    def f(x: Any) -> Any:
        x, y = x.copy(), np.zeros_like(x)
        x[truth] = x[truth] * 2
        y[np.size(y) > 1] = 5
        return x, y

    for ours, theirs in zip(ml.compile(f)(x), f(x)):
        assert np.array_equal(ours, theirs)


def test_nothing_is_taken_of_rows_that_are_not_there() -> None:
    x, wrong = np.zeros((0, 1)), [5]
    assert ml.compile(lambda x: np.take(x, wrong, axis=1))(x).shape == (0, 1)
    with pytest.raises(IndexError):
        ml.compile(lambda x: np.take(x, wrong, axis=0))(x.T)


@pytest.mark.parametrize("mode", ["clip", "wrap"])
def test_rows_without_elements_are_taken_from_anywhere(mode: str) -> None:
    x, rows = np.zeros((0, 0)), np.array([[3, -1]])
    assert ml.compile(lambda x, i: np.take(x, i, 0, mode=mode))(x, rows).shape == (1, 2, 0)  # NumPy's "wrap" hangs
    assert np.take(x, rows, 0, mode="clip").shape == (1, 2, 0)
