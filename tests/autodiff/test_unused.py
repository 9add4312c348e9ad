"""Derivatives and batches of which nothing is used: their checks are made, for each example and wherever they stand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mlirml as ml

Array = Any


@ml.loops
def pick(x: Array, i: Any) -> Any:
    return x[i] * x[i]


def batch(a: Array, i: Array) -> Any:
    return ml.vmap(lambda row: pick(row, i[1]))(a)


def batch_in_batch(a: Array, i: Array) -> Any:
    return ml.vmap(lambda row: ml.vmap(lambda k: pick(row, k))(i))(a)


def gradient(a: Array, i: Array) -> Any:
    return ml.grad(lambda row: pick(row, i[1]))(a[0])


def change(a: Array, i: Array) -> Any:
    return ml.jvp(lambda row: pick(row, i[1]), (a[0],), (a[1],))


def gradients(a: Array, i: Array) -> Any:
    return ml.vmap(ml.grad(lambda row: pick(row, i[1])))(a)


def changes(a: Array, i: Array) -> Any:
    return ml.jvp(lambda a: batch(a, i), (a,), (a,))


@ml.loops
def summed(x: Array, i: Any) -> Any:
    total = 0.0
    for k in range(2):
        total = total * x[k] + x[i]
    return total


def changes_of_loops(a: Array, i: Array) -> Any:
    return ml.jvp(ml.vmap(lambda row: summed(row, i[1])), (a,), (a,))


def again(a: Array, i: Array) -> Any:
    return ml.grad(ml.checkpoint(lambda row: pick(row, i[1])))(a[0])


def hessian(a: Array, i: Array) -> Any:
    return ml.hessian(lambda row: pick(row, i[1]))(a[0])


@ml.custom_vjp
def own(row: Array, k: Any) -> Any:
    return pick(row, k)


own.defvjp(lambda row, k: (pick(row, k), row), lambda row, g: (g * row, None))


def of_own(a: Array, i: Array) -> Any:
    return ml.grad(own)(a[0], i[1])


UNUSED = [batch, batch_in_batch, gradient, change, gradients, changes, changes_of_loops, again, hessian, of_own]
AROUND: dict[str, Callable[[Any], Any]] = {
    "nothing": lambda f: f,
    "gradient": ml.grad,
    "batch": lambda f: ml.vmap(f, in_axes=(0, None)),
    "gradients": lambda f: ml.vmap(ml.grad(f), in_axes=(0, None)),
    "second": lambda f: ml.grad(lambda a, i: np.sum(ml.grad(f)(a, i))),
}


@pytest.mark.parametrize("around", AROUND)
@pytest.mark.parametrize("unused", UNUSED, ids=lambda f: f.__name__)
def test_the_rest_of_the_program_is_as_without(unused: Any, around: str) -> None:
    def with_it(a: Array, i: Array) -> Any:
        unused(a, i)
        return np.sum(a * a)

    def without(a: Array, i: Array) -> Any:
        return np.sum(a * a)

    a = np.arange(12.0).reshape(2, 2, 3) if "batch" in around or around == "gradients" else np.arange(6.0).reshape(2, 3)
    found, expected = (ml.compile(AROUND[around](f), "reference") for f in (with_it, without))
    np.testing.assert_array_equal(found(a, np.array([0, 2])), expected(a, np.array([0, 2])))
    with pytest.raises(ml.IndexOutOfBoundsError, match="out of bounds for axis 0 with size 3"):
        found(a, np.array([0, 3]))
