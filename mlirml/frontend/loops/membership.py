"""`item in items` where the item, or one of the items, is dynamic."""

from __future__ import annotations

from functools import reduce
from typing import Any

import numpy as np

from mlirml.frontend.arrays.array import Traced
from mlirml.frontend.arrays.growing_list import GrowingList
from mlirml.frontend.arrays.indexing import is_dynamic
from mlirml.frontend.arrays.list_parts import is_numeric_list
from mlirml.frontend.arrays.number_lists import is_number
from mlirml.frontend.frames import at_user_line
from mlirml.frontend.loops.ranges import TracedRange

_GATHERED = (list, tuple, set, frozenset, dict, GrowingList)


def contains(items: Any, item: Any) -> Any:
    """`item in items`: a number of the program where it depends on one, else Python's answer.

    NaN is in no container: the identity of an object, by which Python finds it, is not known to a program.
    """
    with at_user_line():
        if is_numeric_list(items) and _is_scalar(item):
            return (items.array() == item).any()
        if is_dynamic(items) or isinstance(items, Traced):
            return (items == item).any()
        if isinstance(item, Traced) and _is_scalar(item) and isinstance(items, (range, TracedRange)):
            return _in_range(items, item)
        if type(items) not in _GATHERED or not _is_scalar(item):
            return item in items
        each = [*items]
        if not each:
            return False
        if not any(isinstance(x, Traced) for x in [item, *each]) or not all(map(_is_scalar, each)):
            return item in items
        if not any(isinstance(x, Traced) for x in each):
            constants = np.asarray(each)
            return (constants == item).any() if constants.dtype.kind in "biufc" else item in items
        return reduce(np.logical_or, (one == item for one in each))


def _is_scalar(x: Any) -> bool:
    """True for a number, or an array without dimensions."""
    return is_number(x) or (isinstance(x, Traced) and not x.ndim)


def _in_range(items: Any, item: Any) -> Any:
    """True where a number is in a range."""
    first, end = (items.start, items.stop) if items.step > 0 else (items.stop + 1, items.start + 1)
    found = np.logical_and(item >= first, item < end)
    return found if abs(items.step) == 1 else np.logical_and(found, (item - items.start) % abs(items.step) == 0)
