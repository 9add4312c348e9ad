"""The calls that a transform makes, during tracing, of the function that it is given."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mlirml.frontend.namespace.numpy_namespace import Overlay, retarget
from mlirml.frontend.source.choose import MARK, TRACED_ONLY, wants_loops
from mlirml.frontend.tracing.trace import Trace


def callee_in_trace(function: Callable[..., Any], trace: Trace) -> Callable[..., Any]:
    """The callable by which traced code calls a function: with its loops kept, if `compile` would keep them."""
    defined_here = isinstance(getattr(function, "__globals__", None), Overlay)
    if defined_here or hasattr(function, MARK) or TRACED_ONLY.get():
        return retarget(function, trace)
    if not trace.builder.direct and not wants_loops(function, "auto"):
        return retarget(function, trace)
    return lambda *args, **kwargs: trace.call_loops(function, args, kwargs)
