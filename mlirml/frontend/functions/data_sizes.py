"""NumPy's functions whose results have lengths that depend on data (`frontend/loops/dynamic_slices/compaction.py`)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from mlirml.frontend.tracing.trace import Trace

NAMES = ("nonzero", "flatnonzero", "argwhere")


def _of_data(name: str) -> Callable[..., Any]:
    function = getattr(np, name)

    def call(trace: Trace, *args: Any, **kwargs: Any) -> Any:
        if trace._foldable(args, kwargs):
            return trace._fold(function, args, kwargs)
        return trace.handlers.of_data(name)(trace, *args, **kwargs)

    return call


FUNCTIONS: dict[Any, Callable[..., Any]] = {getattr(np, name): _of_data(name) for name in NAMES}
