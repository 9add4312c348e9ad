"""Indexing in the bodies of loops and branches: checks run on the thread that called, and loops store in place."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mlirml as ml
from tests.fuzz.oracle import TARGETS, check

X = np.arange(24.0).reshape(6, 4)
X_ROW = np.arange(3.0)
PLACES = np.array([[0, 1, 1], [2, 1, 5], [-1, -1, 3]])


def test_rows_and_elements_by_the_loop_variable() -> None:
    def f(x: Any, i: Any) -> Any:
        def body(k: Any, carry: Any) -> Any:
            total, y = carry
            y[k] = x[-k - 1] + total
            y[k, 1:] += x[k, 0]
            y[0, 0] = y[k, k - k]
            return total + x[k, 2] + x[i[k % 3], 1], y

        return ml.fori_loop(0, 6, body, (0.0, np.zeros((6, 4))))

    check(f, X, PLACES[2])


def test_gathers_and_scatters_in_a_scan() -> None:
    def f(x: Any, places: Any) -> Any:
        def step(counts: Any, row: Any) -> Any:
            np.add.at(counts, row, 1)
            counts[row[0]] = 0
            return counts, (x[row], x[row[1]].at[row % 4].add(1))

        return ml.scan(step, np.zeros(6, np.int64), places)

    for target in TARGETS:
        counts, (rows, added) = ml.compile(f, target)(X, PLACES)
        assert counts.tolist() == [0, 3, 0, 1, 0, 0]
        assert (rows == X[PLACES]).all()
        expected = X[PLACES[:, 1]]
        np.add.at(expected, (np.arange(3)[:, None], PLACES % 4), 1)
        assert (added == expected).all()


def test_the_variable_of_a_loop_needs_no_check_where_it_is_in_bounds() -> None:
    def total(lower: int, upper: int) -> Any:
        return ml.compile(lambda x: ml.fori_loop(lower, upper, lambda k, s: s + x[k, 0], 0.0))

    for lower, upper, checked in ((0, 6, False), (-6, 6, False), (2, 5, False), (0, 7, True), (-7, 2, True)):
        assert ("cf.assert" in total(lower, upper).ir("capture", X)) == checked
        if not checked:
            assert total(lower, upper)(X) == sum(X[k, 0] for k in range(lower, upper))


def test_what_is_computed_from_the_variable_of_a_loop_has_limits_too() -> None:
    def body(k: Any, y: Any) -> Any:
        y[k] = y[k - 1] + y[(k + 5) % 6, 0] + np.asarray(X_ROW)[-(k // 2)] + y[2 * k - 8, 1]
        return y

    def f(x: Any) -> Any:
        return ml.fori_loop(1, 6, body, x.copy())

    compiled = ml.compile(f)
    assert "cf.assert" not in compiled.ir("capture", X)
    expected = X.copy()
    for k in range(1, 6):
        body(k, expected)
    assert (compiled(X) == expected).all()
    outside = ml.compile(lambda x: ml.fori_loop(1, 6, lambda k, s: s + x[k - 8, 0], 0.0))
    with pytest.raises(ml.IndexOutOfBoundsError):
        outside(X)


@pytest.mark.parametrize("target", TARGETS)
def test_a_check_in_a_loop_fails_once(target: str) -> None:
    compiled = ml.compile(lambda x, n: ml.fori_loop(0, n, lambda k, s: s + x[k, 0], 0.0), target)
    assert compiled(X, 6) == X[:, 0].sum()
    for _ in range(2):
        with pytest.raises(ml.IndexOutOfBoundsError, match="index 6 is out of bounds for axis 0 with size 6"):
            compiled(X, 8)
    assert compiled(X, 2) == 4


@pytest.mark.parametrize("target", TARGETS)
def test_a_check_in_a_branch_counts_if_the_branch_runs(target: str) -> None:
    compiled = ml.compile(lambda x, i: ml.cond(i < 6, lambda: x[i], lambda: x[0]), target)
    assert (compiled(X, 9) == X[0]).all()
    assert (compiled(X, 5) == X[5]).all()
    with pytest.raises(ml.IndexOutOfBoundsError):
        compiled(X, -7)


def test_a_view_of_a_loop_stays_there() -> None:
    def f(x: Any) -> Any:
        kept = []

        def body(k: Any, s: Any) -> Any:
            kept.append(x[k])
            return s + kept[0][0]

        return ml.fori_loop(0, 3, body, 0.0) + kept[0]

    with pytest.raises(ml.LeakedTracerError, match="is used outside of"):
        ml.compile(f)(X)
