"""Parts and sums of products without the products, against NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mlirml as ml

MATRICES = [(90, 20), (20, 90)]
BATCHES = [(3, 90, 20), (3, 20, 90)]
Function = Callable[..., Any]


def arrays(shapes: list[tuple[int, ...]], dtype: Any = np.float64) -> list[np.ndarray]:
    numbers = np.random.default_rng(5)
    return [(numbers.standard_normal(shape) * 3).astype(dtype) for shape in shapes]


def algebra_of(compiled: Any) -> str:
    return str(compiled.explain()).partition("algebra of signature")[2]


PARTS: dict[str, tuple[Function, list[tuple[int, ...]]]] = {
    "diag": (lambda a, b: np.diag(a @ b), MATRICES),
    "trace": (lambda a, b: np.trace(a @ b), MATRICES),
    "offset": (lambda a, b: np.diagonal(a @ b, 7), MATRICES),
    "below": (lambda a, b: np.diagonal(a @ b, -7), MATRICES),
    "wide": (lambda a, b: np.diagonal(a @ b), [(30, 20), (20, 90)]),
    "of a transpose": (lambda a, b: np.diagonal((a @ b).T, -40), [(30, 20), (20, 90)]),
    "of batches": (lambda a, b: np.trace(a @ b, axis1=1, axis2=2), BATCHES),
    "off, of batches": (lambda a, b: np.diagonal(a @ b, 3, axis1=2, axis2=1), BATCHES),
    "einsum": (lambda a, b: np.einsum("bii->ib", a @ b), BATCHES),
    "row": (lambda a, b: (a @ b)[3], MATRICES),
    "last column": (lambda a, b: (a @ b)[:, -1], MATRICES),
    "columns": (lambda a, b: (a @ b)[:, 4:9], MATRICES),
    "every fifth": (lambda a, b: (a @ b)[::5, 1::3], MATRICES),
    "element": (lambda a, b: (a @ b)[2, 3], MATRICES),
    "row of a transpose": (lambda a, b: (a @ b).T[2], MATRICES),
    "a matrix of a batch": (lambda a, b: (a @ b)[1], BATCHES),
}
SUMS: dict[str, tuple[Function, list[tuple[int, ...]]]] = {
    "rows": (lambda a, b: (a @ b).sum(axis=0), MATRICES),
    "columns": (lambda a, b: (a @ b).sum(axis=1, keepdims=True), MATRICES),
    "all": (lambda a, b: (a @ b).sum(), MATRICES),
    "two": (lambda a, b: (a @ b).sum(axis=(0, 2)), BATCHES),
    "of a transpose": (lambda a, b: (a @ b).T.sum(axis=0), MATRICES),
    "of a chain": (lambda a, b: (a @ b @ a @ b).sum(axis=1), MATRICES),
    "of transposed factors": (lambda a, b: (b.T @ a.T).sum(axis=1), MATRICES),
}


@pytest.mark.parametrize("algebra", ["exact", "reassociate"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int16, np.int64])
@pytest.mark.parametrize("name", PARTS)
def test_parts_of_products_are_exact(name: str, dtype: Any, algebra: str) -> None:
    function, shapes = PARTS[name]
    given = arrays(shapes, dtype)
    with ml.config.override(algebra=algebra):
        compiled = ml.compile(function)
        got, expected = compiled(*given), function(*given)
    np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-5 * np.abs(expected).max())
    assert got.dtype == expected.dtype and "is computed alone" in algebra_of(compiled)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64])
@pytest.mark.parametrize("name", SUMS)
def test_sums_of_products(name: str, dtype: Any) -> None:
    function, shapes = SUMS[name]
    given = arrays(shapes, dtype)
    compiled = ml.compile(function)
    expected = function(*given)
    np.testing.assert_allclose(compiled(*given), expected, rtol=1e-3, atol=1e-4 * np.abs(expected).max())
    assert "without the product" in algebra_of(compiled)


def test_exact_leaves_sums_of_floats() -> None:
    """The sums of the rows of `b` overflow, those of the product do not."""
    a, b = np.zeros((20, 2)), np.full((2, 40), 1e308)
    function = SUMS["columns"][0]
    with ml.config.override(algebra="exact"):
        np.testing.assert_array_equal(ml.compile(function)(a, b), np.zeros((20, 1)))


def test_sums_in_a_wider_type_wrap_around_before_it() -> None:
    """Products of i32 are summed in i64: 20 * 2^30 is not the sum of 20 products that wrapped."""
    a, b = np.full((30, 2), 1 << 15, np.int32), np.full((2, 20), 1 << 15, np.int32)
    function = SUMS["columns"][0]
    np.testing.assert_array_equal(ml.compile(function)(a, b), function(a, b))


def test_products_with_other_users_stay() -> None:
    def both(a: Any, b: Any) -> Any:
        product = a @ b
        return product, product.sum(axis=0), np.trace(product)

    given = arrays(MATRICES)
    compiled = ml.compile(both)
    for one, other in zip(compiled(*given), both(*given)):
        np.testing.assert_allclose(one, other, rtol=1e-10, atol=1e-10)
    assert algebra_of(compiled) == ""


def test_a_nan_that_is_not_read_does_not_spread() -> None:
    a, b = arrays(MATRICES)
    a[5, 3] = np.nan
    with np.errstate(all="ignore"):
        expected = np.diag(a @ b)
    np.testing.assert_allclose(ml.compile(lambda a, b: np.diag(a @ b))(a, b), expected, rtol=1e-10, atol=1e-10)


def test_gradients_of_sums_of_products() -> None:
    def loss(a: Any, b: Any) -> Any:
        return np.trace(a @ b) + (a @ b).sum(axis=1) @ np.arange(90.0)

    a, b = arrays(MATRICES)
    got = ml.compile(ml.grad(loss, argnums=(0, 1)))(a, b)
    weights = np.arange(90.0)[:, None] * np.ones(90) + np.eye(90)
    np.testing.assert_allclose(got[0], weights @ b.T, rtol=1e-10, atol=1e-9)
    np.testing.assert_allclose(got[1], a.T @ weights, rtol=1e-10, atol=1e-9)
