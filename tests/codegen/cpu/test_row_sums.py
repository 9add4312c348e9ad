"""Sums along long rows from memory, which are computed in lanes: as exact as NumPy's, for infinities and NaN, too."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import mlirml as ml
from mlirml.analysis.costs import STATIC

COLUMNS = 40_007
ROWS = 64 * STATIC.cache_bytes // (4 * COLUMNS)
"""More than the caches hold in f32 already, with elements after the last block."""


def in_lanes(function: Callable[..., object], *arguments: np.ndarray) -> bool:
    text = ml.compile(function).ir("schedule", *arguments)
    return "memref.prefetch" in text and "vector.reduction <add>" in text


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("start", [0, 3])
def test_sums_of_rows_are_as_exact_as_numpy(dtype: type, start: int) -> None:
    x = np.random.default_rng(0).standard_normal((ROWS, COLUMNS)).astype(dtype)[:, start:]
    exact = np.sum(x.astype(np.longdouble), axis=1)

    def sums(x: np.ndarray) -> np.ndarray:
        return np.sum(x, axis=1)

    assert in_lanes(sums, x)
    error, numpy_error = (np.abs(sum_ - exact).max() for sum_ in (ml.compile(sums)(x), np.sum(x, axis=1)))
    assert error <= 2 * numpy_error


def test_several_sums_of_expressions_of_rows() -> None:
    rng = np.random.default_rng(0)
    x, y = rng.random((ROWS, COLUMNS), np.float32), rng.random(COLUMNS, np.float32)

    def moments(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return np.sum(x * y, axis=1), np.sum((x - 1) ** 2, axis=1)

    wide = x.astype(np.float64)
    for got, want in zip(
        ml.compile(moments)(x, y), (wide @ y.astype(np.float64), np.sum((wide - 1) ** 2, axis=1)), strict=True
    ):
        np.testing.assert_allclose(got, want, rtol=1e-6)


def test_rows_with_infinities_and_nan() -> None:
    x = np.ones((ROWS, COLUMNS), np.float32)
    x[0, 5], x[1, -1], x[2, 7], x[3, 40], x[3, 30_000], x[4] = np.inf, -np.inf, np.nan, np.inf, -np.inf, 3e38
    x[5] = -0.0
    with np.errstate(all="ignore"):
        expected = np.sum(x, axis=1)
    result = ml.compile(lambda x: np.sum(x, axis=1))(x)
    np.testing.assert_array_equal(result, expected)
    assert list(np.signbit(result[4:6])) == list(np.signbit(expected[4:6]))


def test_rows_in_the_cache_are_left_to_llvm() -> None:
    assert not in_lanes(lambda x: np.sum(x, axis=1), np.ones((64, COLUMNS), np.float32))


@pytest.mark.parametrize(("steps", "is_parallel"), [(1, False), (40, True)])
def test_reductions_with_much_work_for_each_element_are_split(steps: int, is_parallel: bool) -> None:
    x = np.random.default_rng(0).random(30_011)

    def work(x: np.ndarray) -> np.ndarray:
        y = x
        for _ in range(steps):
            y = np.sqrt(y / (x + 1))
        return np.sum(y)

    compiled = ml.compile(work)
    assert ("main.parallel" in compiled.ir("schedule", x)) == is_parallel
    results = []
    for threads in (1, 2):
        with ml.config.override(threads=threads):
            results.append(compiled(x))
    assert results[0] == results[1]
    np.testing.assert_allclose(results[0], work(x), rtol=1e-12)
