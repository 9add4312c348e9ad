"""NumPy's functions whose results have lengths that depend on data (`frontend/loops/dynamic_slices/compaction.py`)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from mlirml.core.tree import flatten
from mlirml.frontend.arrays.array import Traced
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


_COUNTED = {"delete": (1, "obj"), "tile": (1, "reps"), "pad": (1, "pad_width"), "resize": (1, "new_shape")}
"""The functions of static size unless the argument is a number or mask of the program."""


def _of_counts(name: str) -> Callable[..., Any]:
    function, (position, keyword) = getattr(np, name), _COUNTED[name]

    def call(trace: Trace, *args: Any, **kwargs: Any) -> Any:
        count = args[position] if len(args) > position else kwargs.get(keyword)
        if any(_is_unknown(trace, x) for x in flatten(count)[0]):
            return trace.handlers.of_data(name)(trace, *args, **kwargs)
        if trace._foldable(args, kwargs):
            return trace._fold(function, args, kwargs)
        return trace._apply(BY_FUNCTION[function], args, dict(kwargs))

    return call


def _is_unknown(trace: Trace, x: Any) -> bool:
    """True for a number or array of the program; a number of a loop is known where the loop is unrolled."""
    if not isinstance(x, Traced) or x._known() is not None or x._sizes():
        return False
    return x.ndim > 0 or not (trace.builder.direct and trace.integers.roots(x))


FUNCTIONS: dict[Any, Callable[..., Any]] = {getattr(np, name): _of_data(name) for name in NAMES} | {
    getattr(np, name): _of_counts(name) for name in _COUNTED
}
