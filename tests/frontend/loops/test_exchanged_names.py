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


def test_arrays_that_get_one_name() -> None:
    u, v = np.arange(3), np.arange(3) + 7
    with pytest.raises(ml.CaptureError, match="of which a loop around it renews one"):
        ml.compile(exchanged, frontend="loops")(u, v)
    same(ml.compile(exchanged)(u, v), exchanged(u, v), True, "traced")
