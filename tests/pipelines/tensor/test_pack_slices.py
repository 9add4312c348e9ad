"""Slices of the last dimension that loops read with a stride are packed where that pays."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mlirml as ml

Array = Any


def ratio(x: Array) -> Array:
    now = x[..., 1]
    rise = now[2:] - now[1:-1]
    return rise / (1 + np.abs(now[1:-1] - now[:-2])) + x[1:-1, ..., 0]


def packed(function: Any, x: Array) -> int:
    """The copies of slices in the program of a function that is right."""
    compiled = ml.compile(function)
    np.testing.assert_allclose(compiled(x), function(x), rtol=1e-12)
    before = str(ml.compile(function, pipeline=without()).ir("optimize", x))
    return str(compiled.ir("optimize", x)).count("linalg.generic") - before.count("linalg.generic")


def without() -> list[str]:
    return [name for name in ml.optional_passes() if name != "mlirml-pack-slices"]


@pytest.mark.parametrize(("shape", "copies"), [((40, 12, 11, 3), 1), ((4, 3, 11, 3), 0), ((40, 12, 50, 3), 0)])
def test_short_rows_that_costly_loops_read(shape: tuple[int, ...], copies: int) -> None:
    x = np.random.default_rng(0).normal(size=shape)
    assert packed(ratio, x) == copies


def test_slices_at_an_index_of_two_dimensions() -> None:
    x = np.random.default_rng(1).normal(size=(40, 30, 10, 2, 2))
    assert packed(lambda x: np.tanh(x[..., 1, 0]) / x[..., 1, 0], x) == 1
