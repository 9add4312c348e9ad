"""Chains of operations on f16 and bf16 are computed as f32: their errors are at most those of NumPy, mostly smaller."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import mlirml as ml

DTYPES = pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16], ids=["f16", "bf16"])


def layer_norm(x: Any, gain: Any, bias: Any) -> Any:
    centred = x - np.mean(x, axis=-1, keepdims=True)
    variance = np.mean(centred**2, axis=-1, keepdims=True)
    return centred / np.sqrt(variance + 1e-3) * gain + bias


def polynomial(x: Any, y: Any, z: Any) -> Any:
    return ((x * y + z) * x - y) / (z * z + 1)


def rows(dtype: Any, *shapes: tuple[int, ...]) -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    return [rng.normal(size=shape).astype(dtype) for shape in shapes]


def error(fn: Callable[..., Any], found: Any, args: list[np.ndarray]) -> float:
    """The root of the mean square difference from float64."""
    expected = fn(*(x.astype(np.float64) for x in args))
    return float(np.sqrt(np.mean((np.asarray(found, np.float64) - expected) ** 2)))


def test_errors_of_rows_are_smaller_than_those_of_numpy() -> None:
    args = rows(np.float16, (64, 100), (100,), (100,))
    assert error(layer_norm, ml.compile(layer_norm)(*args), args) < 0.9 * error(layer_norm, layer_norm(*args), args)


@DTYPES
def test_errors_are_smaller_than_those_of_numpy(dtype: Any) -> None:
    args = rows(dtype, *[(50, 70)] * 3)
    found = ml.compile(polynomial)(*args)
    assert found.dtype == dtype
    assert error(polynomial, found, args) < 0.9 * error(polynomial, polynomial(*args), args)


@DTYPES
def test_exact_algebra_rounds_after_each_operation(dtype: Any) -> None:
    args = rows(dtype, *[(50, 70)] * 3)
    with ml.config.override(algebra="exact"):
        found = ml.compile(polynomial)(*args)
    np.testing.assert_array_equal(found, polynomial(*args))


def test_numbers_that_are_compared_are_rounded() -> None:
    def above(x: Any, y: Any) -> Any:
        return x * y + x > y, (x * y).astype(np.float32) == x * y, np.floor(x * y * 8)

    x, y = rows(np.float16, (300,), (300,))
    compared, equal, floors = ml.compile(above)(x, y)
    wide = x.astype(np.float32) * y
    np.testing.assert_array_equal(compared, (wide + x).astype(np.float16) > y)
    assert equal.all()
    np.testing.assert_array_equal(floors, np.floor((wide * 8).astype(np.float16)))


def test_a_conversion_of_the_program_rounds() -> None:
    def halves(x: Any) -> Any:
        return x.astype(np.float16).astype(np.float32) * 3 - x

    (x,) = rows(np.float32, (200,))
    np.testing.assert_allclose(ml.compile(halves)(x), halves(x), rtol=0, atol=1e-6)


def test_a_running_value_is_rounded_in_each_iteration() -> None:
    def steps(x: Any) -> Any:
        return ml.fori_loop(0, 50, lambda i, y: y * x + x, x)

    (x,) = rows(np.float16, (100,))
    x = (x / 4).astype(np.float16)
    expected = x
    for _ in range(50):
        expected = (expected.astype(np.float32) * x + x).astype(np.float16)
    np.testing.assert_array_equal(ml.compile(steps)(x), expected)
