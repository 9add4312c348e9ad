"""Iterators of a function: their positions are Python's while it is traced, and may not depend on data.

signs = itertools.cycle([1, -1])
for v in x:                         unrolled, as each iteration takes another item
    total += v * next(signs)
if x[0] > 0:
    first = next(signs)             refused: how many items were taken is known only at run time
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from mlirml.errors import CaptureError, UnsupportedSyntaxError
from mlirml.frontend.arrays.array import Traced
from mlirml.frontend.frames import at_user_line
from mlirml.frontend.loops.ranges import Items
from mlirml.ir.text.builder import Region

if TYPE_CHECKING:
    from mlirml.frontend.tracing.trace import Trace

_HELP = "make a list of its items, `items = list(...)`, and index that"


class Iterators:
    """The iterators that the functions of a trace make, with the regions in which they are made."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._made: dict[int, tuple[Any, Region]] = {}
        self._spent: dict[int, Any] = {}  # those whose positions depend on data, or of which no item is left

    def made(self, x: Any) -> Any:
        """A new iterator."""
        if is_iterator(x):
            self._made[id(x)] = x, self._trace.builder.region
        return x

    def check(self, x: Any, conditional: bool = False) -> None:
        """Refuse to take items of an iterator as often as a loop iterates, or, if that is `conditional`, in a branch.

        A loop with a constant trip count is unrolled then.
        """
        if not is_iterator(x):
            return
        with at_user_line():
            if id(x) in self._spent:
                raise UnsupportedSyntaxError(
                    "the items that are left in an iterator after a loop over it, or a branch", help=_HELP
                )
            regions = [*self._regions(x)]
            loops = frozenset(region.construct for region in regions if region.repeats)
            if loops or (conditional and regions):
                where = "a loop" if loops else "a branch on data"
                error: CaptureError = UnsupportedSyntaxError(
                    f"an iterator from outside of {where} is advanced in it", help=_HELP
                )
                error.roots = loops
                raise error

    def spend(self, x: Any, is_complete: bool) -> None:
        """Note a loop over an iterator, which `is_complete` if it certainly takes all of its items."""
        if isinstance(x, Items) or (is_iterator(x) and (not is_complete or any(True for _ in self._regions(x)))):
            self._spent[id(x)] = x

    def is_spent(self, x: Any) -> bool:
        """True for an iterator that a loop in a branch was over, which nothing may take items of any more."""
        return id(x) in self._spent

    def _regions(self, x: Any) -> Iterator[Region]:
        """The regions around the code that is traced, up to that in which an iterator was made."""
        _, first = self._made.get(id(x), (None, None))
        region = None if first is None else self._trace.builder.region
        while region is not None and region is not first:
            yield region
            region = region.parent


def is_iterator(x: Any) -> bool:
    """True for an iterator of Python's, and for what `enumerate`, `zip` and the like are in the program."""
    return isinstance(x, (Items, Iterator)) and not isinstance(x, (Traced, np.generic))


def makes_iterators(callee: Any) -> bool:
    """True for `iter` and the functions of `itertools`."""
    return callee in (iter, filter) or (isinstance(callee, type) and callee.__module__ == itertools.__name__)


def following(trace: Trace, x: Any, *default: Any) -> Any:
    """`next(x)`."""
    trace.hooks.iterators.check(x, conditional=True)
    if isinstance(x, Items):
        raise UnsupportedSyntaxError("`next` of an `enumerate`, a `zip` or the like", help=_HELP)
    return next(x, *default)
