"""Loops with checks that read what the iteration before has stored do what Python does, out of bounds too."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mlirml as ml


def averaged(a: Any, i: int, first: int, last: int) -> None:
    for j in range(first, last):
        a[i, j] += a[i, j - 1]
        a[i, j] /= 9.0


def from_two(a: Any, i: int, first: int, last: int) -> None:
    for j in range(first, last):
        a[i, j] = a[i, j] - 0.5 * a[i, j - 1] + 0.25 * a[i, j - 2]


def of_every_other(a: Any, i: int, first: int, last: int) -> None:
    for j in range(first, last, 2):
        a[i, j] = a[i, j] + a[i, j - 2]


def down_a_column(a: Any, i: int, first: int, last: int) -> None:
    for j in range(first, last):
        a[j, i] = a[j - 1, i] * 0.5 + a[j, i]


@pytest.mark.parametrize("function", [averaged, from_two, of_every_other, down_a_column])
@pytest.mark.parametrize("bounds", [(1, 9), (2, 8), (2, 3), (5, 5), (7, 2), (0, 4), (-3, 6)])
def test_elements_are_those_of_python(function: Callable[..., None], bounds: tuple[int, int]) -> None:
    expected = np.random.default_rng(3).normal(size=(9, 9))
    found = expected.copy()
    function(expected, 4, *bounds)
    ml.compile(function)(found, 4, *bounds)
    np.testing.assert_allclose(found, expected, rtol=1e-14)


@pytest.mark.parametrize("function", [averaged, down_a_column])
@pytest.mark.parametrize("bounds", [(1, 10), (9, 12), (-11, 3)])
def test_an_index_out_of_bounds_is_an_error(function: Callable[..., None], bounds: tuple[int, int]) -> None:
    with pytest.raises(IndexError):
        ml.compile(function)(np.ones((9, 9)), 4, *bounds)


def test_the_element_before_is_not_read_again() -> None:
    with ml.config.override(processor="avx2"):
        text = ml.compile(averaged).ir("schedule", np.ones((9, 9)), 4, 1, 9)
    loads = [line for line in text[text.index("iter_args") :].splitlines() if "memref.load" in line]
    assert sum("9x9xf64" in line for line in loads) == 2


def test_loops_that_carry_numbers_already() -> None:
    def walk(a: Any, last: int) -> float:
        t = 0.5
        for j in range(1, last):
            a[j] = a[j - 1] * 0.5 + np.sqrt(t)
            t += 0.25
        return t

    expected, found = np.ones(9), np.ones(9)
    assert ml.compile(walk)(found, 9) == walk(expected, 9)
    np.testing.assert_allclose(found, expected, rtol=1e-14)
