"""`loops`: a decorator for loop functions that array code may call."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

from mlirml.core.tree import flatten
from mlirml.errors import ArgumentError
from mlirml.frontend.current import current_trace
from mlirml.frontend.source.choose import MARK

_Function = TypeVar("_Function", bound=Callable[..., Any])


def loops(function: _Function) -> _Function:
    """Mark a function as one of loops over elements, so that array code that is compiled may call it.

    Its loops stay loops, and arrays that it stores into are changed in place, as they are when it runs uncompiled.
    `compile` takes it with its loops, whatever it looks like.

    Raises `ArgumentError` for what is no function.

    >>> import numpy as np, mlirml as ml
    >>> @ml.loops
    ... def running_sum(x):
    ...     for i in range(1, len(x)):
    ...         x[i] += x[i - 1]
    >>> running_sum(x := np.array([1, 2, 3]))
    >>> x
    array([1, 3, 6])
    """
    if not callable(function):
        raise ArgumentError(f"loops: expected a function, got {function!r}")

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        trace = current_trace()
        if trace is None or not _is_traced((args, kwargs)):
            return function(*args, **kwargs)
        return trace.call_loops(function, args, kwargs)

    setattr(call, MARK, function)
    return call  # type: ignore[return-value]


def _is_traced(arguments: Any) -> bool:
    from mlirml.frontend.arrays.array import Traced

    return any(isinstance(leaf, Traced) for leaf in flatten(arguments)[0])
