"""Calls of the functions of `heapq` and `bisect` for lists and arrays of the program."""

from __future__ import annotations

import bisect
import heapq
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from mlirml.core.tree import flatten
from mlirml.errors import UnsupportedSyntaxError
from mlirml.frontend.arrays.array import Traced
from mlirml.frontend.arrays.growing_list import GrowingList
from mlirml.frontend.arrays.indexing import is_dynamic
from mlirml.frontend.frames import at_user_line
from mlirml.frontend.loops import ordered_lists
from mlirml.frontend.loops.orders import is_before
from mlirml.frontend.namespace.numpy_namespace import retarget
from mlirml.frontend.tracing.trace import Trace

_WRITTEN: dict[Any, Callable[..., Any]] = {
    getattr(module, name): getattr(ordered_lists, name)
    for module, names in (
        (heapq, ("heappush", "heappop", "heapreplace", "heappushpop", "heapify")),
        (bisect, ("bisect_right", "bisect_left", "insort_right", "insort_left")),
    )
    for name in names
}


def written_in_python(trace: Trace, callee: Any) -> Callable[..., Any] | None:
    """The replacement of a function of `heapq` or `bisect`; None for anything else."""
    if getattr(callee, "__module__", None) not in ("heapq", "_heapq", "bisect", "_bisect"):
        return None

    def call(*args: Any, **kwargs: Any) -> Any:
        leaves = [leaf for x in (*args, *kwargs.values()) for leaf in ([x] if _is_own(x) else flatten(x)[0])]
        if not any(map(_is_own, leaves)):
            return callee(*args, **kwargs)
        if callee in (heapq.nsmallest, heapq.nlargest):
            return _first(trace, callee is heapq.nlargest, *args, **kwargs)
        written = _WRITTEN.get(callee)
        if written is None or kwargs.keys() - {"lo", "hi"}:
            with at_user_line():
                raise UnsupportedSyntaxError(
                    f"`{callee.__name__}` of items that the data decide" + (" with a key" if "key" in kwargs else ""),
                    help="keep tuples whose first item is the key, or write it as a loop",
                )
        heap = args[0]
        if not callee.__name__.startswith("bisect") and getattr(heap, "room", None) is None:
            with at_user_line():
                error = UnsupportedSyntaxError(
                    f"`{callee.__name__}` of a list that has no room for any number of items",
                    help="start with an empty list, `[]`, and add the items one by one",
                )
                error.lists = heap.sites() if type(heap) is GrowingList else frozenset()
                raise error
        function = retarget(written, trace, trace._loops_memo)
        return function(partial(is_before, trace, np.less), *args, **kwargs)

    return call


def _is_own(x: Any) -> bool:
    """True for a number, array or list of the program."""
    return isinstance(x, Traced) or is_dynamic(x) or type(x) is GrowingList


def _first(trace: Trace, largest: bool, n: Any, iterable: Any, key: Any = None) -> Any:
    """The first of the sorted items, which `heapq.nsmallest` and `nlargest` are defined as."""
    return trace.hooks.function(sorted)(iterable, key=key, reverse=largest)[:n]
