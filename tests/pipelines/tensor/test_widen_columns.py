"""Loops over columns that are reduced and updated, against NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mlirml as ml


def gram_schmidt(a: Any) -> Any:
    q, r = np.zeros_like(a), np.zeros((a.shape[1], a.shape[1]), a.dtype)
    for k in range(a.shape[1]):
        r[k, k] = np.sqrt(np.dot(a[:, k], a[:, k]))
        q[:, k] = a[:, k] / r[k, k]
        for j in range(k + 1, a.shape[1]):
            r[k, j] = np.dot(q[:, k], a[:, j])
            a[:, j] -= q[:, k] * r[k, j]
    return q, r


def normalised(a: Any) -> Any:
    """Numbers of a column between the operations on it."""
    means = np.zeros(a.shape[1], a.dtype)
    for j in range(a.shape[1]):
        total = np.sum(a[:, j])
        means[j] = total / a.shape[0] + 1
        a[:, j] = (a[:, j] - means[j]) * 0.5 + np.abs(total)
    return a, means


def reflected(a: Any) -> Any:
    """Householder reflections, each of the columns after its own."""
    for k in range(min(a.shape) - 1):
        v = a[:, k] / (1 + np.sqrt(np.dot(a[:, k], a[:, k])))
        for j in range(k, a.shape[1]):
            a[:, j] -= 2 * v * np.dot(v, a[:, j]) / np.dot(v, v)
    return a


def with_constants(a: Any) -> Any:
    out = np.zeros((2, *a.shape), a.dtype)
    for j in range(3, a.shape[1]):
        out[0, :, j] = a[:, 0]
        out[1, :, j] = a[:, j] + np.max(a[:, j])
        out[1, 1, j] = 7.0
    return out


def neighbours(a: Any) -> Any:
    """Each column needs the one before it."""
    for j in range(1, a.shape[1]):
        a[:, j] -= a[:, j - 1] * np.tanh(np.dot(a[:, j - 1], a[:, j]))
    return a


PROGRAMS = [gram_schmidt, normalised, reflected, with_constants, neighbours]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(70, 60), (30, 21), (9, 3), (5, 40)])
@pytest.mark.parametrize("program", PROGRAMS)
def test_programs(program: Callable[..., Any], shape: tuple[int, int], dtype: Any) -> None:
    a = (np.random.default_rng(0).standard_normal(shape) / 4 + np.eye(*shape)).astype(dtype)
    if program is gram_schmidt:
        a = a[:, : shape[0]]
    expected, got = program(a.copy()), ml.compile(program)(a.copy())
    tolerance = 1e-9 if dtype == np.float64 else 2e-3
    for one, other in zip(*(t if isinstance(t, tuple) else (t,) for t in (got, expected)), strict=True):
        np.testing.assert_allclose(one, other, rtol=tolerance, atol=tolerance)


def test_which_loops_are_widened() -> None:
    a = np.eye(70, 60)
    with ml.config.override(processor="avx2,l2=1M"):
        texts = [str(ml.compile(program).ir("optimize", a)) for program in PROGRAMS]
    assert ["70, 16] [1, 1]" in text for text in texts] == [True, True, True, True, False]
