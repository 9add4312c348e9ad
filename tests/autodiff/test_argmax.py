"""Derivatives of loops that look for a value and its place, which are raised to one reduction with two results."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mlirml as ml


@ml.loops
def largest(x: Any) -> Any:
    best, place = x[0], 0
    for i in range(x.shape[0]):
        if x[i] > best:
            best, place = x[i], i
    return best * best * (place + 1)


@ml.loops
def below(x: Any) -> Any:
    best, place = 3.0, 0
    for i in range(x.shape[0]):
        if x[i] * x[i] < best:
            best, place = x[i] * x[i], i
    return best * best * (place + 1) + x[place]


@ml.loops
def of_rows(x: Any, y: Any) -> None:
    for r in range(x.shape[0]):
        best, place = x[r, 0], 0
        for i in range(x.shape[1]):
            if x[r, i] > best:
                best, place = x[r, i], i
        y[r] = best * best * (place + 1)


def rows(x: Any) -> Any:
    y = np.zeros(2)
    of_rows(np.stack([x, x[::-1] * x]), y)
    return np.sum(y * np.array([1.0, 2.0]))


XS = np.array([[1.0, 5, 3, 4], [7.0, 5, 3, -4], [2.0, 2.5, 1.9, 4], [-3.0, 2, 1, 0.5]])
D = np.array([1.0, 2, 3, 4])


@pytest.mark.parametrize("function", [largest, below, rows])
def test_both_modes_batches_and_second_derivatives(function: Callable[[Any], Any]) -> None:
    def f(x: Any) -> Any:
        return function(x)

    def all_of(x: Any) -> Any:
        return ml.grad(f)(x), ml.jvp(f, (x,), (D,))[1], ml.hessian(f)(x)

    one, value, step = ml.compile(all_of), ml.compile(f), 1e-6
    found = [one(x) for x in XS]
    for x, (gradient, change, matrix) in zip(XS, found):
        difference = (value(x + step * D) - value(x - step * D)) / (2 * step)
        np.testing.assert_allclose([gradient @ D, change], [difference] * 2, rtol=1e-6)
        np.testing.assert_array_equal(matrix, matrix.T)
    for part, many in zip(zip(*found), ml.compile(ml.vmap(all_of))(XS)):
        np.testing.assert_allclose(many, np.stack(part))
    outside = ml.grad(lambda xs: np.sum(ml.vmap(f)(xs)))(XS)
    np.testing.assert_allclose(outside, np.stack([gradient for gradient, _, _ in found]))


def test_what_the_search_starts_from() -> None:
    @ml.loops
    def search(x: Any, best: Any) -> Any:
        place = -1
        for i in range(x.shape[0]):
            if x[i] > best:
                best, place = x[i], i
        return best * 3 + place

    x = np.array([1.0, 5.0, 3.0])
    for start, expected in ((9.0, ([0, 0, 0], 3)), (2.0, ([0, 3, 0], 0))):
        gradient = ml.grad(lambda x, best: search(x, best), (0, 1))(x, start)
        np.testing.assert_array_equal(gradient[0], expected[0])
        assert gradient[1] == expected[1]
        assert ml.jvp(lambda x, best: search(x, best), (x, start), (x, 1.0))[1] == (3 if start == 9 else 15)
