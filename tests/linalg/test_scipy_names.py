"""Functions of `scipy.linalg` that NumPy has too, called by SciPy's names, and functions that are not compiled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mlirml as ml

scipy: Any = pytest.importorskip("scipy")
pytest.importorskip("scipy.linalg")
pytest.importorskip("scipy.stats")
pytest.importorskip("scipy.signal")
distance: Any = pytest.importorskip("scipy.spatial.distance")

RNG = np.random.default_rng(7)
SQUARE = RNG.normal(size=(5, 5))
TALL = RNG.normal(size=(6, 3))
SYMMETRIC = SQUARE @ SQUARE.T + np.eye(5)


def check(function: Callable[..., Any], *args: Any) -> None:
    """The compiled function returns what SciPy does: values, shapes and dtypes, vectors up to their signs."""
    found, expected = ml.compile(function)(*args), function(*args)
    if not isinstance(expected, tuple):
        found, expected = (found,), (expected,)
    assert isinstance(found, tuple) and len(found) == len(expected)
    for x, y in zip(found, expected):
        assert np.shape(x) == np.shape(y) and np.asarray(x).dtype.kind == np.asarray(y).dtype.kind
        np.testing.assert_allclose(np.abs(x), np.abs(y), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("lower", [True, False])
def test_triangles(lower: bool) -> None:
    check(lambda a: scipy.linalg.cholesky(a, lower=lower), SYMMETRIC)
    check(lambda a: scipy.linalg.cholesky(a, lower), SYMMETRIC + 1j * (np.tril(SQUARE, -1) - np.tril(SQUARE, -1).T) / 9)
    check(lambda a: scipy.linalg.eigh(a, lower=lower), SYMMETRIC)
    check(lambda a: scipy.linalg.eigvalsh(a, lower=lower), SYMMETRIC)
    check(lambda a: scipy.linalg.eigh(a, lower=lower, eigvals_only=True), SYMMETRIC)


def test_square_matrices() -> None:
    check(lambda a: scipy.linalg.inv(a, check_finite=False), SQUARE)
    check(lambda a: scipy.linalg.det(a), SQUARE)
    check(lambda a: np.sort(np.abs(scipy.linalg.eigvals(a))), SQUARE)
    check(lambda a: np.sort(np.abs(scipy.linalg.eig(a)[0])), SQUARE)
    check(lambda a: np.sort(np.abs(scipy.linalg.eig(a, right=False))), SQUARE)
    assert ml.compile(lambda a: scipy.linalg.eig(a))(SYMMETRIC)[0].dtype == np.complex128
    check(lambda a, b: scipy.linalg.solve(a, b), SQUARE, SQUARE[0])
    check(lambda a, b: scipy.linalg.solve(a, b, transposed=True), SQUARE, TALL[:5])
    check(lambda a, b: scipy.linalg.solve(a, b, assume_a="pos"), SYMMETRIC, TALL[:5])


def test_rectangles() -> None:
    check(lambda a: scipy.linalg.pinv(a), TALL)
    check(lambda a: scipy.linalg.norm(a), TALL)
    check(lambda a: scipy.linalg.norm(a, 2), TALL)
    check(lambda a: scipy.linalg.svd(a), TALL)
    check(lambda a: scipy.linalg.svd(a, full_matrices=False, lapack_driver="gesvd"), TALL)
    check(lambda a: scipy.linalg.svd(a, compute_uv=False), TALL)
    check(lambda a: scipy.linalg.svdvals(a), TALL)
    for mode in ("full", "economic", "r"):
        check(lambda a, mode=mode: scipy.linalg.qr(a, mode=mode), TALL)
    check(lambda a, b: scipy.linalg.lstsq(a, b), TALL, SQUARE[0].repeat(2)[:6])
    check(lambda a, b: scipy.linalg.lstsq(a, b), TALL, TALL[:, :2] ** 2)


@pytest.mark.parametrize(
    ("function", "name"),
    [
        (lambda a: scipy.signal.medfilt(a[0], 3), "scipy.signal.medfilt"),
        (lambda a: scipy.stats.zscore(a), "scipy.stats.zscore"),
        (lambda a: scipy.linalg.hessenberg(a), "scipy.linalg.hessenberg"),
        (lambda a: distance.cdist(a, a), "scipy.spatial.distance.cdist"),
        (lambda a: scipy.linalg.eig(a, left=True)[0], "scipy.linalg.eig"),
    ],
)
def test_functions_that_are_not_compiled(function: Callable[..., Any], name: str) -> None:
    with pytest.raises(ml.UnsupportedSyntaxError, match=f"`{name}` is not compiled") as error:
        ml.compile(function)(SQUARE)
    assert error.value.location is not None and error.value.location.file == __file__


def test_functions_of_known_values() -> None:
    assert np.array_equal(
        ml.compile(lambda a: a * scipy.linalg.hankel([1, 2, 3]))(np.ones((3, 3))), scipy.linalg.hankel([1, 2, 3])
    )


@pytest.mark.parametrize("lower", [True, False])
@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
def test_eigenvalues_of_pairs_and_some_of_them(lower: bool, dtype: Any) -> None:
    rng = np.random.default_rng(1)
    a, b = rng.standard_normal((2, 5, 5)) + (1j * rng.standard_normal((2, 5, 5)) if dtype == np.complex128 else 0)
    b = b @ b.conj().T + np.eye(5)
    a, b = a + a.conj().T, (np.tril(b) if lower else np.triu(b))  # the other triangle is not read
    options = {"lower": lower, "subset_by_index": [1, 3]}
    values = ml.compile(lambda a, b: scipy.linalg.eigvalsh(a, b, **options))(a, b)
    np.testing.assert_allclose(values, scipy.linalg.eigvalsh(a, b, **options))
    found, vectors = ml.compile(lambda a, b: scipy.linalg.eigh(a, b, **options, driver="gvx"))(a, b)
    whole = b + b.conj().T - np.diag(np.diagonal(b))
    np.testing.assert_allclose(found, values)
    np.testing.assert_allclose(a @ vectors, whole @ vectors * found, atol=1e-10)
    np.testing.assert_allclose(vectors.conj().T @ whole @ vectors, np.eye(3), atol=1e-10)
    one, columns = ml.compile(lambda a: scipy.linalg.eigh(a, **options))(a)
    np.testing.assert_allclose(one, scipy.linalg.eigh(a, **options)[0])
    np.testing.assert_allclose(a @ columns, columns * one, atol=1e-10)


def test_options_that_only_scipy_has_are_named() -> None:
    for call, option in (
        (lambda a: scipy.linalg.eigh(a, type=2), "type"),
        (lambda a: scipy.signal.filtfilt([1.0], [1.0], a[0], method="gust"), "method"),
    ):
        with pytest.raises(ml.UnsupportedSyntaxError, match=f"is not compiled with `{option}`"):
            ml.compile(call)(np.eye(3))
    with pytest.raises(TypeError, match="unexpected keyword argument 'other'"):
        ml.compile(lambda a: scipy.linalg.eigh(a, other=1))(np.eye(3))
