"""Loops over slices whose bounds are elements of arrays, for random programs to call."""

from __future__ import annotations

from typing import Any

import numpy as np

import mlirml as ml


@ml.loops
def sums(x: Any, bounds: Any) -> Any:
    """The sums between the bounds, which are clamped to the vector as slices are."""
    out = np.zeros(3)
    for i in range(bounds.shape[0] - 1):
        if i < 3:
            out[i] = np.sum(x[bounds[i] : bounds[i + 1]])
    return out


@ml.loops
def picked(x: Any, bounds: Any, columns: Any) -> Any:
    """Products of slices with what such slices pick."""
    out = np.zeros(3)
    for i in range(bounds.shape[0] - 1):
        if i < 3:
            out[i] = x[bounds[i] : bounds[i + 1]] @ x[columns[bounds[i] : bounds[i + 1]]]
    return out
