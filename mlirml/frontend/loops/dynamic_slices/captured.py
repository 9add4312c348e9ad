"""NumPy's functions of arrays of dynamic lengths whose code is captured with its loops and branches, as a user's is.

Their code is that of the composed operations (`mlirml/ops`), or of `written.py`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from mlirml.frontend.loops.dynamic_slices import written
from mlirml.frontend.loops.dynamic_slices.slices import DynamicSlice
from mlirml.frontend.namespace.numpy_namespace import retarget
from mlirml.frontend.tracing.trace import Trace
from mlirml.ops import BY_FUNCTION

_WRITTEN: dict[Any, Callable[..., Any]] = {
    getattr(np, name): getattr(written, name)
    for name in (
        "expand_dims", "squeeze", "atleast_1d", "atleast_2d", "moveaxis", "swapaxes", "broadcast_to", "take",
        "take_along_axis", "delete", "tile", "pad", "resize", "split", "array_split", "select", "choose", "partition",
        "argpartition", "array_equal", "allclose", "diagonal", "diag", "trace", "triu", "tril", "ix_",
        "convolve", "correlate", "histogram", "piecewise",
    )
}  # fmt: skip


def form_of(trace: Trace, function: Any) -> Callable[..., Any] | None:
    """The captured form of a function of NumPy; None if it has none."""
    code = _WRITTEN.get(function)
    if code is not None:
        return captured(trace, code)
    record = BY_FUNCTION.get(function)
    if record is None or not record.composed:
        return None
    return partial(captured(trace, record.build), trace.handlers.namespace(trace))


def captured(trace: Trace, code: Callable[..., Any]) -> Callable[..., Any]:
    """A function whose loops and branches are those of the program."""
    return retarget(code, trace, trace._loops_memo)


def by_rows(function: Callable[..., Any], of_vector: Callable[..., Any], code: Callable[..., Any], last: Any) -> Any:
    """`of_vector`, and for matrices the function of each of the vectors along an axis, which is `last` by default."""

    def call(x: DynamicSlice, axis: Any = last, *args: Any, **kwargs: Any) -> Any:
        if x.ndim > 1 and axis is None:
            return of_vector(np.ravel(x), axis, *args, **kwargs)
        if x.ndim != 2 or axis is None or args or any(kwargs.values()):
            return of_vector(x, axis, *args, **kwargs)
        dtype = np.asarray(function(np.asarray(x._sample), axis=0)).dtype
        return captured(x._trace, code)(function, x, axis, dtype)

    call.__signature__ = inspect.signature(of_vector)  # type: ignore[attr-defined]
    return call
