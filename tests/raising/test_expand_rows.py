"""Elementwise operations on rows beside batched dot products, against the same function in plain Python."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mlirml as ml

RNG = np.random.default_rng(0)


def weighted(q: Any, k: Any, v: Any, mask: Any) -> Any:
    out = np.zeros_like(q)
    for i in range(q.shape[0]):
        total, row = 0.0, np.zeros(q.shape[1])
        for j in range(q.shape[0]):
            if mask[i, j]:
                weight = np.exp(np.dot(q[i], k[j]))
                total += weight
                row += weight * v[j]
        for j in range(q.shape[0]):
            if mask[i, j]:
                total += np.dot(q[i], k[j])
        out[i] = row / total
    return out


def stored(q: Any, k: Any, v: Any, mask: Any) -> Any:
    out = np.ones_like(q)
    for i in range(q.shape[0]):
        for j in range(q.shape[0]):
            out[i] += np.dot(q[i], k[j]) * v[j]
            out[i] *= 0.9
    return out


def parts(q: Any, k: Any, v: Any, mask: Any) -> Any:
    out = np.zeros_like(q)
    for i in range(q.shape[0]):
        for j in range(q.shape[0]):
            out[i, 1:4] += np.dot(q[i], k[j]) * v[j, 2:5]
            out[i, 4] += v[j, 0]
    return out


def several(q: Any, k: Any, v: Any, mask: Any) -> Any:
    out, last = np.zeros_like(q), np.zeros(q.shape[1])
    for i in range(q.shape[0]):
        for j in range(q.shape[0]):
            row = np.dot(q[i], k[j]) * v[j]
            out[i] += row
            last = last * 0.5 + row
    return out + last


def copied(q: Any, k: Any, v: Any, mask: Any) -> Any:
    out = np.zeros_like(q)
    for i in range(1, q.shape[0]):
        for j in range(q.shape[0]):
            out[i] = out[i - 1] + np.dot(q[j], k[j]) + np.dot(q[1], k[j])
            out[0] = v[j]
    return out


def exchanged(q: Any, k: Any, v: Any, mask: Any) -> Any:
    a, b = np.zeros(q.shape[1]), np.ones(q.shape[1])
    for i in range(q.shape[0]):
        for j in range(q.shape[0]):
            a, b = b + np.dot(q[i], k[j]) * v[j], a * 0.5
    return a + b


def choice(q: Any, k: Any, v: Any, mask: Any) -> Any:
    row = np.zeros(q.shape[1])
    for i in range(q.shape[0]):
        for j in range(q.shape[0]):
            weight = np.dot(q[i], k[j])
            if mask[i, j]:
                row += weight * v[j]
            else:
                row -= v[i]
    return row


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("f", [weighted, stored, parts, several, copied, exchanged, choice])
def test_rows_in_loops(f: Callable[..., Any], dtype: Any) -> None:
    q, k, v = (RNG.standard_normal((9, 6)).astype(dtype) for _ in range(3))
    mask = RNG.random((9, 9)) < 0.5
    mask[:, 0] = True
    expected = f(*(x.astype(np.float64) for x in (q, k, v)), mask)
    tolerance = {"rtol": 1e-11, "atol": 1e-11} if dtype == np.float64 else {"rtol": 2e-3, "atol": 2e-3}
    np.testing.assert_allclose(ml.compile(f)(q, k, v, mask), expected, **tolerance)


def test_nests_of_rows_are_raised_as_a_whole() -> None:
    q, k, v = (RNG.standard_normal((9, 6)) for _ in range(3))
    text = ml.compile(weighted).ir("optimize", q, k, v, np.ones((9, 9), bool))
    assert "scf." not in text and "linalg.dot" not in text
