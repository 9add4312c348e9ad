"""`np.linalg`: systems of equations, inverses, determinants and Cholesky factors, and their derivatives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mlirml as ml
from mlirml.errors import LinAlgError
from tests.fuzz.oracle import TARGETS

Function = Callable[..., Any]


def drawn(dtype: str, *shape: int) -> np.ndarray:
    rng = np.random.default_rng(0)
    x = rng.standard_normal(shape) * 3
    if dtype.startswith("complex"):
        x = x + 1j * rng.standard_normal(shape)
    return x.astype(dtype)


def everything(a: Any, b: Any) -> Any:
    positive = a @ np.swapaxes(a, -1, -2).conj() + np.eye(a.shape[-1], dtype=a.dtype)
    return (
        np.linalg.solve(a, b), np.linalg.solve(a, np.ones(a.shape[-1])), np.linalg.inv(a), np.linalg.det(a),
        np.linalg.slogdet(a), np.linalg.cholesky(positive), np.linalg.cholesky(positive, upper=True),
    )  # fmt: skip


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("dtype", ["float64", "float32", "complex128", "int64"])
def test_gives_what_numpy_gives(dtype: str, target: str) -> None:
    compiled = ml.compile(everything, target)
    shapes = ((2, 3, 4, 4),) if target == "cpu" else ((5, 5), (2, 1, 3, 3), (1, 1), (0, 3, 3), (2, 0, 0))
    for shape in shapes:
        a, b = drawn(dtype, *shape) + np.eye(shape[-1], dtype=dtype), drawn(dtype, shape[-1], 2)
        for found, expected in zip(flat(compiled(a, b)), flat(everything(a, b)), strict=True):
            assert found.dtype == expected.dtype and found.shape == expected.shape
            np.testing.assert_allclose(found, expected, rtol=2e-3 if dtype == "float32" else 1e-9, atol=1e-3)


def flat(results: Any) -> list[Any]:
    return [np.asarray(x) for r in results for x in (r if isinstance(r, tuple) else (r,))]


def test_rows_change_places_where_a_pivot_is_small() -> None:
    a = np.array([[0, 2, 1], [1e-20, 1, 3], [4, 5, 6.0]])
    np.testing.assert_allclose(ml.compile(np.linalg.inv)(a), np.linalg.inv(a), rtol=1e-14)
    np.testing.assert_allclose(ml.compile(np.linalg.det)(a), np.linalg.det(a), rtol=1e-14)


def test_negative_powers() -> None:
    a = drawn("float64", 4, 4)
    for n in (-1, -3):
        found = ml.compile(lambda a, n=n: np.linalg.matrix_power(a, n), "reference")(a)
        np.testing.assert_allclose(found, np.linalg.matrix_power(a, n), rtol=1e-9)


def test_singular_matrices() -> None:
    a = np.array([[1.0, 2], [2, 4]])
    determinant, (sign, logarithm) = ml.compile(lambda a: (np.linalg.det(a), np.linalg.slogdet(a)))(a)
    assert (determinant, sign, logarithm) == (0, 0, -np.inf)
    with pytest.raises(LinAlgError, match="Singular matrix"):
        ml.compile(np.linalg.inv)(a)


def likelihood(a: Any, b: Any) -> Any:
    """Of a Gaussian process, by its Cholesky factor."""
    factor = np.linalg.cholesky(a @ a.T + np.eye(4))
    white = np.linalg.solve(factor, b)
    return 0.5 * np.sum(white**2) + np.sum(np.log(np.diag(factor)))


def plain(a: Any, b: Any) -> Any:
    return np.sum(np.linalg.solve(a, b) ** 2) + np.sum(np.sin(np.linalg.inv(a))) + np.linalg.det(a) / 100


def logarithm(a: Any, b: Any) -> Any:
    sign, value = np.linalg.slogdet(a)
    return sign * value**2 + np.sum(b**2)


@pytest.mark.parametrize("function", [likelihood, plain, logarithm], ids=lambda f: f.__name__)
def test_derivatives_of_first_and_second_order(function: Function) -> None:
    a, b = drawn("float64", 4, 4) + 4 * np.eye(4), drawn("float64", 4)
    da, db = drawn("float64", 2, 4, 4)[1], drawn("float64", 8)[4:]

    def slope(f: Function, h: float = 1e-5) -> Any:
        return (f(a + h * da, b + h * db) - f(a - h * da, b - h * db)) / (2 * h)

    def along(a: Any, b: Any) -> Any:
        of_a, of_b = ml.grad(function, (0, 1))(a, b)
        return np.sum(of_a * da) + np.sum(of_b * db)

    first, moved = slope(function), lambda f: ml.compile(lambda p, t: ml.jvp(f, p, t)[1], "reference")
    slopes = ml.compile(along, "reference")
    np.testing.assert_allclose(slopes(a, b), first, rtol=1e-6)
    np.testing.assert_allclose(moved(function)((a, b), (da, db)), first, rtol=1e-6)
    second = slope(slopes)
    np.testing.assert_allclose(moved(along)((a, b), (da, db)), second, rtol=1e-6)
    of_a, of_b = ml.compile(ml.grad(along, (0, 1)), "reference")(a, b)
    np.testing.assert_allclose(np.sum(of_a * da) + np.sum(of_b * db), second, rtol=1e-6)


def test_gradient_in_machine_code() -> None:
    a, b = drawn("float64", 4, 4) + 4 * np.eye(4), drawn("float64", 4)
    gradient = ml.grad(likelihood)
    expected = ml.compile(gradient, "reference")(a, b)
    np.testing.assert_allclose(ml.compile(gradient)(a, b), expected, rtol=1e-9)


def test_a_batch_is_one_matrix_after_the_other() -> None:
    a, b = drawn("float64", 3, 4, 4), drawn("float64", 3, 4)
    expected = np.stack([np.linalg.solve(x, y) for x, y in zip(a, b)])
    np.testing.assert_allclose(ml.vmap(np.linalg.solve)(a, b), expected, rtol=1e-9)
    gradient = ml.compile(ml.grad(plain), "reference")
    expected = np.stack([gradient(x, y) for x, y in zip(a, b)])
    np.testing.assert_allclose(ml.compile(ml.vmap(ml.grad(plain)), "reference")(a, b), expected, rtol=1e-9)


def test_the_sign_of_nan_is_one_and_products_that_overflow_are_infinite() -> None:
    sign, logarithm = ml.compile(np.linalg.slogdet)(np.full((3, 3), np.nan))
    assert sign == 1 and np.isnan(logarithm)
    large = (drawn("complex128", 3, 3) * 1e15).astype(np.complex64)
    found, small = ml.compile(np.linalg.det)(large), large * np.float32(1e-15)
    with np.errstate(over="ignore"):
        expected = np.linalg.det(large)
    assert found.dtype == np.complex64 and np.isinf(found.real) and np.isinf(found.imag) and found == expected
    np.testing.assert_allclose(ml.compile(np.linalg.det)(small), np.linalg.det(small), rtol=1e-5)


@pytest.mark.parametrize("dtype", [np.float64, np.complex64])
@pytest.mark.parametrize("n", [1, 2, 3])
def test_the_gradient_of_a_small_determinant_at_a_singular_matrix(n: int, dtype: type) -> None:
    a = np.arange(n * n).reshape(n, n).astype(dtype)
    a[-1] = a[0] * 2 if n > 1 else 0
    cofactors = [
        [(-1) ** (i + j) * np.linalg.det(np.delete(np.delete(a, i, 0), j, 1)) for j in range(n)] for i in range(n)
    ]
    np.testing.assert_allclose(ml.grad(lambda a: np.real(np.linalg.det(a)))(a), cofactors, rtol=1e-6, atol=1e-6)
    batch = np.stack([a, np.zeros_like(a)])
    second = ml.jvp(ml.grad(lambda a: np.sum(np.real(np.linalg.det(a)))), (batch,), (batch,))[1]
    np.testing.assert_allclose(second[0], np.array(cofactors) * (n - 1), rtol=1e-6, atol=1e-6)
