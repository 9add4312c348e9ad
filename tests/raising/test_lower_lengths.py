"""Slices of changing length are raised, and become loops that compute, differentiate and batch as those of the user."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest

import mlirml as ml
from mlirml.ir.bindings import operations, parse
from mlirml.passes import parse_pipeline
from mlirml.pipelines.cpu import RAISE

N = 10


def solve(L, b):
    x = np.zeros(N)
    for i in range(N):
        s = b[i]
        for j in range(i):
            s -= L[i, j] * x[j]
        x[i] = s / L[i, i]
    return x


def shift(L, b):
    x = b.copy()
    for i in range(N):
        for j in range(i):  # reads what it stores later
            x[j] = x[j + 1] * L[i, j]
        for j in range(i, 0, -1):
            x[j] = x[j - 1] + L[i, j]
    return x


def project(L, b):
    x = b.copy()
    for k in range(N):
        for j in range(k + 1, N):
            x[j] = 0.5 * x[j]
            for i in range(N):
                x[j] += L[i, k] * L[i, j]
    return x


def wavefront(L, b):
    x = b.copy()
    for i in range(1, N):
        for j in range(N - i):
            x[j] = np.exp(-x[j] * x[j]) + L[j, j + i]
        x[i] += np.sum(L[i, :i])
    return x


def from_copies(L, b):
    x, y = b.copy(), L.copy()
    for i in range(1, N):
        before, rows = x.copy(), y.copy()
        for j in range(i):  # reads what it would have stored before
            x[j] = before[i - 1 - j] + 0.5 * before[j]
        for j in range(i):
            for k in range(i):
                y[j, k] += 0.1 * rows[k, j] + 0.1 * rows[i - j, k]
    return x + y[0]


FUNCTIONS = (solve, shift, project, wavefront, from_copies)


def arguments() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    return rng.uniform(0.5, 1.5, (N, N)), rng.uniform(0.5, 1.5, N)


def raised(function: Any) -> Counter[str]:
    """The operations of a function after stage `raise`."""
    module = parse(ml.compile(function, frontend="loops").trace(*arguments()).text)
    parse_pipeline(",".join(RAISE)).run(module)
    return Counter(op.name for op in operations(module) if "mlirml.order" in op.attributes)


@pytest.mark.parametrize("function", FUNCTIONS)
def test_slices_of_changing_length_are_raised(function: Any) -> None:
    assert raised(function).total() >= {solve: 1, shift: 2, project: 2, wavefront: 1}.get(function, 0)
    for target in ("cpu", "reference"):
        got = ml.compile(function, target, frontend="loops")(*arguments())
        np.testing.assert_allclose(got, function(*arguments()), rtol=1e-12)


@pytest.mark.parametrize("function", FUNCTIONS)
def test_they_are_differentiated(function: Any) -> None:
    L, b = arguments()
    step = 1e-6

    def loss(L, b):
        return np.sum(ml.loops(function)(L, b) ** 2)

    gradients = ml.compile(ml.grad(loss, argnums=(0, 1)))(L, b)
    for number, gradient in enumerate(gradients):
        for place in np.ndindex(gradient.shape):
            ends = []
            for sign in (1, -1):
                moved = [L.copy(), b.copy()]
                moved[number][place] += sign * step
                ends.append(np.sum(function(*moved) ** 2))
            assert gradient[place] == pytest.approx((ends[0] - ends[1]) / (2 * step), rel=1e-5, abs=1e-6)


@pytest.mark.parametrize("function", FUNCTIONS)
def test_they_are_batched(function: Any) -> None:
    L, b = arguments()
    rows = np.stack([b, b + 1, b * 2])
    got = ml.compile(ml.vmap(ml.loops(function), in_axes=(None, 0)))(L, rows)
    np.testing.assert_allclose(got, [function(L, row) for row in rows], rtol=1e-12)
