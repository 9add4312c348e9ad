"""Products of a matrix with vectors that read it once, against NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mlirml as ml

PROCESSOR = "sse4.1,l2=256K"
SHAPES = [(600, 500), (601, 600), (600, 600), (2000, 160)]


def normal_equations(a: Any, x: Any, v: Any) -> Any:
    return (a @ x) @ a


def both_sides(a: Any, x: Any, v: Any) -> Any:
    return v @ a, a @ x


def with_sums(a: Any, x: Any, v: Any) -> Any:
    return v + a @ x, x + v @ a


def gradient(a: Any, x: Any, v: Any) -> Any:
    p = 1 / (1 + np.exp(-(a @ x)))
    return a.T @ (p - v), np.sum((p - v) ** 2), p


def two_vectors(a: Any, x: Any, v: Any) -> Any:
    return a @ x - a @ (2 * x + 1)


def power_iteration(a: Any, x: Any, v: Any) -> Any:
    for _ in range(3):
        y = a @ x
        x = a.T @ (y / np.sqrt(y @ y))  # waits for all of y
    return x


def solved(a: Any, x: Any, v: Any) -> Any:
    """Steps of gradient descent: each reads the matrix once."""
    for _ in range(4):
        x = x - 1e-3 * (a.T @ (a @ x - v))
    return x


PROGRAMS = [normal_equations, both_sides, with_sums, gradient, two_vectors, power_iteration, solved]


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("program", PROGRAMS)
def test_programs(program: Callable[..., Any], shape: tuple[int, int], threads: int) -> None:
    rng = np.random.default_rng(0)
    a, x, v = rng.standard_normal(shape) / 8, rng.standard_normal(shape[1]) / 8, rng.standard_normal(shape[0])
    expected = program(a, x, v)
    with ml.config.override(processor=PROCESSOR, threads=threads):
        got = ml.compile(program)(a, x, v)
    for one, other in zip(*([t] if isinstance(t, np.ndarray) else t for t in (got, expected)), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("dtype", [np.float32, np.int32, np.int64])
def test_types(dtype: Any) -> None:
    rng = np.random.default_rng(1)
    a, x, v = (rng.integers(-4, 5, shape).astype(dtype) for shape in ((1100, 900), 900, 1100))
    with ml.config.override(processor=PROCESSOR, threads=1):
        for program in (normal_equations, both_sides, two_vectors):
            got, expected = ml.compile(program)(a, x, v), program(a, x, v)
            for one, other in zip(got, expected, strict=True):
                np.testing.assert_array_equal(one, other)


def reads_once(program: Callable[..., Any], shape: tuple[int, int]) -> bool:
    a, x, v = np.zeros(shape), np.zeros(shape[1]), np.zeros(shape[0])
    with ml.config.override(processor=PROCESSOR, algebra="exact"):  # else `two_vectors` is one product
        return "mlirml_threads" in str(ml.compile(program).ir("schedule", a, x, v))


def test_what_is_read_once() -> None:
    assert [program for program in PROGRAMS if not reads_once(program, (600, 500))] == [power_iteration]
    assert not reads_once(normal_equations, (60, 50))  # stays in the cache
    assert not reads_once(normal_equations, (60, 50_000))  # not even eight rows do


def test_a_gradient_reads_once() -> None:
    a, x, v = np.ones((600, 500)), np.zeros(500), np.zeros(600)

    def loss(x: Any, a: Any, v: Any) -> Any:
        return np.mean((np.tanh(a @ x) - v) ** 2)

    with ml.config.override(processor=PROCESSOR):
        assert "mlirml_threads" in str(ml.compile(ml.value_and_grad(loss)).ir("schedule", x, a, v))
