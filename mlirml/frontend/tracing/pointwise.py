"""A decorator of library functions of which each element of the result depends on one element of each argument."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar, cast

import numpy as np

from mlirml.frontend.arrays.array import Traced
from mlirml.frontend.current import current_trace
from mlirml.frontend.tracing.trace import Trace
from mlirml.ir.text.builder import Body
from mlirml.ir.text.dtypes import common_shape
from mlirml.ir.text.pointwise import NotPointwise, Pointwise

F = TypeVar("F", bound=Callable[..., Any])


def pointwise(function: F) -> F:
    """The function, which traces write as one operation, but for what it computes of smaller arrays.

    It returns one array, and is made of elementwise operations. In derivatives it is written operation by operation, as
    functions that it calls may have rules.
    """

    @functools.wraps(function)
    def called(*args: Any) -> Any:
        trace = current_trace()
        if trace is None or trace.derivatives or trace.builder.pointwise is not None:
            return function(*args)
        if not any(isinstance(x, Traced) for x in args):
            return function(*args)
        shape = common_shape(*map(np.shape, args))
        if trace.builder.direct and not shape:
            return function(*args)
        result = _written(trace, Pointwise(trace.builder, Body(), shape), function, args)
        return function(*args) if result is None else result

    return cast(F, called)


def _written(trace: Trace, body: Pointwise, function: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    """The result; None where the function is not pointwise."""
    trace.builder.pointwise = body
    try:
        found = function(*args)
        value = found._read() if isinstance(found, Traced) else None
    except NotPointwise:
        return None
    finally:
        trace.builder.pointwise = None
    return trace.wrap(body.result(value)) if value is not None and body.has(value) else found
