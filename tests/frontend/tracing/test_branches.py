"""Branches on data in functions without loops, in helpers too: both ways are compiled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mlirml as ml


def whole(x: Any) -> Any:
    if np.sum(x) > 3:
        y = x * 2
        y[0] = 7.0
    else:
        y = x - 1
    return np.sum(y)


def leaky(v: Any) -> Any:
    if v > 0.5:
        return v * 2
    return v - 1


def in_a_helper(x: Any) -> Any:
    return leaky(x[0]) + leaky(x[1])


def early(x: Any) -> Any:
    if x[0] > 0.5:
        return np.sum(x)
    if x[1] > 0.5:
        return np.mean(x)
    return np.max(x)


def assigned_where_it_goes_on(x: Any) -> Any:
    if x[0] > 0.9:
        s = x[1]
    elif x[0] > 0.1:
        s = x[2] * 2
    else:
        return x[0]
    return s * 2


def changed_in_a_branch(x: Any) -> Any:
    if (x < 0).any():
        x = np.abs(x)
    return np.sqrt(x)


FUNCTIONS: list[Callable[[Any], Any]] = [
    whole,
    in_a_helper,
    early,
    assigned_where_it_goes_on,
    changed_in_a_branch,
    lambda x: x * 2 if x[0] > 0.5 else x,
    lambda x: x[0] if x[0] > 0.5 and not x[1] < 0.6 else x[1],
]
POINTS = [np.array(p) for p in ([1.0, 0.2, 3.0], [0.2, 0.7, 0.1], [0.0, 0.1, 0.2], [-1.0, 0.9, 4.0])]


@pytest.mark.parametrize("target", ["cpu", "reference"])
@pytest.mark.parametrize("number", range(len(FUNCTIONS)))
def test_both_ways(number: int, target: str) -> None:
    compiled = ml.compile(FUNCTIONS[number], target)
    for x in POINTS:
        np.testing.assert_allclose(compiled(x), FUNCTIONS[number](x))
    assert compiled._compiled == 1


def test_derivatives_and_batches() -> None:
    x = np.array([1.0, 0.2])
    np.testing.assert_allclose(ml.compile(ml.grad(lambda x: leaky(x[0]) * x[1]))(x), [0.4, 2.0])
    np.testing.assert_allclose(ml.compile(ml.vmap(leaky))(x), [2.0, -0.8])


def test_a_flag_in_a_batch_stays_one_program() -> None:
    compiled = ml.compile(lambda x, train: x * 2 if train else x)
    for train in (True, False):
        np.testing.assert_allclose(compiled(POINTS[0], train), POINTS[0] * (1 + train))
    assert compiled._compiled == 1
