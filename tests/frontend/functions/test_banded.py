"""Band matrices against SciPy, with derivatives, batches and errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.linalg
from scipy.linalg import lapack, solve_banded
from scipy.linalg.lapack import dgtsv

import mlirml as ml


@pytest.mark.parametrize("target", ["cpu", "reference"])
@pytest.mark.parametrize("bands", [(0, 0), (1, 1), (2, 1), (0, 2), (2, 0), (5, 6)])
def test_bands_of_all_widths(bands: tuple[int, int], target: str) -> None:
    rng = np.random.default_rng(sum(bands))
    for size in (1, 2, 7):
        ab, b = rng.normal(size=(sum(bands) + 1, size)), rng.normal(size=(size, 3))
        solve = ml.compile(lambda ab, b: scipy.linalg.solve_banded(bands, ab, b, overwrite_ab=True), target=target)
        found = solve(ab, b)
        expected = scipy.linalg.solve_banded(bands, ab, b)
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12 * np.abs(expected).max())


def test_a_zero_on_the_diagonal_needs_a_pivot() -> None:
    ab = np.array([[0.0, 2.0, 3.0], [0.0, 0.0, 1.0], [1.0, 4.0, 0.0]])
    b = np.array([1.0, 2.0, 3.0])
    found = ml.compile(lambda ab, b: solve_banded((1, 1), ab, b))(ab, b)
    np.testing.assert_allclose(found, solve_banded((1, 1), ab, b))


def test_long_tridiagonal_systems_are_those_of_lapack() -> None:
    rng = np.random.default_rng(1)
    dl, d, du, b = rng.normal(size=2999), rng.normal(size=3000), rng.normal(size=2999), rng.normal(size=3000)
    for function in (lambda *x: lapack.dgtsv(*x, overwrite_b=True), lambda *x: dgtsv(*x)):
        for found, expected in zip(ml.compile(function)(dl, d, du, b), dgtsv(dl, d, du, b)):
            np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-9)


def test_gradients_and_batches() -> None:
    rng = np.random.default_rng(2)
    ab, b = rng.normal(size=(3, 5)) + 3 * np.eye(3)[1][:, None], rng.normal(size=5)

    def loss(ab: Any, b: Any) -> Any:
        return np.sum(ml.linalg.solve_banded((1, 1), ab, b) ** 2)

    def dense(ab: Any, b: Any) -> Any:
        a = np.diag(ab[0, 1:], 1) + np.diag(ab[1]) + np.diag(ab[2, :-1], -1)
        return np.sum(np.linalg.solve(a, b) ** 2)

    for found, expected in zip(ml.grad(loss, (0, 1))(ab, b), ml.grad(dense, (0, 1))(ab, b)):
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)
    many = rng.normal(size=(4, 3, 5)) + 3 * np.eye(3)[1][:, None]
    found = ml.compile(ml.vmap(lambda ab: solve_banded((1, 1), ab, b)))(many)
    np.testing.assert_allclose(found, [solve_banded((1, 1), one, b) for one in many], rtol=1e-9)


def test_what_cannot_be_solved() -> None:
    with pytest.raises(ml.LinAlgError, match="singular matrix"):
        ml.compile(lambda ab, b: solve_banded((1, 1), ab, b))(np.zeros((3, 4)), np.ones(4))
    with pytest.raises(ml.LinAlgError, match="not positive definite"):
        ml.compile(lambda ab, b: scipy.linalg.solveh_banded(ab, b))(-np.ones((2, 4)), np.ones(4))
    with pytest.raises(ml.ShapeError, match=r"2 diagonals, where l \+ u \+ 1 = 3 are needed"):
        ml.compile(lambda ab, b: solve_banded((1, 1), ab, b))(np.ones((2, 4)), np.ones(4))
    with pytest.raises(ml.ShapeError, match=r"shape \[3, 4\] and a right side of shape \[5\] do not fit"):
        ml.compile(lambda ab, b: solve_banded((1, 1), ab, b))(np.ones((3, 4)), np.ones(5))
