"""A function that calls itself without end fails as in Python, and nothing is left behind."""

from __future__ import annotations

import traceback
from typing import Any

import numpy as np
import pytest

import mlirml as ml
from mlirml.capture.trace import current_trace


def endless(x: Any) -> Any:
    return endless(x + 1)


def countdown(x: Any, steps: int) -> Any:
    return x if steps == 0 else countdown(2 * x, steps - 1)


def test_recursion_without_end() -> None:
    with pytest.raises(RecursionError) as caught:
        ml.compile(endless)(np.ones(3))
    frames = traceback.extract_tb(caught.value.__traceback__)
    assert sum(frame.name == "endless" for frame in frames) > 50
    assert current_trace() is None
    np.testing.assert_array_equal(ml.compile(countdown, static_argnums=1)(np.ones(3), 0), np.ones(3))


def test_recursion_that_ends() -> None:
    np.testing.assert_array_equal(ml.compile(countdown, static_argnums=1)(np.ones(3), 50), np.full(3, 2.0**50))
