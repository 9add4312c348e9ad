"""Sides of selects that are skipped for a block change no element, whichever elements select them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mlirml as ml

LENGTHS = (255, 256, 257, 272, 700, 1024, 4099)


def elu(x: Any, y: Any) -> None:
    y[:] = np.where(x > 0, x, np.expm1(x))


def in_place(x: Any, y: Any) -> None:
    x[:] = np.where(x > 0, x + y, np.tanh(x))


def of_two_arrays(x: Any, y: Any) -> None:
    y[:] = np.where(x + y > 0, np.exp(np.minimum(x, 1)), y)


def integers(x: Any, y: Any) -> None:
    k = x.astype(np.int64)
    y[:] = np.where(k > 0, np.sqrt(np.abs(x)) * np.sin(y), k)


def nested(x: Any, y: Any) -> None:
    y[:] = np.where(x > 1, np.where(y > 0, np.log(x * y), y), np.where(x < -1, np.cos(x), x))


def carried_along(x: Any, y: Any) -> None:
    for i in range(1, len(x)):
        x[i] = x[i] if x[i - 1] > 0 else np.tanh(x[i - 1])


FUNCTIONS = (elu, in_place, of_two_arrays, integers, nested, carried_along)


def with_some(rng: np.random.Generator, length: int, where: str) -> np.ndarray:
    """Positive numbers; one negative at a position, or some anywhere, or NaN, or all negative."""
    x = rng.uniform(0.5, 3, length)
    if where == "all":
        return -x
    if where == "anywhere":
        return np.where(rng.random(length) < 0.01, -x, x)
    if where == "nan":
        x[rng.integers(length)] = np.nan
    elif where != "none":
        x[{"first": 0, "last": length - 1, "probe": min(15, length - 1), "after": min(16, length - 1)}[where]] *= -1
    return x


@pytest.mark.parametrize("where", ["none", "all", "first", "probe", "after", "last", "anywhere", "nan"])
@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
def test_values(function: Callable[..., None], where: str) -> None:
    rng = np.random.default_rng(0)
    compiled = ml.compile(function)
    for length in LENGTHS:
        x, y = with_some(rng, length, where), with_some(rng, length, "none")
        expected, found = (x.copy(), y.copy()), (x.copy(), y.copy())
        function(*expected)
        compiled(*found)
        for one, other in zip(found, expected):
            np.testing.assert_allclose(one, other, rtol=1e-13)


@pytest.mark.parametrize(("function", "branches"), [(elu, True), (in_place, True), (carried_along, False)])
def test_blocks_have_branches(function: Callable[..., None], branches: bool) -> None:
    with ml.config.override(processor="avx2,l2=1M"):
        text = ml.compile(function).ir("schedule", np.ones(4096), np.ones(4096))
    assert ("-> (i1)" in text) == branches
