"""Loops that wait for a multiply-add in place of a sum and its quotient have NumPy's values up to rounding."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mlirml as ml


def sweep(x: Any) -> Any:
    """Gauss-Seidel along a row, with the sum stored before the quotient."""
    for j in range(1, len(x)):
        x[j] += x[j - 1]
        x[j] /= 9.0
    return x


def relax(x: Any) -> Any:
    for j in range(1, len(x) - 1):
        x[j] = 0.3 * (x[j + 1] - x[j - 1])
    return x


def running_mean(x: Any) -> Any:
    s = x[0]
    out = np.zeros_like(x)
    for i in range(len(x)):
        s = (s + x[i]) / 3
        out[i] = s
    return out


def both_carried(x: Any) -> Any:
    a, b = x[0], x[1]
    for i in range(len(x)):
        a, b = b, (a + b) / 1.9 + x[i]
    return a - b


def extreme(x: Any) -> Any:
    s = x[0] * 0
    for i in range(len(x)):
        s = (s + x[i] * 1e300) / 1e300
    return s


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("function", [sweep, relax, running_mean, both_carried], ids=lambda f: f.__name__)
def test_values(function: Callable[..., Any], dtype: type) -> None:
    rng = np.random.default_rng(0)
    for length in (3, 50, 1000):
        x = rng.uniform(-1, 1, length).astype(dtype)
        expected, found = function(x.astype(np.float64)), ml.compile(function)(x.copy())
        scale = np.abs(expected).max()
        np.testing.assert_allclose(found, expected, rtol=0, atol=8 * np.finfo(dtype).eps * scale * length**0.5)


def test_extreme_divisors_stay() -> None:
    x = np.full(10, 1.0)
    assert ml.compile(extreme)(x) == extreme(x)


def test_infinite_and_nan_terms() -> None:
    for special in (np.inf, -np.inf, np.nan):
        x = np.linspace(-1, 1, 20)
        x[7] = special
        np.testing.assert_allclose(ml.compile(running_mean)(x), running_mean(x), rtol=1e-14, atol=1e-15)


def test_exact_keeps_the_quotient_of_the_sum() -> None:
    x = np.random.default_rng(0).uniform(-1, 1, 1000)
    with ml.config.override(algebra="exact"):
        np.testing.assert_array_equal(ml.compile(running_mean)(x), running_mean(x))
