"""Reductions of columns whose long rows come from memory, and are prefetched."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mlirml as ml
from mlirml.analysis.costs import STATIC

COLUMNS = 4_103
ROWS = 64 * STATIC.cache_bytes // (4 * COLUMNS) + 3
"""More than the caches hold in f32 already, with columns and rows after the last block."""


def sums(x: np.ndarray) -> Any:
    return np.sum(x, axis=0)


def extremes(x: np.ndarray) -> Any:
    return np.max(x, axis=0), np.min(x, axis=0)


def moments(x: np.ndarray) -> Any:
    return np.mean(x, axis=0), np.sum(x * x[0], axis=0)


@pytest.mark.parametrize("function", [sums, extremes, moments])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("first", [0, 3])
def test_columns_are_reduced_to_their_ends(function: Any, dtype: type, first: int) -> None:
    x = np.random.default_rng(0).standard_normal((ROWS, COLUMNS)).astype(dtype)[first:, first:]
    assert "memref.prefetch" in ml.compile(function).ir("schedule", x)
    tolerance = 1e-4 if dtype is np.float32 else 1e-12
    for found, expected in zip(np.atleast_2d(ml.compile(function)(x)), np.atleast_2d(function(x.astype(np.float64)))):
        np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance * len(x) ** 0.5)
