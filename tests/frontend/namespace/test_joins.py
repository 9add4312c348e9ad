"""`np.c_`, `np.r_`, `np.piecewise`, `np.apply_along_axis`, and a `range` as an index."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mlirml as ml
from tests.fuzz.oracle import check

X = np.array([1.5, -2.0, 0.25, 3.0])
M = np.arange(24.0).reshape(2, 3, 4) - 7


def test_columns_side_by_side() -> None:
    check(lambda x: (np.c_[x], np.c_[np.ones(4), x], np.c_[x, x > 0, np.stack([x, -x], 1)], np.c_[0:4, x]), X)
    check(lambda x: (np.c_[x[0], 2], np.c_[M, x[0] * M]), X)


@pytest.mark.parametrize("dtype", ["f4", "i4", "c8"])
def test_vectors_one_behind_the_other(dtype: str) -> None:
    check(lambda x: (np.r_[x, 1, x[::-1]], np.r_[1:4, x], np.r_[x[0], 0.5], np.r_[0.0:1.0:5j, x]), X.astype(dtype))
    check(lambda x: (np.r_[M[0], x[None]], np.r_[[1, 2], x, 3]), X.astype(dtype))


def test_text_is_refused() -> None:
    with pytest.raises(ml.UnsupportedSyntaxError, match="text or matrices"):
        ml.compile(lambda x: np.r_["0,2", x])(X)


def test_pieces() -> None:
    def f(x: Any) -> Any:
        both = np.piecewise(x, [x < 0, x > 1], [lambda v: -v, np.sqrt, 7])
        return both, np.piecewise(x, x > 0, [lambda v, n: v**n, 2.5], 3), np.piecewise(x, [x < 0, x >= 0], [-1, 1])

    check(f, X, rtol=1e-15)
    check(f, X.reshape(2, 2), rtol=1e-15)
    check(lambda x: np.piecewise(x, [x > 0, x > 2], [lambda v: v - v.mean(), 10]), X, rtol=1e-15)


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_functions_of_rows(axis: int) -> None:
    check(lambda x: np.apply_along_axis(lambda v: v / np.linalg.norm(v), axis, x), M, rtol=1e-15)
    check(lambda x: np.apply_along_axis(lambda v, n: v.max() * n, axis, x, 3), M)
    check(lambda x: np.apply_along_axis(lambda v: np.outer(v[:2], v), axis, x), M)
    check(lambda x: np.apply_along_axis(np.sort, 0, x), X)


def test_a_range_as_an_index() -> None:
    check(lambda x: (x[range(3)], x[1, range(3), [3, 2, 1]] if x.ndim == 3 else x[range(3, 0, -1)]), X)

    def store(x: Any) -> None:
        x[range(2), 0] += 1

    check(store, M)
