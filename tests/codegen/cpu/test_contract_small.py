"""Products of few numbers are written out, and are what NumPy computes."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mlirml as ml

Array = np.ndarray
RNG = np.random.default_rng(11)


def main_of(function: Callable[..., Any], *arguments: Array) -> str:
    text = ml.compile(function).ir("schedule", *arguments)
    return text[text.index("func.func @main(") :].partition("\n  }\n")[0]


def check(function: Callable[..., Any], *arguments: Array) -> None:
    tolerance = 1e-5 if any(x.dtype.name in ("float32", "complex64") for x in arguments) else 1e-13
    expected, found = function(*[x.copy() for x in arguments]), ml.compile(function)(*arguments)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex128, np.int64])
@pytest.mark.parametrize("sizes", [*itertools.product([1, 2, 3], [1, 3], [1, 2, 3]), (4, 4, 4), (2, 7, 3), (8, 2, 4)])
def test_sizes(sizes: tuple[int, int, int], dtype: Any) -> None:
    m, k, n = sizes
    a, b, c = ((RNG.standard_normal(s) * 8).astype(dtype) for s in ((m, k), (k, n), (m, n)))
    check(lambda a, b, c: (a @ b, (a @ b) * 2 - c, b.T @ a.T, a[:, 0] @ c, c @ b[0], a.T @ c), a, b, c)


def test_kinds_of_products() -> None:
    a, b = RNG.standard_normal((2, 3, 4)), RNG.standard_normal((2, 4, 2))
    check(
        lambda a, b: (
            a @ b, np.einsum("bij,bjk->bki", a, b), np.einsum("bij,bjk->ik", a, b), a[:, ::2, ::-1] @ b[:, ::-1, :1],
            np.einsum("bij,cjk->bcik", a[:, :1], b), np.outer(a[0, 0], b[1, :, 1]), np.tensordot(a[0], b[1], 1),
        ),
        a, b,
    )  # fmt: skip


def in_place(a: Array, b: Array, c: Array) -> tuple[Array, Array]:
    for i in range(len(c)):
        c[i] += a @ c[i] - b @ a
        a = c[i] @ a * 0.25
    return c, a


@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
def test_in_loops(dtype: Any) -> None:
    rng = np.random.default_rng(3)  # the same numbers whatever ran before: others grow without bound
    a, b = (rng.uniform(-0.3, 0.3, (3, 3)).astype(dtype) for _ in range(2))
    c = rng.uniform(-0.3, 0.3, (40, 3, 3)).astype(dtype)
    check(in_place, a, b, c)


def test_what_is_written_out() -> None:
    def product(a: Array, b: Array) -> Array:
        return a @ b

    small, large = np.ones((4, 4)), np.ones((4, 5))
    assert "vector.fma" in main_of(product, small, small)
    assert "call @contract_" not in main_of(product, small, small)
    assert "call @contract_" in main_of(product, small, large)
    assert "scf.for" not in main_of(lambda a, b: a @ b * 2 - a, small, small)
