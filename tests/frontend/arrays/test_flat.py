"""`x.flat`: reads and stores of elements in C order, as NumPy has them."""

from __future__ import annotations

from typing import Any

import numpy as np

import mlirml as ml


def stored(x: Any, y: Any, v: Any, k: Any) -> Any:
    x, y = x.copy(), y.copy()
    part = x.flat[2:5]
    x.flat[3] = v[0]
    x.flat[::2] = v
    x.T.flat[1] = 7
    x.flat[[0, 5]] = v[1]
    y[1:].flat = v
    y.T.flat[2:4] = 1
    x.flat[k] += 3
    return x, y, part, len(x.flat), x.flat[k], sum(2 * e for e in y.T.flat), x.flat.copy()


def test_reads_and_stores_are_those_of_numpy() -> None:
    x, y, v = np.arange(6.0).reshape(2, 3), np.arange(12.0).reshape(4, 3), np.array([10.0, 20.0])
    compiled = ml.compile(stored)
    for k in (0, 4):
        for one, other in zip(compiled(x, y, v, k), stored(x, y, v, k), strict=True):
            np.testing.assert_array_equal(one, other)


def test_a_gradient_goes_through_stores() -> None:
    def f(x: Any) -> Any:
        y = x * 1
        y.flat[1] = y.flat[2] * 3
        return np.sum(y**2)

    x = np.arange(1.0, 5.0).reshape(2, 2)
    np.testing.assert_allclose(ml.grad(f)(x), [[2, 0], [6 + 18 * 3, 8]])


def test_functions_of_special_names() -> None:
    def f(x: Any) -> Any:
        return np.i0(x), x * np.kaiser(5, 3.0), x * np.blackman(5)

    x = np.linspace(-3, 9, 5)
    for one, other in zip(ml.compile(f)(x), f(x), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-15)
