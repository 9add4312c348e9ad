"""Maxima that only keep exponentials in range: no derivative goes through them, and those that matter are kept."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mlirml as ml
from tests.autodiff.test_derivatives import differences

X = np.random.default_rng(0).standard_normal((5, 4))


def log_sum_exp(x: Any) -> Any:
    largest = np.max(x, axis=1, keepdims=True)
    return np.log(np.sum(np.exp(x - largest), axis=1)) + largest[:, 0]


def softmax(x: Any) -> Any:
    scaled = np.exp(x - np.max(x, axis=1, keepdims=True))
    return scaled / np.sum(scaled, axis=1, keepdims=True)


def log_softmax(x: Any) -> Any:
    moved = x - np.max(x, axis=-1, keepdims=True)
    return moved - np.log(np.sum(np.exp(moved), axis=-1, keepdims=True))


def weighted(x: Any) -> Any:
    scaled = np.exp(2 * x - 2 * np.max(x, axis=1, keepdims=True))
    return (scaled @ X.T[:, :2]) / np.sum(scaled, axis=1)[:, None]


SHIFTED = [log_sum_exp, softmax, log_softmax, weighted, lambda x: np.log(np.sum(np.exp(x - np.max(x)))) + np.max(x)]
KEPT: list[Callable[[Any], Any]] = [
    lambda x: np.sum(np.exp(x - np.max(x, axis=1, keepdims=True))),
    lambda x: np.log(np.sum(np.exp(x - np.max(x, axis=0)))) + np.sum(np.max(x, axis=0)),
    lambda x: np.log(np.sum(np.exp(x - np.max(x, axis=1, keepdims=True)))),
    lambda x: x - 0.5 * np.max(x),
    lambda x: np.max(x, axis=1)[:4] - np.sum(x, axis=1)[1:],
    lambda x: np.log(np.sum(np.exp(x - np.max(x)), axis=1) + 1) + np.max(x),
    lambda x: np.log(np.sum(np.exp(x - 2 * np.max(x)))) + np.max(x),
    lambda x: np.max(x) * (np.sum(x) - np.max(x)) + np.max(x),
    lambda x: np.exp(x[:4] - np.max(x, axis=0)) / np.exp(-np.max(x, axis=0))[:, None],
]


def stopped(function: Callable[[Any], Any]) -> bool:
    """Whether no comparison with a maximum, which its derivative needs, is left in the gradient."""
    return "arith.cmpf" not in ml.compile(ml.grad(function)).ir("transform", X)


@pytest.mark.parametrize("function", SHIFTED)
def test_a_shift_has_no_derivative(function: Callable[[Any], Any]) -> None:
    def total(x: Any) -> Any:
        y = function(x)
        return np.sum(y * np.cos(np.arange(y.size).reshape(y.shape)))

    assert stopped(total)
    found = ml.compile(ml.grad(total))(X)
    np.testing.assert_allclose(found, differences(total, X), rtol=1e-6, atol=1e-8)
    v = np.cos(X)
    np.testing.assert_allclose(ml.jvp(total, (X,), (v,))[1], np.sum(found * v), rtol=1e-9)
    np.testing.assert_allclose(
        ml.hvp(total, (X,), (v,)),
        (ml.grad(total)(X + 1e-5 * v) - ml.grad(total)(X - 1e-5 * v)) / 2e-5,
        rtol=1e-5, atol=1e-7,
    )  # fmt: skip


@pytest.mark.parametrize("function", KEPT)
def test_a_maximum_that_matters_keeps_its_derivative(function: Callable[[Any], Any]) -> None:
    def total(x: Any) -> Any:
        y = function(x)
        return np.sum(y * np.cos(np.arange(np.size(y)).reshape(np.shape(y))))

    assert not stopped(total)
    found = ml.compile(ml.grad(total))(X)
    np.testing.assert_allclose(found, differences(total, X), rtol=1e-6, atol=1e-8)
