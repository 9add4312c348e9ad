"""Functions and settings of another module, as a user's program has them."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy as numpy_module

FACTOR = 3.0
OPTIONS = {"bias": 1.0}

__all__ = ["FACTOR", "OPTIONS", "biased", "numpy_module", "padded", "relaxed"]


def padded(x: Any) -> Any:
    """Stores into an array that it makes itself."""
    y = np.zeros(4)
    y[1:3] = x[1:3]
    return y


def biased(x: Any) -> Any:
    """Reads settings of its module."""
    return x * FACTOR + OPTIONS["bias"]


def relaxed(x: Any, steps: int) -> Any:
    """Stores slices in a loop."""
    y = x.copy()
    for _ in range(steps):
        before = y.copy()
        y[1:-1] = (before[2:] + before[:-2]) / 2
        y[0] = y[1]
        y[-1] = y[-2]
    return y
