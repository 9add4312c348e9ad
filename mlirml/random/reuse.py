"""Keys that a compiled function uses twice."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from mlirml.errors import KeyReuseWarning
from mlirml.frontend.arrays.array import Traced
from mlirml.frontend.frames import user_location
from mlirml.frontend.tracing.trace import Trace


def note_use(trace: Trace, key: Any) -> None:
    """Warn if the key has drawn numbers or was split before, where the code of both uses runs in one call."""
    if not isinstance(key, (Traced, np.ndarray)):
        return
    identity, b, place = _identity(key), trace.builder, user_location()
    before = trace.drawn.get(identity)
    if before is not None:
        region, line, first, _ = before
        if _encloses(region, b.region) and b.has_line(*line):
            if place is not None and first is not None:
                message = f"the key was used at {first.file}:{first.line} already, and gives the same numbers: split it"
                warnings.warn_explicit(message, KeyReuseWarning, place.file, place.line)
            return
    if b.region is not None:
        trace.drawn[identity] = b.region, b.last_line(), place, key


def _identity(key: Any) -> Any:
    known = key._known() if isinstance(key, Traced) else key
    return known.tobytes() if known is not None else (id(key._cell), key._cell.version, key._views)


def _encloses(outer: Any, inner: Any) -> bool:
    """True if a region is the other one, or one around it."""
    while inner is not None and inner is not outer:
        inner = inner.parent
    return inner is not None
