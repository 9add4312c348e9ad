"""Sums over what earlier iterations stored, computed for eight iterations at a time, are what Python computes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mlirml as ml

LENGTHS = [1, 2, 7, 8, 9, 16, 23, 40]


def forward_substitution(a: Any, x: Any) -> None:
    for i in range(x.shape[0]):
        x[i] = (x[i] - a[i, :i] @ x[:i]) / a[i, i]


def cholesky(a: Any, x: Any) -> None:
    for i in range(a.shape[0]):
        for j in range(i):
            total = a[i, j]
            for k in range(j):
                total -= a[i, k] * a[j, k]
            a[i, j] -= np.dot(a[i, :j], a[j, :j])
            a[i, j] /= a[j, j]
            x[j] = total
        a[i, i] = np.sqrt(a[i, i] - np.dot(a[i, :i], a[i, :i]))


def triangular_rows(a: Any, x: Any) -> None:
    for i in range(a.shape[0]):
        for j in range(i):
            a[i, j] -= a[i, :j] @ a[:j, j]
            a[i, j] /= a[j, j]


def from_two(a: Any, x: Any) -> None:
    for i in range(2, x.shape[0]):
        total = x[i]
        for k in range(2, i):
            total += 0.01 * (a[i, k] + x[k]) * a[3 % x.shape[0], k]
        x[i] = total


def longest(a: Any, x: Any) -> None:
    for i in range(a.shape[0] - 1, -1, -1):
        for j in range(i + 1, a.shape[0]):
            for k in range(i + 1, j):
                a[i, j] = max(a[i, j], a[i, k] + a[k, j])


def with_the_next(a: Any, x: Any) -> None:
    """The sum reads one element more than those that are stored before the eight iterations."""
    for i in range(x.shape[0] - 1):
        total = x[i]
        for k in range(i):
            total += 0.01 * a[i, k] * x[k + 1]
        x[i] = total


def backwards(a: Any, x: Any) -> None:
    for i in range(x.shape[0]):
        last = x.shape[0] - 1 - i
        x[last] = (x[last] - a[last, last + 1 :] @ x[last + 1 :]) / a[last, last]


def row_of_the_next(a: Any, x: Any) -> None:
    """An iteration stores to the row that the next one sums up."""
    for i in range(x.shape[0] - 1):
        total = x[i]
        for k in range(i):
            total += 0.01 * a[i, k] * x[k]
        a[i + 1, 0] = total
        x[i] = total


FUNCTIONS = [
    forward_substitution, cholesky, triangular_rows, from_two, longest, with_the_next, backwards, row_of_the_next,
]  # fmt: skip


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("function", FUNCTIONS)
def test_recurrences(function: Callable[..., None], length: int, dtype: type) -> None:
    rng = np.random.default_rng(length)
    a = rng.uniform(-1, 1, (length, length))
    a = (a @ a.T / length + 2 * np.eye(length)).astype(dtype)
    x = rng.uniform(-1, 1, length).astype(dtype)
    expected, found = (a.astype(np.float64), x.astype(np.float64)), (a.copy(), x.copy())
    function(*expected)
    ml.compile(function)(*found)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=100 * np.finfo(dtype).eps, atol=100 * np.finfo(dtype).eps)


@pytest.mark.parametrize("length", LENGTHS)
def test_extremes_of_integers(length: int) -> None:
    a = np.random.default_rng(length).integers(-50, 50, (length, length)).astype(np.int32)
    x = np.zeros(length, np.int32)
    expected, found = a.copy(), a.copy()
    longest(expected, x)
    ml.compile(longest)(found, x.copy())
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(
    ("function", "vectors"),
    [(forward_substitution, True), (triangular_rows, True), (with_the_next, False), (row_of_the_next, False)],
)
def test_only_settled_terms_are_jammed(function: Callable[..., None], vectors: bool) -> None:
    with ml.config.override(processor="avx2,l2=1M"):
        text = ml.compile(function).ir("schedule", np.eye(40), np.ones(40))
    assert ("vector.load" in text) == vectors
