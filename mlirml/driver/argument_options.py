"""The name and the definition of a function in errors, and the check of what is passed as a static argument."""

from __future__ import annotations

from typing import Any

import numpy as np

from mlirml.errors import ArgumentError


def definition_of(fn: Any) -> Any:
    """The line of a function's definition."""
    from mlirml.frontend.tracing.trace import definition

    return definition(fn)


def check_static(value: Any, path: str, fn: Any) -> None:
    """Refuse a static argument of a function that no signature can hold."""
    from mlirml.frontend.spec import refuse_random

    refuse_random(value, path, definition_of(fn))
    try:
        hash(value)
    except TypeError:
        array = isinstance(value, np.ndarray)
        raise ArgumentError(
            f"static argument `{path}` is a {type(value).__name__}, which is not hashable",
            location=definition_of(fn),
            help="arrays cannot be static" if array else "pass a tuple of what it holds",
        ) from None


def name_of(fn: Any) -> str:
    """The name of a function, looked for through partial applications."""
    from functools import partial

    while isinstance(fn, partial):
        fn = fn.func
    return str(getattr(fn, "__name__", type(fn).__name__))
