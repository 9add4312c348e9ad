"""Equations with many right-hand sides: the triangles are divided by in panels of columns."""

from __future__ import annotations

import numpy as np
import pytest

import mlirml as ml

SHAPES = ((17, 8), (18, 31), (19, 16), (20, 9), (33, 17), (64, 40), (191, 15), (192, 8), (193, 8))


def numbers(rng: np.random.Generator, dtype: str, *shape: int) -> np.ndarray:
    found = rng.standard_normal(shape)
    if np.dtype(dtype).kind == "c":
        found = found + 1j * rng.standard_normal(shape)
    return found.astype(dtype)


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
def test_residuals(dtype: str) -> None:
    rng = np.random.default_rng(0)
    for n, columns in SHAPES:
        a, b = numbers(rng, dtype, n, n), numbers(rng, dtype, n, columns)
        x = ml.compile(np.linalg.solve)(a, b)
        assert x.dtype == b.dtype
        # The backward error of elimination with partial pivoting.
        bound = 8 * n * np.finfo(dtype).eps * np.abs(a).max() * np.abs(x).max() * n
        assert np.abs(a @ x - b).max() <= bound


@pytest.mark.parametrize("dtype", ["float64", "complex64"])
def test_rows_that_pivots_exchange(dtype: str) -> None:
    """A permuted diagonal has exact solutions."""
    rng = np.random.default_rng(1)
    n = 29
    a = np.diag(2.0 ** rng.integers(-3, 4, n)).astype(dtype)[rng.permutation(n)]
    x = rng.integers(-9, 10, (n, 11)).astype(dtype)
    np.testing.assert_array_equal(ml.compile(np.linalg.solve)(a, a @ x), x)


@pytest.mark.parametrize("special", [np.nan, np.inf])
def test_special_numbers_stay_in_their_column(special: float) -> None:
    rng = np.random.default_rng(2)
    a, b = numbers(rng, "float64", 40, 40), numbers(rng, "float64", 40, 20)
    spoilt = b.copy()
    spoilt[3, 7] = special
    x, expected = ml.compile(np.linalg.solve)(a, spoilt), np.linalg.solve(a, b)
    assert not np.isfinite(x[:, 7]).any()
    np.testing.assert_allclose(np.delete(x, 7, 1), np.delete(expected, 7, 1), rtol=1e-10)


def test_singular_matrices_raise() -> None:
    a = np.ones((30, 30))
    with pytest.raises(np.linalg.LinAlgError):
        ml.compile(np.linalg.solve)(a, np.ones((30, 12)))
