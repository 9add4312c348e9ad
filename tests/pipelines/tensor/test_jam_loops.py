"""Loops whose iterations reduce one large array read it for four of them at once."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mlirml as ml


def bins(data: Any, radius: Any, count: int) -> Any:
    most, result = radius.max(), np.zeros(count)
    for i in range(count):
        inside = np.logical_and(most * i / count <= radius, radius < most * (i + 1) / count)
        result[i] = data[inside].mean()
    return result


def distances(x: Any, centres: Any) -> Any:
    least, where = np.zeros(len(centres)), np.zeros(len(centres), np.int64)
    for i in range(len(centres)):
        d = (x - centres[i]) ** 2
        least[i] = d.min()
        where[i] = d.argmin()
    return least, where


def after_each_other(x: Any, count: int) -> Any:
    result = np.zeros(count)
    for i in range(count):
        result[i] = np.sum(x * (i + 1)) + result[i - 1] * 0.5
    return result


@pytest.mark.parametrize("count", [65, 100, 103])
def test_results(count: int) -> None:
    rng = np.random.default_rng(0)
    x, y = rng.random(20_000), rng.random(20_000)
    np.testing.assert_allclose(ml.compile(bins)(x, y, count), bins(x, y, count), rtol=1e-12)
    centres = rng.random(count)
    for given, right in zip(ml.compile(distances)(x, centres), distances(x, centres), strict=True):
        np.testing.assert_array_equal(given, right)
    np.testing.assert_allclose(ml.compile(after_each_other)(x, count), after_each_other(x, count), rtol=1e-12)


def test_one_reduction_is_made_of_four() -> None:
    x = np.random.default_rng(0).random(20_000)
    text = ml.compile(bins, static_argnames=("count",)).ir("optimize", x, x, 100)
    assert "step %c4" in text
    assert text.count('iterator_types = ["reduction"]') == 2, "the maximum, and the bins"
