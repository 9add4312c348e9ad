"""Clocks that are read while a function is traced."""

from __future__ import annotations

import logging
import time
from typing import Any

import numpy as np
import pytest

import mlirml as ml

X = np.ones(3)


def test_what_is_logged_has_its_time() -> None:
    def f(x: Any) -> Any:
        logging.getLogger("mlirml.test").warning("%s is not called", clock)
        return x + 1

    clock = time.monotonic
    assert np.array_equal(ml.compile(f)(X), X + 1)


def test_a_clock_of_the_function_itself_is_refused() -> None:
    def f(x: Any) -> Any:
        return x + clock()

    clock = time.monotonic
    with pytest.raises(ml.UnsupportedSyntaxError, match="would be called once"):
        ml.compile(f)(X)
