"""Dot products of rows in loops, against the same function in plain Python."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mlirml as ml

RNG = np.random.default_rng(0)
Q, K, V = (RNG.standard_normal((2, 3, 10, 8)) for _ in range(3))
MASK = np.tril(np.ones((10, 10), bool))


def attention(q: Any, k: Any, v: Any, mask: Any, scale: float) -> Any:
    out = np.zeros_like(q)
    for b in range(q.shape[0]):
        for h in range(q.shape[1]):
            for i in range(q.shape[2]):
                most = -np.inf
                for j in range(q.shape[2]):
                    if mask[i, j]:
                        most = max(most, np.dot(q[b, h, i], k[b, h, j]) * scale)
                total = 0.0
                for j in range(q.shape[2]):
                    if mask[i, j]:
                        total += np.exp(np.dot(q[b, h, i], k[b, h, j]) * scale - most)
                for j in range(q.shape[2]):
                    if mask[i, j]:
                        weight = np.exp(np.dot(q[b, h, i], k[b, h, j]) * scale - most) / total
                        for d in range(q.shape[3]):
                            out[b, h, i, d] += weight * v[b, h, j, d]
    return out


def test_scores_of_attention_are_computed_once() -> None:
    compiled = ml.compile(attention)
    args = (Q, K, V, MASK, 0.3)
    np.testing.assert_allclose(compiled(*args), attention(*args), rtol=1e-12, atol=1e-13)
    text = compiled.ir("optimize", *args)
    assert text.count("linalg.contract") + text.count("linalg.batch_matmul") == 2 and "scf." not in text
    assert "linalg.dot" not in text


def test_rows_that_are_masked_out_change_nothing() -> None:
    mask = MASK.copy()
    mask[3] = False
    args = (Q, K, V, mask, 0.3)
    np.testing.assert_allclose(ml.compile(attention)(*args), attention(*args), rtol=1e-12, atol=1e-13)


def parts_of_arrays(a: Any, b: Any, n: int) -> Any:
    out = np.zeros((4, 5))
    for i in range(4):
        for j in range(5):
            out[i, j] = np.dot(a[n, i, 2:6], b[j, :4])
    return out


def one_row(a: Any, b: Any, n: int) -> Any:
    total = np.zeros(6)
    for i in range(6):
        if b[i, 0] > 0:
            total[i] = np.dot(a[n, 1], b[i])
        else:
            total[i] = 2 * np.dot(a[n, 1], b[i])
    return total


def changing(a: Any, b: Any, n: int) -> Any:
    b = b.copy()
    for i in range(6):
        for j in range(5):
            b[i, j] = np.dot(a[n, j], b[i])
    return b


def diagonal(a: Any, b: Any, n: int) -> Any:
    total = 0.0
    for i in range(3):
        total += np.dot(a[i, i], b[i]) + np.dot(b[i], b[5])
    return total


def triangle(a: Any, b: Any, n: int) -> Any:
    out = np.zeros((6, 6))
    for i in range(6):
        for j in range(i):
            out[i, j] = np.dot(b[i], b[j]) + np.dot(b[i], a[n, i % 5])
    return out


def integers(a: Any, b: Any, n: int) -> Any:
    a, b = (10 * a).astype(np.int64), (10 * b).astype(np.int64)
    out = np.zeros((5, 6), np.int64)
    for i in range(5):
        for j in range(6):
            out[i, j] = max(np.dot(a[n, i], b[j]), 3)
    return out


@pytest.mark.parametrize("f", [parts_of_arrays, one_row, changing, diagonal, triangle, integers])
def test_dots_in_loops(f: Callable[..., Any]) -> None:
    a, b = RNG.standard_normal((3, 5, 8)), RNG.standard_normal((6, 8))
    np.testing.assert_allclose(ml.compile(f)(a, b, 2), f(a, b, 2), rtol=1e-12, atol=1e-12)


def test_gradients_go_through_batched_dots() -> None:
    def loss(q: Any, k: Any, v: Any, mask: Any) -> Any:
        return np.sum(attention(q, k, v, mask, 0.3) ** 2)

    gradient, step = ml.compile(ml.grad(loss))(Q, K, V, MASK), 1e-6
    moved = Q.copy()
    moved[1, 2, 4, 3] += step
    want = (loss(moved, K, V, MASK) - loss(Q, K, V, MASK)) / step
    np.testing.assert_allclose(gradient[1, 2, 4, 3], want, rtol=1e-3)
