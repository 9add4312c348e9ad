"""Python's `sum`, `max`, `min`, `any` and `all` of long arrays as reductions; of short ones they are unrolled."""

from __future__ import annotations

import builtins
import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from mlirml.core.sizes import is_size
from mlirml.frontend.arrays.array import Traced
from mlirml.frontend.frames import at_user_line
from mlirml.frontend.iteration_limits import MOST_COPIES

FOLDS = ("sum", "max", "min", "any", "all")


def folded(name: str, *args: Any) -> Any:
    """The result for an array of many rows; `NotImplemented` for anything else."""
    items = args[0] if args else None
    if not isinstance(items, Traced) or not items.shape:
        return NotImplemented
    if not is_size(items.shape[0]) and items.shape[0] <= MOST_COPIES:
        return NotImplemented
    with at_user_line():
        if name == "sum" and len(args) < 3:
            dtype = np.dtype(np.int64) if items.dtype.kind == "b" else items.dtype
            return (args[1] if len(args) == 2 else 0) + items.sum(axis=0, dtype=dtype)
        if items.ndim != 1 or len(args) != 1 or (name in ("max", "min") and items.dtype.kind == "c"):
            return NotImplemented
        if items.dtype.kind != "f" or name in ("any", "all"):
            return getattr(items, name)()
        first = items[0]  # comparisons with NaN are false: it is the result only if it is the first item
        found = getattr(np.where(np.isnan(items), first, items), name)()
        return np.where(np.isnan(first), first, found)[()]


def folding(name: str) -> Callable[..., Any]:
    """The function of Python's as a traced function sees it."""
    original = getattr(builtins, name)

    @functools.wraps(original)
    def function(*args: Any, **options: Any) -> Any:
        found = NotImplemented if options else folded(name, *args)
        return original(*args, **options) if found is NotImplemented else found

    return function
