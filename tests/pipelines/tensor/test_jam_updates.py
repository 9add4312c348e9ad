"""Loops that update a matrix by rows and columns of it, against NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mlirml as ml


def shortest_paths(p: Any) -> Any:
    for k in range(p.shape[0]):
        p[:] = np.minimum(p, np.add.outer(p[:, k], p[k, :]))
    return p


def reachable(p: Any) -> Any:
    for k in range(p.shape[0]):
        p = p | (p[:, k : k + 1] & p[k : k + 1, :])
    return p


def outer_products(p: Any) -> Any:
    """Each iteration changes the row and the column that the next one reads."""
    for k in range(3, min(p.shape)):
        p = p - 0.125 * np.outer(p[:, k], p[k])
    return p


def columns(p: Any) -> Any:
    for k in range(p.shape[1]):
        p = 0.5 * p + p[:, k : k + 1]
    return p


def two_rows(p: Any) -> Any:
    for k in range(p.shape[0] - 1):
        p = 0.5 * p - 0.25 * p[k] + 0.125 * p[k + 1]
    return p


PROGRAMS = [shortest_paths, reachable, outer_products, columns, two_rows]


def matrix(program: Callable[..., Any], shape: tuple[int, int]) -> Any:
    rng = np.random.default_rng(3)
    if program is reachable:
        return rng.random(shape) < 0.02
    if program is shortest_paths:
        return rng.integers(1, 1000, shape).astype(np.int32)
    return rng.standard_normal(shape) / 16


@pytest.mark.parametrize("shape", [(100, 100), (66, 130), (130, 67), (20, 400)])
@pytest.mark.parametrize("program", PROGRAMS)
def test_programs(program: Callable[..., Any], shape: tuple[int, int]) -> None:
    if program in (shortest_paths, reachable):
        shape = (shape[1], shape[1])
    given = matrix(program, shape)
    expected = program(given.copy())
    got = ml.compile(program)(given.copy())
    assert got.dtype == expected.dtype
    tolerance = 1e-12 if got.dtype.kind == "f" else 0.0
    np.testing.assert_allclose(got, expected, rtol=tolerance, atol=tolerance)


def test_which_loops_are_joined() -> None:
    """A loop that reads two of its rows is not."""

    def joins(program: Callable[..., Any]) -> bool:
        text = str(ml.compile(program).ir("optimize", matrix(program, (100, 100))))
        return "step %c4 " in text

    with ml.config.override(processor="avx2,l2=1M"):
        assert [joins(program) for program in PROGRAMS] == [True, False, True, True, False]
