"""Elementwise producers of operands of contractions: what is computed as it is read, against float64 NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mlirml as ml
from tests.codegen.cpu.test_contract_epilogue import Array, check, normal

LINES = ("linalg.", "scf.for", "parallel_for")


def only_calls(function: Callable[..., Any], *arguments: Array) -> bool:
    """Whether the program is a call of a kernel, and no loop is left beside it."""
    text = ml.compile(function).ir("schedule", *arguments)
    if "func.func @main" not in text:
        return False
    main = text[text.index("func.func @main") :].partition("\n  }\n")[0]
    return "call @contract_" in main and not any(line in main for line in LINES)


VECTORS = {
    "scaled": lambda x, s, g, w: (x * s + g) @ w,
    "relu": lambda x, s, g, w: np.maximum(x, 0) @ w,
    "of zeros infinite": lambda x, s, g, w: (1 / (np.abs(x) + s * 0)) @ w,
    "tanh": lambda x, s, g, w: np.tanh(x - g) @ w,
    "squares": lambda x, s, g, w: w @ np.square(x.T),
    "converted": lambda x, s, g, w: (x.astype(np.float64) * 2).astype(np.float32) @ w,
}


@pytest.mark.parametrize("name", VECTORS)
@pytest.mark.parametrize("columns", [1, 5])
def test_rows_are_computed_as_they_pass_by(name: str, columns: int) -> None:
    x, s, g, w = normal((101, 77), (77,), (101, 1), (77, columns) if columns > 1 and name != "squares" else (77,))
    check(VECTORS[name], x, s, g, w, tolerance=1e-5)


PACKED = {
    "scaled": lambda x, s, g, w: (x * s + 1) @ w,
    "each row less its mean": lambda x, s, g, w: (x - g) * s @ w,
    "rows": lambda x, s, g, w: np.exp(x.T).T @ w,
    "the second operand": lambda x, s, g, w: x @ (w * 2 - s[:, None]),
    "both": lambda x, s, g, w: np.maximum(x, 0) @ np.tanh(w),
    "transposed": lambda x, s, g, w: w.T @ (x.T * s[:, None]),
    "with a consumer": lambda x, s, g, w: np.maximum(np.square(x) @ w - 1, 0) * 2,
    "normalised": lambda x, s, g, w: (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + 1e-5) @ w,
}


@pytest.mark.parametrize("name", PACKED)
@pytest.mark.parametrize("sizes, dtype", [((530, 640, 100), np.float32), ((270, 1030, 49), np.float64)])
def test_operands_are_computed_as_they_are_packed(name: str, sizes: tuple[int, int, int], dtype: Any) -> None:
    m, k, n = sizes
    x, s, g, w = normal((m, k), (k,), (m, 1), (k, n), dtype=dtype)
    check(PACKED[name], x, s, g, w, tolerance=3e-5)


def test_what_is_computed_leaves_no_loop_behind() -> None:
    x, s, g, w = normal((1100, 1030), (1030,), (1100, 1), (1030, 60))
    assert only_calls(PACKED["scaled"], x, s, g, w)
    assert only_calls(PACKED["with a consumer"], x, s, g, w)
    assert only_calls(VECTORS["scaled"], x, s, g, w[:, 0].copy())
    assert not only_calls(lambda x, w: (x * 2) @ w + np.sum(x * 2), x, w)


def updated_and_scaled(a: Array, u: Array, v: Array, x: Array) -> tuple[Array, Array, Array]:
    a = a + np.outer(u, v)
    return a, v @ a.T, (0.5 * a) @ x


def test_a_matrix_that_stays_is_scaled_as_it_passes_by() -> None:
    a, u, v, x = normal((130, 140), (130,), (140,), (140,))
    check(updated_and_scaled, a, u, v, x, tolerance=1e-5)
    text = ml.compile(updated_and_scaled).ir("schedule", a, u, v, x)
    assert "to memref<130x140xf32>" not in text  # a part of the workspace


def store_behind(x: Array, w: Array) -> Array:
    y = x * 2
    x[...] = 1
    return y @ w


def store_the_product(x: Array, w: Array) -> Array:
    x[:, 0] = (x * 2) @ w
    return x


def read_again(x: Array, w: Array) -> tuple[Array, Array]:
    y = x * 2
    return y @ w, y


def twice(x: Array, w: Array) -> Array:
    y = np.maximum(x, 0)
    return y @ w + y @ (w * 2)


def in_a_loop(x: Array, w: Array) -> Array:
    return ml.fori_loop(0, 3, lambda i, v: np.tanh(x * (1.0 + i)).astype(x.dtype) @ v, w)


def in_two_parts(x: Array, w: Array) -> Array:
    return np.inner((x + 1j * x) * 2, w).real


@pytest.mark.parametrize("function", [in_two_parts, store_behind, store_the_product, read_again, twice, in_a_loop])
def test_what_is_read_or_changed_elsewhere_is_right(function: Callable[..., Any]) -> None:
    x, w = normal((90, 90), (90,))
    expected = function(x.astype(np.float64), w.astype(np.float64))
    got = ml.compile(function)(x.copy(), w)
    for one, other in zip(got if isinstance(got, tuple) else [got], expected if isinstance(got, tuple) else [expected]):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-4)


def test_threads_compute_their_own_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    x, s, g, w = normal((3000, 700), (700,), (3000, 1), (700, 64))
    for function, other in ((PACKED["scaled"], w), (VECTORS["tanh"], w[:, 0].copy())):
        results = []
        for threads in (1, 2, 4):
            monkeypatch.setattr(ml.config, "threads", threads)
            results.append(ml.compile(function)(x, s, g, other))
        np.testing.assert_array_equal(results[0], results[1])
        np.testing.assert_array_equal(results[0], results[2])
