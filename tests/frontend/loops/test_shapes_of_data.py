"""NumPy's functions of arrays whose lengths depend on the data: quantiles, searches, shapes, shifts, insertions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mlirml as ml
from tests.frontend.loops.against_python import same

Array = Any
X = np.random.default_rng(1).random(10)


def quantiles(x: Array) -> Any:
    y = x[x > 0.5]
    total = 0.0
    for i in range(3):
        total += np.percentile(y, 25 * i) + np.quantile(x[: i + 3], x[i])
    return total, np.percentile(y, [10, 50, 90]), np.quantile(y, 0.3)


def quantiles_with_nan(x: Array) -> Any:
    y = np.where(x > 0.9, np.nan, x)
    return np.percentile(y[y != 0.25], 50), np.percentile(y[y < 0.7], 50)


def searches(x: Array) -> Any:
    y = np.sort(x[x > 0.5])
    found = 0
    for i in range(10):
        found = 3 * found + np.searchsorted(y, 0.1 * i) + np.searchsorted(y, 0.1 * i, "right")
    return found, np.searchsorted(y, x), np.searchsorted(y, y, side="right"), np.searchsorted(np.sort(x), y)


def searches_of_integers(x: Array) -> Any:
    y = np.sort((x * 8).astype(np.int64))
    z = y[y > 3]
    return np.searchsorted(z, y), np.searchsorted(z, np.iinfo(np.int64).max, side="right")


def appended(x: Array) -> Any:
    y = x[x > 0.5]
    return np.append(y, 3.0), np.append(y, x), np.append(x, y), np.append(y, [1, 2]), np.append(y[:, None], y)


def inserted(x: Array) -> Any:
    y = x[x > 0.5]
    return np.insert(y, 0, 3.0), np.insert(y, 1, [3, 4]), np.insert(y, -1, y), np.insert(y, len(y), 1)


def reshaped(x: Array) -> Any:
    y = x[x > 0.5]
    z = np.append(y, y)
    w = z.reshape(-1, 2)
    rows = (
        np.reshape(z, (len(y), 2)),
        w.ravel(),
        w.reshape(-1, 1, 2),
        w.flatten(),
        w.reshape(-1),
        w.reshape(2, -1),
        z.reshape(2, 1, -1),
    )
    return y.reshape(-1, 1) * y.reshape(1, -1), w, rows


def rolled(x: Array) -> Any:
    y = x[x > 0.5]
    total = 0.0
    for i in range(5):
        total += np.roll(y, i)[0] + np.roll(x[:i], 1).sum()
    return total, np.roll(y, 1), np.roll(y, -3), np.roll(y, len(y) + 2)


def repeated(x: Array) -> Any:
    n = 0
    for i in range(len(x)):
        if x[i] > 0.5:
            n += 1
    return np.repeat(1.5, n), np.repeat(x, n), np.repeat(x[0], n).sum()


def repeated_without_loops(x: Array) -> Any:
    n = np.sum(x > 0.5)
    return np.repeat(1.5, n), np.repeat(x, n)


@pytest.mark.parametrize(
    "function",
    [
        quantiles, quantiles_with_nan, searches, searches_of_integers, appended, inserted, reshaped,
        rolled, repeated, repeated_without_loops,
    ],
)  # fmt: skip
def test_function(function: Any) -> None:
    with np.errstate(all="ignore"):
        same(ml.compile(function)(X), function(X), True, "the result")


def bad_shape(x: Array) -> Any:
    return x[x > 0.5].reshape(-1, 2).sum()


def bad_position(x: Array) -> Any:
    return np.insert(x[x > 0.5], 8, 1.0).sum()


def no_elements(x: Array) -> Any:
    return np.percentile(x[x > 0.5], 50)


@pytest.mark.parametrize(
    ("function", "count", "message"),
    [
        (bad_shape, 3, "do not fill the new shape"),
        (bad_position, 7, "out of bounds for an array of changing length"),
        (no_elements, 0, "the array is empty"),
    ],
)
def test_what_does_not_fit_is_an_error_of_the_call(function: Any, count: int, message: str) -> None:
    compiled = ml.compile(function)
    good, bad = np.zeros(10), np.zeros(10)
    good[:8], bad[:count] = 1, 1
    assert compiled(good) == function(good)
    with pytest.raises(ml.errors.MlirmlError, match=message):
        compiled(bad)
