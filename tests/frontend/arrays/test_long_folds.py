"""Python's `sum`, `max`, `min`, `any` and `all` of long arrays: their values, dtypes, and few operations."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mlirml as ml

LENGTH = 3000


def total(x: Any) -> Any:
    return sum(x)


def from_start(x: Any) -> Any:
    return sum(x * 2, 5)


def extremes(x: Any) -> Any:
    return max(x), min(x)


def truths(x: Any) -> Any:
    return any(x > 2), all(x > 2), any(x > 1e9), all(x == x)


def in_a_loop(x: Any) -> Any:
    found = 0.0
    for i in range(len(x)):
        if x[i] > 1:
            found += x[i]
    return found + sum(x) + max(x) + min(x) + any(x > 3) + all(x > 3)


@pytest.mark.parametrize("dtype", ["bool", "i1", "u2", "i8", "f4", "f8"])
@pytest.mark.parametrize("function", [total, from_start, extremes, truths, in_a_loop])
@pytest.mark.parametrize("frontend", ["auto", "loops"])
def test_reductions(function: Any, dtype: str, frontend: Any) -> None:
    x = (np.arange(LENGTH) * 7 % 11 / 4).astype(dtype)
    f = ml.compile(function, frontend=frontend)
    with np.errstate(all="ignore"):
        found, expected = f(x), function(x)
    for one, other in zip(*(r if isinstance(r, tuple) else (r,) for r in (found, expected)), strict=True):
        assert one.dtype == np.asarray(other).dtype
        np.testing.assert_allclose(one, other, rtol=1e-5)


def test_rows_are_added_up() -> None:
    x = np.arange(600.0).reshape(200, 3)
    np.testing.assert_array_equal(ml.compile(total)(x), sum(x))


def test_nan_counts_where_it_is_first() -> None:
    for position in (0, 1, 99):
        x = np.arange(100.0)
        x[position] = np.nan
        np.testing.assert_array_equal(ml.compile(extremes)(x), extremes(x))
