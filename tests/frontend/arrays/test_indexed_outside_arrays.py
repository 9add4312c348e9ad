"""Arrays from outside of a function, indexed by numbers of the program: they are read anew at each call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mlirml as ml
from tests.fuzz.oracle import TARGETS

TABLE = np.arange(600.0).reshape(200, 3)
PLACES = np.arange(200) % 7


def elements(x: Any) -> Any:
    total = 0.0
    for i in range(200):
        total = np.sin(total) + TABLE[i, 1] * x[i]
    return total


def rows(x: Any) -> Any:
    total = 0.0
    for i in range(200):
        total += np.dot(TABLE[i], TABLE[i]) * x[i] + TABLE[i, :2].sum() + TABLE[PLACES[i], 1]
    return total


def slices(x: Any) -> Any:
    total = 0.0
    for i in range(100):
        total += np.sum(TABLE[i : i + 5, 0]) * x[i]
    return total


def gathered(x: Any) -> Any:
    return TABLE[x.astype(int)] + TABLE[:, 1][x.astype(int)][:, None]


def searched(x: Any) -> Any:
    n = 0
    while TABLE[n, 0] < x[0] * 100:
        n += 1
    return n


@pytest.mark.parametrize("function", [elements, rows, slices, gathered, searched])
def test_reads(function: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    x = np.random.default_rng(0).random(200) * 3
    for target in TARGETS:
        program = ml.compile(function, target)
        for change in range(3):
            TABLE[change, 1] += 1
            PLACES[change] = 6 - change
            np.testing.assert_allclose(program(x), function(x), rtol=1e-12)
        assert "unrolled" not in program.explain(x)
        assert "1 signature(s) compiled" in program.explain(x)


def test_the_gradient_of_a_loop_over_rows() -> None:
    x = np.random.default_rng(0).random(200)
    expected = np.sum(TABLE * TABLE, axis=1) + 1
    found = ml.compile(ml.grad(lambda x: sum_of_rows(x) + np.sum(x)))(x)
    np.testing.assert_allclose(found, expected)


def sum_of_rows(x: Any) -> Any:
    total = 0.0
    for i in range(200):
        total += np.dot(TABLE[i], TABLE[i]) * x[i]
    return total


def test_a_store_into_a_row_is_refused_at_its_line() -> None:
    def f(x: Any) -> Any:
        for i in range(200):
            row = TABLE[i]
            row[0] = x[i]
        return x

    with pytest.raises(ml.CaptureError, match="a store into a captured array, which") as caught:
        ml.compile(f)(np.ones(200))
    assert "row[0] = x[i]" in str(caught.value)
