"""Variances of numbers far from 0 are as accurate as NumPy's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mlirml as ml
from tests.fuzz.oracle import check

SHAPES: list[tuple[tuple[int, ...], Any]] = [
    ((7,), None), ((1000,), None), ((100_000,), None), ((1_000_000,), None), ((64, 1000), 1), ((3000, 5), 0),
    ((20, 30, 40), (1, 2)), ((20, 30, 40), (0, 2)),
]  # fmt: skip
FUNCTIONS: dict[str, Callable[[Any, Any], Any]] = {
    "var": lambda x, axis: np.var(x, axis=axis),
    "std": lambda x, axis: np.std(x, axis=axis, ddof=1),
    "where": lambda x, axis: np.var(x, axis=axis, where=x > 0),
    "nanvar": lambda x, axis: np.nanvar(np.where(x > np.max(x) - 1e-3, np.nan, x), axis=axis),
    "cov": lambda x, axis: np.cov(x.reshape(-1, x.shape[-1])[:4]),
}


def worst(given: Any, exact: Any) -> float:
    return float(np.max(np.abs(np.asarray(given, np.longdouble) - exact) / np.abs(exact)))


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize(("shape", "axis"), SHAPES)
def test_error_of_shifted_numbers(shape: tuple[int, ...], axis: Any, name: str) -> None:
    """At most four times NumPy's over several means; an ulp is nobody's error."""
    function = FUNCTIONS[name]
    compiled = ml.compile(lambda x: function(x, axis))
    errors, ours = [], []
    for mean in (0.0, 30.0, 1e4, 1e5):
        x = (np.random.default_rng(3).standard_normal(shape) + mean).astype(np.float32)
        exact = np.asarray(function(x.astype(np.longdouble), axis))
        errors.append(worst(function(x, axis), exact))
        ours.append(worst(compiled(x), exact))
        assert ours[-1] <= 4 * max(errors[-1], 1.2e-7), (mean, ours[-1], errors[-1])


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_numbers_that_are_alike(dtype: Any) -> None:
    compiled = ml.compile(lambda x: (np.var(x), np.std(x), np.nanvar(x), np.var(x, axis=0)))
    for found in compiled(np.full((7, 9), 0.1, dtype)):
        assert np.all(found >= 0)
        assert np.all(found < np.finfo(dtype).eps ** 1.5 + np.finfo(dtype).eps)


def test_numbers_that_are_not_finite() -> None:
    x = np.array([[1.0, np.inf, 3.0], [np.nan, 2.0, 4.0], [1.0, 2.0, 4.0]])
    check(lambda x: (np.var(x, axis=1), np.nanvar(x[1:], axis=1), np.std(x[2])), x, rtol=1e-15)


def test_slices_of_changing_length() -> None:
    def f(x: Any, bounds: Any, out: Any) -> Any:
        for i in range(2):
            out[i] = np.var(x[bounds[i] : bounds[i + 1]])
        return out

    x = (np.random.default_rng(0).standard_normal(6000) + 1e4).astype(np.float32)
    bounds, out = np.array([0, 2500, 6000]), np.zeros(2, np.float32)
    exact = f(x.astype(np.longdouble), bounds, out.astype(np.longdouble))
    numpy_error = worst(f(x, bounds, out.copy()), exact)
    assert worst(ml.compile(f)(x, bounds, out.copy()), exact) <= 4 * max(numpy_error, 1.2e-7)


def test_second_derivatives_of_numbers_that_are_alike() -> None:
    expected = (np.eye(3) - 1 / 3) * 2 / 3
    assert np.allclose(ml.compile(ml.hessian(np.var))(np.ones(3)), expected)
