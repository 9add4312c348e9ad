"""Scalings and broadcasts that leave chains of products, against NumPy."""

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


CHAIN = [(90, 4), (4, 80), (80,)]
SCALED: dict[str, tuple[Function, list[tuple[int, ...]]]] = {
    "divided": (lambda a, b, v: (a @ b / 3) @ v, CHAIN),
    "multiplied": (lambda a, b, v: (2 * (a @ b).T).T @ v, CHAIN),
    "by an element": (lambda a, b, v: (v[0] * (a @ b)) @ v, CHAIN),
    "divided by an element": (lambda a, b, v: ((a @ b) / v[0]) @ v, CHAIN),
    "twice": (lambda a, b, v: (a @ (2 * (b @ v[:, None]))) / 3, CHAIN),
    "negative": (lambda a, b, v: v @ (-2.5 * (b.T @ a.T)), CHAIN),
}
BROADCAST: dict[str, tuple[Function, list[tuple[int, ...]]]] = {
    "rows": (lambda u, d: np.broadcast_to(u, (60, 80)) @ d, [(80,), (80, 70)]),
    "columns": (lambda u, d: np.broadcast_to(u[:, None], (60, 80)) @ d, [(60,), (80, 70)]),
    "everywhere": (lambda u, d: np.broadcast_to(u[0], (60, 80)) @ d, [(60,), (80, 70)]),
    "on the right": (lambda u, d: d @ np.broadcast_to(u, (70, 60)), [(60,), (80, 70)]),
    "of batches": (lambda u, d: np.broadcast_to(u, (5, 60, 80)) @ d, [(60, 80), (80, 70)]),
}


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", SCALED)
def test_scaled_chains(name: str, dtype: Any) -> None:
    function, shapes = SCALED[name]
    given = arrays(shapes, dtype)
    compiled = ml.compile(function)
    expected = function(*given)
    np.testing.assert_allclose(compiled(*given), expected, rtol=1e-3, atol=1e-5 * np.abs(expected).max())
    with ml.config.override(algebra="exact"):
        compiled = ml.compile(function)
        np.testing.assert_allclose(compiled(*given), expected, rtol=1e-3, atol=1e-5 * np.abs(expected).max())
        assert algebra_of(compiled) == ""


def test_scaled_chains_are_ordered() -> None:
    for name in ("divided", "multiplied", "by an element", "divided by an element"):
        function, shapes = SCALED[name]
        compiled = ml.compile(function)
        compiled(*arrays(shapes))
        assert "(a @ b) @ c is computed as" in algebra_of(compiled)


def test_scaled_chains_of_integers_wrap_around() -> None:
    given = arrays(CHAIN, np.int16)

    def scaled(a: Any, b: Any, v: Any) -> Any:
        return (np.int16(12345) * (a @ b)) @ v

    for algebra in ("exact", "reassociate"):
        with ml.config.override(algebra=algebra):
            compiled = ml.compile(scaled)
            np.testing.assert_array_equal(compiled(*given), scaled(*given))
            assert "is computed as" in algebra_of(compiled)


def test_divisions_of_integers_stay() -> None:
    given = arrays(CHAIN, np.int32)

    def divided(a: Any, b: Any, v: Any) -> Any:
        return ((a @ b) // 3) @ v

    np.testing.assert_array_equal(ml.compile(divided)(*given), divided(*given))


def test_numbers_divided_by_a_product_stay() -> None:
    given = [np.abs(array) + 1 for array in arrays(CHAIN)]

    def divided(a: Any, b: Any, v: Any) -> Any:
        return (3 / (a @ b)) @ v

    np.testing.assert_allclose(ml.compile(divided)(*given), divided(*given), rtol=1e-10)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32])
@pytest.mark.parametrize("name", BROADCAST)
def test_broadcast_factors(name: str, dtype: Any) -> None:
    function, shapes = BROADCAST[name]
    given = arrays(shapes, dtype)
    compiled = ml.compile(function)
    expected = function(*given)
    np.testing.assert_allclose(compiled(*given), expected, rtol=1e-3, atol=1e-5 * np.abs(expected).max())
    assert "is not repeated" in algebra_of(compiled)


def test_exact_broadcasts_over_dims_of_the_result_only() -> None:
    """The sum of the rows of `d` overflows, its multiples by 0 do not."""
    d = np.full((80, 70), 1e308)
    for name, changes in (("rows", True), ("columns", False)):
        function, shapes = BROADCAST[name]
        u = np.zeros(shapes[0])
        with ml.config.override(algebra="exact"):
            compiled = ml.compile(function)
            np.testing.assert_array_equal(compiled(u, d), np.zeros((60, 70)))
            assert ("is not repeated" in algebra_of(compiled)) is changes


def test_the_gradient_of_a_sum_needs_no_matrix_of_ones() -> None:
    a, b, c = arrays([(90, 30), (30, 80), (80, 50)])
    compiled = ml.compile(ml.grad(lambda a, b, c: np.sum(a @ b @ c)))
    np.testing.assert_allclose(compiled(a, b, c), np.ones((90, 50)) @ c.T @ b.T, rtol=1e-9, atol=1e-9)
    assert algebra_of(compiled).count("is not repeated") == 2
