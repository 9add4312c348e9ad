"""Loops that read what they have stored, with conditions at their ends and small sums in them, do what Python does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mlirml as ml


def filtered(x: Any, b: Any, a: Any, y: Any) -> None:
    for n in range(len(x)):
        total = 0.0
        for k in range(3):
            if n - k >= 0:
                total += b[k] * x[n - k]
        for k in range(1, 3):
            if n - k >= 0:
                total -= a[k] * y[n - k]
        y[n] = total


def filtered_from_two(x: Any, b: Any, a: Any, y: Any) -> None:
    for n in range(2, len(x)):
        total = b[0] * x[n]
        for k in range(1, 3):
            total += b[k] * x[n - k] - a[k] * y[n - k]
        y[n] = total


def written_out(x: Any, b: Any, a: Any, y: Any) -> None:
    for n in range(2, len(x)):
        y[n] = x[n] - y[n - 1] - (b[0] - y[n - 2]) + (a[1] - x[n - 1])


def with_ends(x: Any, b: Any, a: Any, y: Any) -> None:
    for n in range(len(x)):
        before = y[n - 1] if n > 0 else a[0]
        after = x[n + 1] if n + 1 < len(x) else b[0]
        y[n] = x[n] - before + after
        if n == 0 or n == len(x) - 1:
            y[n] += 1.0


def backwards(x: Any, b: Any, a: Any, y: Any) -> None:
    for n in range(len(x) - 2, -1, -1):
        total = x[n]
        for k in range(1, 3):
            if n + k < len(x):
                total -= b[k] * y[n + k]
        y[n] = total


@pytest.mark.parametrize("length", [1, 2, 3, 5, 17, 64])
@pytest.mark.parametrize("function", [filtered, filtered_from_two, written_out, with_ends, backwards])
def test_filters(function: Callable[..., Any], length: int) -> None:
    rng = np.random.default_rng(length)
    x, y = (rng.integers(-3, 4, length).astype(float) for _ in range(2))
    b, a = np.array([0.5, 0.25, -0.5]), np.array([1.0, -0.5, 0.25])
    expected = y.copy()
    function(x, b, a, expected)
    ml.compile(function)(x, b, a, y)
    np.testing.assert_allclose(y, expected, rtol=1e-12, atol=1e-12)


def positions(x: Any) -> Any:
    found, count, last = np.zeros(len(x), np.int64), 0, -1
    for i in range(len(x)):
        if x[i] > 0:
            found[count] = i
            count += 1
            last = 0 if last > 3 else last + 1
        elif x[i] < -2:
            count = 0
    return found, count, last


def positions_of_two(x: Any) -> Any:
    found, count = np.zeros(len(x), np.int64), 0
    for i in range(len(x)):
        if x[i] > 0:
            found[count] = i
            count += 2
    return found, count


def test_numbers_that_count_are_known_to_be_in_bounds() -> None:
    x = np.random.default_rng(0).integers(-3, 4, 50)
    for given, right in zip(ml.compile(positions)(x), positions(x), strict=True):
        np.testing.assert_array_equal(given, right)
    assert "cf.assert" not in ml.compile(positions).ir("raise", x)
    assert "cf.assert" in ml.compile(positions_of_two).ir("raise", x)
    with pytest.raises(ml.IndexOutOfBoundsError):
        ml.compile(positions_of_two)(np.ones(50, int))
