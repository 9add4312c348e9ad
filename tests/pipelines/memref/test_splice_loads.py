"""Stencils whose vectors are loaded once give what NumPy gives, whatever the length of their rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mlirml as ml


def averages(a: Any, b: Any) -> None:
    for _ in range(3):
        b[:, 1:-1] = a[:, :-2] + a[:, 1:-1] + a[:, 2:]
        a[:, 1:-1] = b[:, :-2] - b[:, 1:-1] - b[:, 2:]


def cross(a: Any, b: Any) -> None:
    b[1:-1, 2:-2] = 2 * a[1:-1, 2:-2] - a[1:-1, :-4] - a[1:-1, 4:] + a[:-2, 2:-2] * a[2:, 2:-2]


def in_place(a: Any, b: Any) -> None:
    """The elements that are stored are loaded, too: none may be computed twice."""
    b[:, 1:] += a[:, 1:] - a[:, :-1]
    b[:, :-1] -= 3 * a[:, :-1] + a[:, 1:]


def onto_itself(a: Any, b: Any) -> None:
    a[:, 1:-1] = a[:, :-2] + a[:, 2:]
    b[:] = a


def clamped(a: Any, b: Any) -> None:
    """Neighbours far apart, a comparison, and a number that is the same for a row."""
    n = a.shape[1] // 3
    d = a[:, n:] - a[:, : a.shape[1] - n] + b[:, :1]
    b[:, n:] = np.where(d > 0, d, a[:, n:])


def along_one_dimension(a: Any, b: Any) -> None:
    for i in range(1, a.shape[1] - 1):
        b[0, i] = a[0, i - 1] + 2 * a[0, i] + a[0, i + 1]


def carried_along(a: Any, b: Any) -> None:
    for i in range(1, a.shape[1] - 1):
        a[0, i] = a[0, i - 1] - a[0, i + 1]


FUNCTIONS = [averages, cross, in_place, onto_itself, clamped, along_one_dimension, carried_along]


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int32, np.int64])
@pytest.mark.parametrize("length", [6, 9, 10, 11, 16, 17, 18, 25, 35, 61])
@pytest.mark.parametrize("function", FUNCTIONS)
def test_stencils(function: Callable[..., None], length: int, dtype: type) -> None:
    rng = np.random.default_rng(length)
    # Integers in any dtype, so that no result is rounded.
    a, b = (rng.integers(-9, 9, (5, length)).astype(dtype) for _ in range(2))
    expected, found = (a.copy(), b.copy()), (a.copy(), b.copy())
    function(*expected)
    ml.compile(function)(*found)
    np.testing.assert_array_equal(found[0], expected[0])
    np.testing.assert_array_equal(found[1], expected[1])


@pytest.mark.parametrize("function", [averages, cross, in_place])
@pytest.mark.parametrize(("processor", "spliced"), [("avx512,l2=1M", True), ("avx2,l2=1M", False)])
def test_avx512_splices(function: Callable[..., None], processor: str, spliced: bool) -> None:
    with ml.config.override(processor=processor):
        text = ml.compile(function).ir("schedule", np.ones((40, 50)), np.ones((40, 50)))
    assert ("vector.shuffle" in text) == spliced


@pytest.mark.parametrize("function", [carried_along])
def test_rows_that_are_stored_are_not_spliced(function: Callable[..., None]) -> None:
    with ml.config.override(processor="avx512,l2=1M"):
        text = ml.compile(function).ir("schedule", np.ones((40, 50)), np.ones((40, 50)))
    assert "vector.shuffle" not in text
