"""NumPy's functions of sets and of positions, whose results have lengths that depend on data."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mlirml.frontend.loops.dynamic_slices.compaction import argwhere, flatnonzero, nonzero

NAMED: dict[str, Callable[..., Any]] = {
    "nonzero": nonzero,
    "flatnonzero": flatnonzero,
    "argwhere": argwhere,
}
"""The functions by their names in NumPy; each takes the trace first."""
