"""What depends on no earlier iteration is computed in strips, or before the loop around; numbers stay the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mlirml as ml


def decayed(x: Any) -> Any:
    s = 0.0
    for i in range(len(x)):
        s = 0.5 * s + np.exp(np.sin(x[i]))
    return s


def from_three(x: Any) -> Any:
    s = x[0]
    for i in range(3, len(x)):
        s = 0.5 * s + np.exp(x[i - 3]) / (1 + x[i] * x[i])
    return s


def stored(x: Any, out: Any) -> None:
    out[0] = x[0]
    for i in range(1, len(x)):
        out[i] = out[i - 1] * 0.25 + np.tanh(x[i]) * i


def with_condition(x: Any) -> Any:
    s, count = 0.0, 0
    for i in range(len(x)):
        e = np.exp(-x[i] * x[i])
        if s > 1.5:
            s = s * 0.5 + e
            count += 1
        else:
            s = s + np.sqrt(e) + np.log1p(e)
    return s, count


def of_strides(x: Any, k: Any) -> Any:
    s = 0.0
    for i in range(len(k)):
        s = s * 0.5 + np.exp(x[(7 * i + k[i]) % len(x)])
    return s


def dynamic(x: Any, n: Any) -> Any:
    s = 0.0
    for i in range(n):
        s = 0.5 * s + np.exp(np.cos(x[i]) * np.sin(x[i]))
    return s


def rows(x: Any, y: Any) -> None:
    for i in range(x.shape[0]):
        s = 0.0
        for j in range(x.shape[1]):
            s = 0.5 * s + np.exp(y[j]) * x[i, j]
            x[i, j] = s


def of_both(x: Any, y: Any) -> None:
    for i in range(x.shape[0]):
        s = 0.0
        for j in range(x.shape[1]):
            s = 0.5 * s + np.exp(np.sin(x[i, j] + y[j]))
            x[i, j] = s


LENGTHS = [0, 1, 63, 64, 65, 511, 512, 513, 1023, 1024, 1025, 1536, 4100]


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("function", [decayed, from_three, with_condition], ids=lambda f: f.__name__)
def test_lengths(function: Any, length: int) -> None:
    x = np.random.default_rng(length).normal(size=length + 1)
    np.testing.assert_allclose(ml.compile(function, frontend="loops")(x), function(x), rtol=1e-12)


@pytest.mark.parametrize("length", [n for n in LENGTHS if n])
def test_stores(length: int) -> None:
    x = np.random.default_rng(0).normal(size=length)
    ours, expected = np.zeros(length), np.zeros(length)
    ml.compile(stored)(x, ours)
    stored(x, expected)
    np.testing.assert_allclose(ours, expected, rtol=1e-12)


@pytest.mark.parametrize("length", LENGTHS)
def test_dynamic_lengths(length: int) -> None:
    x = np.random.default_rng(0).normal(size=5000)
    np.testing.assert_allclose(ml.compile(dynamic)(x, np.int64(length)), dynamic(x, length), rtol=1e-12)


def test_indices_that_are_no_slice() -> None:
    rng = np.random.default_rng(0)
    x, k = rng.normal(size=97), rng.integers(0, 97, 3000)
    np.testing.assert_allclose(ml.compile(of_strides)(x, k), of_strides(x, k), rtol=1e-12)


@pytest.mark.parametrize("function", [rows, of_both], ids=lambda f: f.__name__)
@pytest.mark.parametrize("shape", [(1, 2000), (5, 70), (9, 700), (3, 2000)])
def test_rows(function: Any, shape: tuple[int, int]) -> None:
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=shape), rng.normal(size=shape[1])
    ours, expected = x.copy(), x.copy()
    ml.compile(function, frontend="loops")(ours, y)
    function(expected, y)
    np.testing.assert_allclose(ours, expected, rtol=1e-12)


def test_functions_are_computed_in_vectors() -> None:
    """Of the functions of arrays that are only read none is left in the loop that carries the sum."""
    with ml.config.override(processor="avx2"):
        text = ml.compile(decayed, frontend="loops").ir("optimize", np.zeros(2048))
    loop = text[text.rindex("scf.for") :]
    assert "math." not in loop and text.count("math.exp") == 1
    with ml.config.override(processor="avx2"):
        text = ml.compile(rows, frontend="loops").ir("optimize", np.zeros((9, 70)), np.zeros(70))
    assert text.index("math.exp") < text.index("scf.for")
