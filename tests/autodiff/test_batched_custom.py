"""Functions with custom derivatives in batches whose lanes share some of their arguments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mlirml as ml

W = np.arange(6.0).reshape(2, 3)
XS = np.arange(12.0).reshape(4, 3)


@ml.custom_vjp
def product(w: Any, x: Any) -> Any:
    return w @ x


def _backward(kept: Any, cotangent: Any) -> Any:
    w, x = kept
    return np.outer(cotangent, x) * 2, w.T @ cotangent * 3


product.defvjp(lambda w, x: (w @ x, (w, x)), _backward)


def twice(w: Any, x: Any) -> Any:
    return ml.scan(lambda c, _: (product(w, np.concatenate([c, c[:1]])), None), x[:2], None, length=2)[0]


def one_of_two(w: Any, x: Any) -> Any:
    return ml.cond(x[0] > 3, lambda: product(w, x), lambda: product(w, x * 2) ** 2)


def looped(w: Any, x: Any) -> Any:
    total = np.zeros(2)
    for i in range(3):
        if x[i] > 4:
            total += product(w, x) * i
    return total


@pytest.mark.parametrize("function", [product, twice, one_of_two, looped])
def test_the_cotangent_of_a_shared_argument_is_the_sum_of_those_of_the_lanes(function: Callable[..., Any]) -> None:
    def one(w: Any, x: Any) -> Any:
        return np.sum(function(w, x) ** 2)

    gradient = ml.compile(ml.grad(one, (0, 1)))
    by_w, by_x = zip(*(gradient(W, x) for x in XS))
    found = ml.grad(lambda w, xs: np.sum(ml.vmap(one, (None, 0))(w, xs)), (0, 1))(W, XS)
    np.testing.assert_allclose(found[0], np.sum(by_w, axis=0))
    np.testing.assert_allclose(found[1], by_x)
    captured = ml.grad(lambda w: np.sum(ml.vmap(ml.vmap(lambda x: one(w, x)))(XS.reshape(2, 2, 3))))(W)
    np.testing.assert_allclose(captured, np.sum(by_w, axis=0))
    np.testing.assert_allclose(ml.vmap(ml.grad(one), (None, 0))(W, XS), by_w)


def test_a_shared_complex_number() -> None:
    @ml.custom_vjp
    def scaled(a: Any, z: Any) -> Any:
        return a * z

    scaled.defvjp(lambda a, z: (a * z, (a, z)), lambda kept, cotangent: (cotangent * kept[1], cotangent * kept[0]))
    zs = np.array([1 + 2j, 3 - 1j])
    gradient = ml.grad(lambda a: np.sum(np.abs(ml.vmap(scaled, (None, 0))(a, zs)) ** 2))(1 + 1j)
    np.testing.assert_allclose(gradient, 30 - 30j)


@ml.custom_vjp
def scaled_root(w: Any, x: Any) -> Any:
    return w * np.sqrt(x)


scaled_root.defvjp(
    lambda w, x: (w * np.sqrt(x), (w, x)),
    lambda kept, cotangent: (cotangent * np.sqrt(kept[1]), cotangent * kept[0] / (2 * np.sqrt(kept[1]))),
)


def root_of_positive(w: Any, x: Any) -> Any:
    return ml.cond(x > 0, lambda: scaled_root(w, x), lambda: x * 3)


def root_between(w: Any, x: Any) -> Any:
    y = 2 * x
    if x > 0:
        y = y + w
        if x < 9:
            y = y * scaled_root(w, x)
    return y


def roots_while_positive(w: Any, x: Any) -> Any:
    total = w * x
    while x > 0:
        total = total + scaled_root(w, x)
        x = x - 1.5
    return total


@pytest.mark.parametrize("function", [root_of_positive, root_between, roots_while_positive])
def test_a_rule_is_not_asked_for_lanes_that_do_not_come_to_it(function: Callable[..., Any]) -> None:
    xs = np.array([4.0, -1.0, 25.0, 0.5])
    gradient = ml.compile(ml.grad(function, (0, 1)))
    by_w, by_x = zip(*(gradient(2.0, x) for x in xs))
    found = ml.grad(lambda w, xs: np.sum(ml.vmap(function, (None, 0))(w, xs)), (0, 1))(2.0, xs)
    np.testing.assert_allclose(found[0], sum(by_w))
    np.testing.assert_allclose(found[1], by_x)
    np.testing.assert_allclose(ml.vmap(ml.grad(function), (None, 0))(2.0, xs), by_w)
