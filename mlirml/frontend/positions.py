"""Positions of Python's iterators: what changes in them when an item is taken."""

from __future__ import annotations

import operator
import types
import warnings
from collections.abc import Iterator
from typing import Any

_DEEPEST = 8


def position(iterator: Iterator[Any], depth: int = _DEEPEST) -> Any:
    """A value that is another one after items were taken; None for iterators that do not show it.

    It is made of the numbers in `__reduce__`, which the iterators of Python and of `itertools` have.
    """
    if isinstance(iterator, types.GeneratorType):
        frame = iterator.gi_frame
        return frame and (frame.f_lasti, tuple(map(id, frame.f_locals.values())))
    try:
        with warnings.catch_warnings():  # CPython 3.12 deprecates it in `itertools`
            warnings.simplefilter("ignore", DeprecationWarning)
            return _numbers(iterator.__reduce__(), depth)
    except TypeError:
        return operator.length_hint(iterator, -1)


def _numbers(part: Any, depth: int) -> Any:
    if isinstance(part, tuple):
        return tuple(_numbers(inner, depth) for inner in part)
    if isinstance(part, Iterator):
        return position(part, depth - 1) if depth else None
    if isinstance(part, list):  # the remaining items of an iterator over a dict or set
        return len(part)
    return part if type(part) in (int, bool) else None
