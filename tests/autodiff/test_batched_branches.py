"""Gradients of batches through branches whose derivatives are no numbers for the lanes that do not take them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mlirml as ml

XS = np.array([4.0, -1.0, 2.0])
A = np.array([[1.0, 0.3], [0.2, 2.0]])


def factor(x: Any) -> Any:
    y = x * 1.0
    if x > 0:
        y = np.sum(np.linalg.cholesky(A @ A.T * x))
    return y


def products(x: Any) -> Any:
    y = x * 1.0
    if x > 0:
        y = np.prod(np.sqrt(np.array([x, x + 1]))) + np.cumprod(np.log(np.array([x, x * 3])))[1]
    return y


def matrices(x: Any) -> Any:
    y = x * 1.0
    if x > 0:
        y = np.sum((A * np.sqrt(x)) @ (A * np.log(x)) @ np.ones(2)) + np.sum(np.convolve(np.sqrt(x) * A[0], A[1]))
    return y


def roots(x: Any) -> Any:
    y = x * 1.0
    while x > 0:
        y = y + np.sum(np.sqrt(x) * A @ (A * np.log(x + 0.5)))
        x = x - 1.3
    return y


def conditional(x: Any) -> Any:
    return ml.cond(x > 0, lambda: np.sum((A * np.sqrt(x)) @ (A * np.sqrt(x))), lambda: x * 3)


@pytest.mark.parametrize("function", [factor, products, matrices, roots, conditional])
def test_gradients_are_those_of_each_lane(function: Callable[[Any], Any]) -> None:
    gradient = ml.compile(ml.grad(function))
    expected = [gradient(x) for x in XS]
    assert np.isfinite(expected).all()
    np.testing.assert_allclose(ml.grad(lambda xs: np.sum(ml.vmap(function)(xs)))(XS), expected)
    np.testing.assert_allclose(ml.vmap(ml.grad(function))(XS), expected)
