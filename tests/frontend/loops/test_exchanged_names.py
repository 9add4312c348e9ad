"""Arrays whose names an inner loop exchanges, while a loop around it gives one of them both names."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mlirml as ml
from tests.frontend.loops.against_python import same


def exchanged(u: Any, v: Any) -> Any:
    for i in range(5):
        for _ in range(i + 1):
            u, v = v, u
        u = v
    return u, v


def of_a_copy(u: Any, v: Any) -> Any:
    s = u[0]
    for i in range(4):
        v = v.copy()
        v[i % 3] += 1
        u = u + v[::-1]
        u += v
        for _ in range(2):
            v = np.roll(u, 1)
            s += u[i % 3]
        v = np.roll(u, 1)
    return u, v, s


def test_a_copy_that_a_loop_takes() -> None:
    """A buffer with another store into it, of which two are made."""
    u, v = np.arange(3.0), np.arange(3.0) + 7
    same(ml.compile(of_a_copy, frontend="loops")(u.copy(), v.copy()), of_a_copy(u, v), True, "the result")


def test_arrays_that_get_one_name() -> None:
    u, v = np.arange(3), np.arange(3) + 7
    with pytest.raises(ml.CaptureError, match="of which a loop around it renews one"):
        ml.compile(exchanged, frontend="loops")(u, v)
    same(ml.compile(exchanged)(u, v), exchanged(u, v), True, "traced")
