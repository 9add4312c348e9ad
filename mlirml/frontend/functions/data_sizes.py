"""NumPy's functions whose results have lengths that depend on data (`frontend/loops/dynamic_slices/compaction.py`)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from mlirml.frontend.arrays.indexing import DYNAMIC
from mlirml.frontend.tracing.trace import Trace
from mlirml.ops import BY_FUNCTION

NAMES = (
    "nonzero", "flatnonzero", "argwhere", "unique", "setdiff1d", "intersect1d", "union1d", "compress", "extract",
    "trim_zeros", "setxor1d", "repeat", "histogram_bin_edges",
)  # fmt: skip


def _of_data(name: str) -> Callable[..., Any]:
    function = getattr(np, name)

    def call(trace: Trace, *args: Any, **kwargs: Any) -> Any:
        if trace._foldable(args, kwargs):
            return trace._fold(function, args, kwargs)
        if name in _STATIC and _is_known(trace, *_STATIC[name], args, kwargs):
            return trace._apply(BY_FUNCTION[function], args, dict(kwargs))
        return trace.handlers.of_data(name)(trace, *args, **kwargs)

    return call


_STATIC = {"compress": (0, "condition"), "repeat": (1, "repeats"), "histogram_bin_edges": (1, "bins")}
"""The functions of static size where an argument, by its position and name, is a number or known when tracing."""


def _is_known(trace: Trace, position: int, name: str, args: Any, kwargs: Any) -> bool:
    condition = args[position] if len(args) > position else kwargs.get(name)
    if isinstance(condition, str):  # an estimator of a number
        return False
    known = getattr(condition, "_known", None)
    if np.ndim(condition) == 0 and (known is None or name != "repeats" or condition._sizes()):
        return True  # an integer of the call is one that the program is for
    return known() is not None if known is not None else not hasattr(type(condition), DYNAMIC)


FUNCTIONS: dict[Any, Callable[..., Any]] = {getattr(np, name): _of_data(name) for name in NAMES}
