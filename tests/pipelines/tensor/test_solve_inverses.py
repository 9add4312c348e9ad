"""Products with inverses as solutions of linear systems, against NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mlirml as ml
from mlirml.runtime import HAS_LAPACK

N = 60
Function = Callable[..., Any]


def arrays(*shapes: tuple[int, ...], dtype: Any = np.float64) -> list[np.ndarray]:
    numbers = np.random.default_rng(5)
    given = [numbers.standard_normal(shape).astype(dtype) for shape in shapes]
    given[0] += N * np.eye(given[0].shape[-1], dtype=dtype)
    return given


def algebra_of(compiled: Any) -> str:
    return str(compiled.explain()).partition("algebra of signature")[2]


FORMS: dict[str, tuple[Function, list[tuple[int, ...]]]] = {
    "vector": (lambda a, b: np.linalg.inv(a) @ b, [(N, N), (N,)]),
    "matrix": (lambda a, b: np.linalg.inv(a) @ b, [(N, N), (N, 7)]),
    "stack": (lambda a, b: np.linalg.inv(a) @ b, [(3, N, N), (3, N, 7)]),
    "computed after it": (lambda a, b: np.linalg.inv(a) @ np.tanh(b * 2), [(N, N), (N,)]),
    "chain": (lambda a, b, c: np.linalg.inv(a) @ b @ c, [(N, N), (N, N), (N,)]),
}


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", FORMS)
def test_products_with_inverses(name: str, dtype: Any) -> None:
    function, shapes = FORMS[name]
    given = arrays(*shapes, dtype=dtype)
    compiled = ml.compile(function)
    expected = function(*given)
    np.testing.assert_allclose(compiled(*given), expected, rtol=1e-4, atol=1e-5 * np.abs(expected).max())
    assert ("`inv(a) @ b` is solved" in algebra_of(compiled)) is HAS_LAPACK


@pytest.mark.parametrize("algebra", ["exact", "reassociate"])
def test_errors_are_those_of_the_inverse(algebra: str) -> None:
    function = FORMS["vector"][0]
    a, b = arrays((N, N), (N,))
    with ml.config.override(algebra=algebra):
        compiled = ml.compile(function)
        b[3] = np.nan
        assert np.isnan(compiled(a, b)).all()
        with pytest.raises(np.linalg.LinAlgError, match="Singular matrix"):
            compiled(np.zeros((N, N)), b)
        with pytest.raises(np.linalg.LinAlgError, match="Singular matrix"):
            compiled(np.zeros((N, N)), np.ones(N))
        a[0, 0] = np.nan
        assert np.isnan(compiled(a, np.ones(N))).all()


def twice(a: Any, b: Any) -> Any:
    inverse = np.linalg.inv(a)
    return inverse @ (inverse @ b), b


def returned(a: Any, b: Any) -> Any:
    inverse = np.linalg.inv(a)
    return inverse, inverse @ b


def on_the_right(a: Any, b: Any) -> Any:
    return b @ np.linalg.inv(a), b


def transposed(a: Any, b: Any) -> Any:
    return np.linalg.inv(a).T @ b, b


@pytest.mark.parametrize("function", [twice, returned, on_the_right, transposed])
def test_others_stay(function: Function) -> None:
    given = arrays((N, N), (N, N))
    compiled = ml.compile(function)
    for one, other in zip(compiled(*given), function(*given), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-10)
    assert "is solved" not in algebra_of(compiled)


def test_gradients_of_solved_systems() -> None:
    a, b = arrays((N, N), (N,))
    got = ml.compile(ml.grad(lambda a, b: np.sum(np.linalg.inv(a) @ b), argnums=1))(a, b)
    np.testing.assert_allclose(got, np.linalg.inv(a).T @ np.ones(N), rtol=1e-9, atol=1e-12)
