"""Loops that add up products of slices are products of arrays, with the numbers of NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mlirml as ml

RNG = np.random.default_rng(3)
A, B, W = RNG.standard_normal((40, 6)), RNG.standard_normal((40, 7)), RNG.standard_normal(40)
STACK = RNG.standard_normal((40, 6, 7))


def outer(a, b, w):
    s = np.zeros((a.shape[1], b.shape[1]))
    for i in range(a.shape[0]):
        s += np.outer(a[i], b[i])
    return s


def weighted(a, b, w):
    s = np.ones((a.shape[1], b.shape[1]))
    for i in range(3, len(a) - 1):
        s = s - w[i] * a[i][:, None] * (b[i] * 2.0)
    return s


def columns(a, b, w):
    s = np.zeros((b.shape[1], a.shape[1]))
    t = 0.0
    for i in range(len(a)):
        t += w[i]
        s = b[i, :][:, None] * a[i, :] + s
    return s, t


def scaled_matrices(a, b, w):
    s = np.zeros(STACK.shape[1:])
    for i in range(len(w)):
        s += w[i] * STACK[i]
    return s


def sides(a, b, w):
    left, right = np.zeros((6, 6)), np.zeros((7, 7))
    for i in range(len(a)):
        left += np.outer(a[i], a[i])
        right -= np.outer(b[i], b[i])
    return left, right


def of_functions(a, b, w):
    s = np.zeros((6, 7))
    for i in range(len(a)):
        s += np.outer(np.tanh(a[i]) - 1, b[i] * w[i] + 0.5) * w[i]
    return s


@pytest.mark.parametrize("function", [outer, weighted, columns, scaled_matrices, sides, of_functions])
def test_sums_become_products(function: Any) -> None:
    compiled = ml.compile(function)
    for found, expected in zip(flat(compiled(A, B, W)), flat(function(A, B, W)), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-13)
    assert "the products that a loop adds up are one product" in compiled.explain()


@pytest.mark.parametrize("function", [outer, weighted, columns])
def test_not_where_floats_keep_their_order(function: Any) -> None:
    with ml.config.override(algebra="exact"):
        text = ml.compile(function).ir("optimize", A, B, W)
        assert "linalg.contract" not in text and "linalg.mat" not in text
        integers = [x.round().astype(np.int64) for x in (A * 5, B * 5, W * 5)]
        assert "linalg." in ml.compile(sum_of_integers).ir("raise", *integers)
        assert "scf.for" not in ml.compile(sum_of_integers).ir("raise", *integers)
        assert np.array_equal(ml.compile(sum_of_integers)(*integers), sum_of_integers(*integers))


def sum_of_integers(a, b, w):
    s = np.zeros((a.shape[1], b.shape[1]), np.int64)
    for i in range(a.shape[0]):
        s += w[i] * np.outer(a[i], b[i])
    return s


def of_itself(a, b, w):
    s = np.ones((6, 6))
    for i in range(len(a)):
        s += np.outer(s[0], a[i])
    return s


def of_the_next(a, b, w):
    s = np.zeros((6, 7))
    for i in range(len(a) - 1):
        s += np.outer(a[i + 1], b[i])
    return s


def stored_in_the_loop(a, b, w):
    a, s = a.copy(), np.zeros((6, 7))
    for i in range(len(a)):
        a[i] = a[i - 1] * 0.5 + a[i]
        s += np.outer(a[i], b[i])
    return s


@pytest.mark.parametrize("function", [of_itself, of_the_next, stored_in_the_loop])
def test_others_are_right_as_well(function: Any) -> None:
    np.testing.assert_allclose(ml.compile(function)(A * 0.1, B, W), function(A * 0.1, B, W), rtol=1e-10)


def loss(a, b, w):
    return np.sum(np.sin(outer(a, b, w)))


def test_gradients() -> None:
    by_a, by_b = ml.compile(ml.grad(loss, argnums=(0, 1)))(A, B, W)
    inner = np.cos(A.T @ B)
    np.testing.assert_allclose(by_a, B @ inner.T, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(by_b, A @ inner, rtol=1e-10, atol=1e-12)


def flat(x: Any) -> list[Any]:
    """The arrays of a result."""
    return list(x) if isinstance(x, tuple) else [x]
