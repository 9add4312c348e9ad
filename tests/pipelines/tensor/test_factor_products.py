"""Common factors of sums of products, against NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mlirml as ml

Function = Callable[..., Any]


def arrays(shapes: list[tuple[int, ...]], dtype: Any = np.float64) -> list[np.ndarray]:
    numbers = np.random.default_rng(5)
    return [(numbers.standard_normal(shape) * 3).astype(dtype) for shape in shapes]


def algebra_of(compiled: Any) -> str:
    return str(compiled.explain()).partition("algebra of signature")[2]


SHAPES = [(90, 80), (80, 70), (80, 70)]
FORMS: dict[str, tuple[Function, list[tuple[int, ...]]]] = {
    "sum": (lambda a, b, c: a @ b + a @ c, SHAPES),
    "difference": (lambda a, b, c: a @ b - a @ c, SHAPES),
    "transposed": (lambda a, b, c: b.T @ a.T - c.T @ a.T, SHAPES),
    "on the right": (lambda a, b, c: b.T @ a - c.T @ a, [(80, 60), (80, 70), (80, 70)]),
    "three": (lambda a, b, c: a @ b + a @ c + a @ (2 * c), SHAPES),
    "of batches": (lambda a, b, c: a @ b + c @ b, [(5, 50, 50), (50, 50), (5, 50, 50)]),
    "with the transpose": (lambda a, b: a @ b + a.T @ b, [(50, 50), (50, 50)]),
    "with itself": (lambda a: a @ a + a @ a.T, [(50, 50)]),
    "of transposed products": (lambda a, b, c: (a @ b).T - (a @ c).T, SHAPES),
}


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int16, np.int64])
@pytest.mark.parametrize("name", FORMS)
def test_common_factors(name: str, dtype: Any) -> None:
    function, shapes = FORMS[name]
    given = arrays(shapes, dtype)
    compiled = ml.compile(function)
    expected = function(*given)
    np.testing.assert_allclose(compiled(*given), expected, rtol=1e-3, atol=1e-5 * np.abs(expected).max())
    assert "has one factor in common" in algebra_of(compiled)


def test_exact_keeps_products_whose_sum_of_factors_overflows() -> None:
    a, b = np.full((50, 50), 1e-9), np.full((50, 50), 1.5e308)
    function = FORMS["sum"][0]
    with ml.config.override(algebra="exact"):
        compiled = ml.compile(function)
        np.testing.assert_allclose(compiled(a, b, b), function(a, b, b), rtol=1e-12)
        assert np.isfinite(compiled(a, b, b)).all()


@pytest.mark.parametrize(
    "function",
    [
        lambda a, b, c: a @ b + b @ a,
        lambda a, b, c: np.maximum(a @ b, a @ c),
        lambda a, b, c: a @ b + b @ c.T,
        lambda a, b, c: a @ b + a @ a.T @ c * (a @ c),
    ],
)
def test_others_stay(function: Function) -> None:
    given = arrays([(40, 40)] * 3)
    compiled = ml.compile(function)
    np.testing.assert_allclose(compiled(*given), function(*given), rtol=1e-9, atol=1e-9)
    assert "in common" not in algebra_of(compiled)
