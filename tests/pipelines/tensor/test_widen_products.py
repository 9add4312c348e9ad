"""Products of slices of one matrix, against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mlirml as ml


def correlations(data: Any, lag: int) -> Any:
    """Each column with those `lag` columns and more after it."""
    size = data.shape[1]
    found = np.eye(size, dtype=data.dtype)
    for i in range(size - lag):
        found[i + lag :, i] = found[i, i + lag :] = data[:, i] @ data[:, i + lag :]
    return found


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64])
@pytest.mark.parametrize("lag", [1, 2, 40])
def test_correlations(lag: int, dtype: Any) -> None:
    data = np.random.default_rng(0).integers(-9, 9, (50, 130)).astype(dtype)
    program = ml.compile(correlations, static_argnames="lag")
    np.testing.assert_array_equal(program(data, lag), correlations(data, lag))


@pytest.mark.parametrize(("first", "second"), [((3, 110), (0, 100)), ((0, 120), (10, 110)), ((20, 20), (0, 130))])
def test_slices(first: tuple[int, int], second: tuple[int, int]) -> None:
    def product(x: Any) -> Any:
        a, b = x[:, first[0] : sum(first)], x[:, second[0] : sum(second)]
        return a.T @ b, b.T @ a

    x = np.random.default_rng(1).standard_normal((70, 130))
    for got, expected in zip(ml.compile(product)(x), product(x), strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-12, atol=1e-12)
