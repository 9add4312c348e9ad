"""The same operator on the same scalars is written once, where the first result may be used."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mlirml as ml
from tests.autodiff.random_kept import _minors

X = np.array([0.3, 1.2, -0.7])


def test_products_of_minors_are_written_once() -> None:
    f = ml.compile(lambda x: _minors([[x[i, j] for j in range(6)] for i in range(6)]))
    x = np.random.default_rng(0).standard_normal((6, 6))
    text = f.ir("capture", x)
    # Each of the minors of size 2 to 6 of the last rows once: two products for size 2, one a column for others.
    assert text.count("arith.mulf") == 15 * 2 + 20 * 3 + 15 * 4 + 6 * 5 + 6
    assert np.isclose(f(x), np.linalg.det(x))


def of_branches(x: Any) -> Any:
    one = ml.cond(x[0] > 0, lambda: x[1] * x[2], lambda: x[1] - x[2])
    return one + x[1] * x[2]


def of_checkpoints(x: Any) -> Any:
    c = x[1] * 2.0
    return ml.checkpoint(lambda t: np.sin(t * (c * 3.0)))(x[0]) * (c * 3.0)


def of_gradients(x: Any) -> Any:
    return ml.grad(lambda t: t * (x[1] * x[2]))(x[0] * 1.0) * (x[1] * x[2]) + x[0] * 1.0


def of_zeros(x: Any) -> Any:
    return np.copysign(1.0, x[0] * 0.0) + np.copysign(2.0, x[0] * -0.0)


@pytest.mark.parametrize("f", [of_branches, of_checkpoints, of_gradients, of_zeros])
def test_shared_scalars_have_the_values_of_plain_calls(f: Any) -> None:
    assert np.isclose(ml.compile(f)(X), f(X))
    step = np.eye(3) * 1e-6
    differences = [(f(X + s) - f(X - s)) / 2e-6 for s in step]
    assert np.allclose(ml.grad(f)(X), differences, atol=1e-6)


def of_complex_numbers(a: Any) -> Any:
    none = a - a
    rest = a - none
    return none, rest, rest - rest, a * rest, rest * none


@pytest.mark.parametrize("target", ["cpu", "reference"])
def test_complex_scalars_are_told_apart(target: str) -> None:
    f = ml.compile(of_complex_numbers, target=target)
    for a in (np.complex128(2j), np.complex64(1 - 3j)):
        for got, expected in zip(f(a), of_complex_numbers(a), strict=True):
            assert got == expected and np.asarray(got).dtype == expected.dtype
