"""Scatters of many updates on a Vulkan driver: by atomic operations, or in the order of the loop."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mlirml as ml
from tests.targets.drivers import needs_vulkan

pytestmark = needs_vulkan
FLOATS = (np.add, np.subtract, np.multiply, np.maximum, np.minimum, np.fmax)
INTEGERS = (np.add, np.subtract, np.multiply, np.maximum, np.minimum, np.bitwise_and, np.bitwise_xor)
CASES = [
    *((ufunc, "f4") for ufunc in FLOATS), *((ufunc, "i4") for ufunc in INTEGERS),
    (np.add, "f2"), (np.maximum, "f2"), (np.minimum, "u4"), (np.add, "i1"), (np.maximum, "i2"), (np.minimum, "u1"),
]  # fmt: skip


def update(ufunc: np.ufunc) -> Any:
    def function(x: Any, i: Any, v: Any) -> Any:
        x = x.copy()
        ufunc.at(x, i, v)
        return x

    return function


def draw(rng: np.random.Generator, dtype: str, *shape: int) -> np.ndarray:
    if np.dtype(dtype).kind in "iu":
        return rng.integers(-(2**31), 2**31, shape).astype(dtype)
    return rng.choice([-1.5, -1.0, -0.0, 0.5, 1.0, 2.0], shape).astype(dtype)  # sums of them are exact


@pytest.mark.parametrize(
    ("ufunc", "dtype", "target"),
    [(*case, "vulkan") for case in CASES] + [(*case, "webgpu") for case in CASES[::4]],
    ids=lambda case: getattr(case, "__name__", case),
)
def test_updates_are_combined_as_by_numpy(ufunc: np.ufunc, dtype: str, target: str) -> None:
    rng = np.random.default_rng(CASES.index((ufunc, dtype)))
    row = ((), (3,), (2, 3))[rng.integers(3)]
    x, v = draw(rng, dtype, 7, *row), draw(rng, dtype, 90, *row)
    if ufunc is np.multiply and dtype == "f4":
        v = np.sign(v)
    if ufunc in (np.maximum, np.fmax, np.minimum) and dtype == "f4":
        x.reshape(-1)[3], v.reshape(-1)[5] = np.nan, np.nan
    i = rng.integers(-7, 7, 90).astype(np.int32)
    function = ml.compile(update(ufunc), target=target)
    np.testing.assert_array_equal(function(x, i, v), update(ufunc)(x, i, v))
    assert "scatter" in function.explain() and "sort" not in function.explain()


def test_neighbours_in_a_word_keep_their_bits() -> None:
    x = np.array([-0.0, 1.0, np.nan, 3.0, -0.0, -0.0], np.float16)
    for ufunc in (np.add, np.fmax):
        found = ml.compile(update(ufunc), target="vulkan")(x, np.full(40, 1, np.int32), np.ones(40, np.float16))
        expected = update(ufunc)(x, np.full(40, 1, np.int32), np.ones(40, np.float16))
        np.testing.assert_array_equal(found.view(np.int16)[[0, 4, 5]], x.view(np.int16)[[0, 4, 5]])
        np.testing.assert_array_equal(found, expected)


def test_the_gradient_of_an_embedding() -> None:
    rng = np.random.default_rng(0)
    table, tokens = rng.standard_normal((50, 8)).astype(np.float32), rng.integers(0, 50, 300)
    weights = rng.standard_normal((300, 8)).astype(np.float32)
    gradient = ml.compile(ml.grad(lambda t, i, w: np.sum(np.take(t, i, axis=0) * w)), target="vulkan")
    expected = np.zeros((50, 8))
    np.add.at(expected, tokens, weights.astype(np.float64))
    np.testing.assert_allclose(gradient(table, tokens, weights), expected, rtol=1e-5, atol=1e-5)
    assert "sort" not in gradient.explain()


def test_sums_have_the_bits_of_the_loop_where_they_have_to() -> None:
    rng = np.random.default_rng(0)
    x, i = rng.standard_normal(9).astype(np.float32), rng.integers(0, 9, 400).astype(np.int32)
    v = rng.standard_normal(400).astype(np.float32)
    with ml.config.override(deterministic=True):
        function = ml.compile(update(np.add), target="vulkan")
    np.testing.assert_array_equal(function(x, i, v), update(np.add)(x, i, v))
    assert "sort" in function.explain()


def test_ordered_gradients_sort_rows() -> None:
    rng = np.random.default_rng(0)
    table, tokens = np.zeros((20, 2, 3), np.float32), rng.integers(0, 20, 300)
    weights = rng.standard_normal((300, 2, 3)).astype(np.float32)
    with ml.config.override(deterministic=True):
        gradient = ml.compile(ml.grad(lambda t, i, w: np.sum(np.take(t, i, axis=0) * w)), target="vulkan")
    np.testing.assert_array_equal(gradient(table, tokens, weights), update(np.add)(table, tokens, weights))
    assert "sort" in gradient.explain() and "merge" not in gradient.explain()  # one block sorts 512 positions


def test_few_updates_and_long_rows_stay_in_order() -> None:
    rng = np.random.default_rng(0)
    for shape, count in (((9,), 20), ((4, 3000), 40)):
        x, i = rng.standard_normal(shape).astype(np.float32), rng.integers(0, shape[0], count).astype(np.int32)
        v = rng.standard_normal((count, *shape[1:])).astype(np.float32)
        found = ml.compile(update(np.add), target="vulkan")(x, i, v)
        np.testing.assert_array_equal(found, update(np.add)(x, i, v))
