"""Programs with derivatives count denormal numbers as zero; others, and NumPy behind them, keep them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import mlirml as ml

TINY = np.finfo(np.float64).smallest_subnormal


@pytest.fixture
def two_threads() -> Iterator[None]:
    before = ml.config.threads
    ml.config.threads = 2
    yield
    ml.config.threads = before


def half(x: Any) -> Any:
    return 0.5 * x


@pytest.mark.usefixtures("two_threads")
@pytest.mark.parametrize("size", [8, 1 << 20])
def test_derivatives_count_denormals_as_zero(size: int) -> None:
    x = np.full(size, np.finfo(np.float64).smallest_normal)
    y, change = ml.compile(lambda x: ml.jvp(half, (x,), (x,)))(x)
    assert not np.any(y) and not np.any(change)
    np.testing.assert_array_equal(ml.compile(half)(x), x / 2)
    assert x[0] / 2 > 0 and TINY * np.ones(1)[0] == TINY, "the caller's mode is as it was"


def test_an_error_leaves_the_mode_as_it_was() -> None:
    def picked(x: Any, i: Any) -> Any:
        return np.sum(x[i])

    with pytest.raises(IndexError):
        ml.compile(ml.grad(picked))(np.ones(3), np.array([5]))
    assert np.finfo(np.float64).smallest_normal * np.full(1, 0.5)[0] > 0
