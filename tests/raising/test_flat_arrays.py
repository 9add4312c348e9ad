"""Loops on flat arrays, as C programs write them, become the operations that they are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mlirml as ml


def counted(a: Any, b: Any, c: Any) -> None:
    n, p = 4, 0
    for i in range(n):
        for j in range(n):
            s = 0.0
            for k in range(n):
                s += a[i * n + k] * b[k * n + j]
            c[p] = s
            p += 1


def columns_first(a: Any, b: Any, c: Any) -> None:
    m, n, p = 3, 4, 5
    for j in range(n):
        for i in range(m):
            c[i + j * m] = 0.0
        for k in range(p):
            for i in range(m):
                c[i + j * m] += a[i + k * m] * b[k + j * p]


def batches(a: Any, b: Any, c: Any) -> None:
    for n in range(2):
        for i in range(3):
            for j in range(4):
                s = 0.0
                for k in range(5):
                    s += a[n * 15 + i * 5 + k] * b[n * 20 + k * 4 + j]
                c[n * 12 + i * 4 + j] = s


def transposed(a: Any, b: Any, c: Any) -> None:
    n = 4
    for i in range(n):
        c[i] = 0.0
        for j in range(n):
            c[i] += a[j * n + i] * b[j]


def padded(a: Any, b: Any, c: Any) -> None:
    h, w = 5, 6
    for i in range(h):
        for j in range(w):
            s = 0.0
            for k in range(3):
                if i + k - 1 < 0 or i + k - 1 >= h:
                    continue
                for m in range(3):
                    if 0 <= j + m - 1 < w:
                        s += a[(i + k - 1) * w + j + m - 1] * b[3 * k + m]
            c[i * w + j] = s


@pytest.mark.parametrize(
    ("program", "sizes", "operation"),
    [
        (counted, (16, 16, 16), "linalg.matmul"),
        (columns_first, (15, 20, 12), "linalg.matmul"),
        (batches, (30, 40, 24), "linalg.batch_matmul"),
        (transposed, (16, 4, 4), "linalg.vecmat"),
        (padded, (30, 9, 30), "tensor.pad"),
    ],
)
def test_flat_program(program: Callable[..., None], sizes: tuple[int, int, int], operation: str) -> None:
    rng = np.random.default_rng(0)
    arguments = [rng.integers(-8, 9, size) / 4 for size in sizes]
    compiled = ml.compile(program, frontend="loops")
    raised = compiled.ir("raise", *arguments)
    assert operation in raised and "scf.for" not in raised, raised
    expected = [a.copy() for a in arguments]
    program(*expected)
    compiled(*arguments)
    np.testing.assert_array_equal(arguments[2], expected[2])
