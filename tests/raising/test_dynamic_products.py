"""Products with slices whose length differs from iteration to iteration: what they become, and that they are right."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mlirml as ml

Array = np.ndarray
N = 83


def sums_of_columns(a: Array, x: Array, out: Array) -> Any:
    s = 0.0
    for i in range(a.shape[0]):
        s += np.sum(x @ a[:, i:])
    return s


def rows_below(a: Array, x: Array, out: Array) -> None:
    for i in range(a.shape[0]):
        out[i, i:] = a[i:] @ x


def covariance(a: Array, x: Array, out: Array) -> None:
    for i in range(a.shape[1]):
        out[i:, i] = out[i, i:] = a[:, i] @ a[:, i:]


def correlation(a: Array, x: Array, out: Array) -> None:
    for i in range(a.shape[1] - 1):
        out[i + 1 :, i] = out[i, i + 1 :] = a[:, i] @ a[:, i + 1 :]


def blocks_below(a: Array, x: Array, out: Array) -> None:
    for i in range(0, a.shape[0], 7):
        out[i:] += a[i:] @ a


def sums_of_prefixes(a: Array, x: Array, out: Array) -> None:
    for i in range(a.shape[0]):
        out[i] = a[:, :i] @ x[:i]


def sums_of_suffixes(a: Array, x: Array, out: Array) -> None:
    for i in range(a.shape[0]):
        out[0, i:] += a[i:, i:] @ x[i:]


def prefixes_of_rows(a: Array, x: Array, out: Array) -> None:
    for i in range(a.shape[0]):
        out[i] = x[:i] @ a[:i]


def matrices(a: Array, x: Array, out: Array) -> None:
    for i in range(a.shape[0]):
        out[:20, :30] += a[:20, :i] @ a[:i, :30]


def transposed_matrices(a: Array, x: Array, out: Array) -> None:
    for i in range(1, a.shape[0], 3):
        out[:20, :30] -= a[i:, :20].T @ a[i:, :30]


def matrices_in_place(a: Array, x: Array, out: Array) -> None:
    for i in range(0, a.shape[0], 5):
        out[i:] = out[i:] * 0.5 + out[i:] @ a


def two_lengths(a: Array, x: Array, out: Array) -> None:
    for i in range(0, a.shape[0], 5):
        out[i:] = out[i:] * 0.5 + out[i:, :i] @ a[:i]


def blocks_of_a_factorisation(a: Array, x: Array, out: Array) -> None:
    for k in range(0, a.shape[0] - 17, 17):
        out[k + 17 :, k + 17 :] -= out[k + 17 :, k : k + 17] @ out[k : k + 17, k + 17 :]


NAMED = {
    sums_of_columns: "linalg.vecmat",
    rows_below: "linalg.matvec",
    covariance: "linalg.contract",
    correlation: "linalg.contract",
    blocks_below: "linalg.matmul",
}
OTHERS = [
    sums_of_prefixes, sums_of_suffixes, prefixes_of_rows, matrices, transposed_matrices, matrices_in_place,
    two_lengths, blocks_of_a_factorisation,
]  # fmt: skip


def arguments(dtype: Any) -> tuple[Array, Array, Array]:
    rng = np.random.default_rng(0)
    shapes = ((N, N), (N,), (N, N))
    if np.dtype(dtype).kind == "i":
        return tuple(rng.integers(-4, 5, shape).astype(dtype) for shape in shapes)
    return tuple((rng.standard_normal(shape) / 8).astype(dtype) for shape in shapes)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("function", [*NAMED, *OTHERS], ids=lambda f: f.__name__)
def test_they_are_right(function: Callable[..., Any], dtype: Any) -> None:
    a, x, out = arguments(dtype)
    ours, theirs = out.copy(), out.copy()
    result, expected = ml.compile(function)(a, x, ours), function(a, x, theirs)
    tolerance = 1e-11 if dtype is np.float64 else 2e-4
    np.testing.assert_allclose(ours, theirs, rtol=tolerance, atol=tolerance)
    if expected is not None:
        np.testing.assert_allclose(result, expected, rtol=tolerance, atol=tolerance)


def test_integers_are_the_same() -> None:
    for function in (covariance, rows_below, sums_of_prefixes, matrices, transposed_matrices):
        a, x, out = arguments(np.int64)
        ours, theirs = out.copy(), out.copy()
        ml.compile(function)(a, x, ours)
        function(a, x, theirs)
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("function", NAMED, ids=lambda f: f.__name__)
def test_they_are_one_product(function: Callable[..., Any]) -> None:
    compiled = ml.compile(function)
    text = str(compiled.ir("optimize", *arguments(np.float64)))
    assert text.count(NAMED[function]) == 1
    assert "scf.for" not in text


@pytest.mark.parametrize("function", [*NAMED, *OTHERS], ids=lambda f: f.__name__)
def test_what_is_not_read_does_not_count(function: Callable[..., Any]) -> None:
    """NaN and infinities reach what they reach in NumPy."""
    for value in (np.nan, np.inf):
        for place in ((5, 70), (70, 5), (40, 40)):
            a, x, out = arguments(np.float64)
            a[place] = value
            ours, theirs = out.copy(), out.copy()
            with np.errstate(all="ignore"):
                result, expected = ml.compile(function)(a, x, ours), function(a, x, theirs)
            np.testing.assert_array_equal(np.isfinite(ours), np.isfinite(theirs))
            if expected is not None:
                assert np.isfinite(result) == np.isfinite(expected)


def test_strips_are_contractions_of_static_sizes() -> None:
    text = str(ml.compile(matrices).ir("optimize", *arguments(np.float64)))
    assert text.count("linalg.contract") == 2
    assert "tensor<20x32xf64>, tensor<32x30xf64>" in text
    assert "tensor<20x8xf64>, tensor<8x30xf64>" in text


@pytest.mark.parametrize("function", [matrices, sums_of_prefixes], ids=lambda f: f.__name__)
def test_gradients_go_through(function: Callable[..., Any]) -> None:
    a, x, _ = arguments(np.float64)

    def loss(a: Any, x: Any) -> Any:
        out = np.zeros((N, N))
        function(a, x, out)
        return np.sum(out * out)

    for argnum, place in ((0, (3, 9)), (0, (9, 3))):
        found = ml.grad(loss, argnums=argnum)(a, x)
        step = np.zeros_like(a)
        step[place] = 1e-5
        expected = (loss(a + step, x) - loss(a - step, x)) / 2e-5
        np.testing.assert_allclose(found[place], expected, rtol=1e-5, atol=1e-7)
