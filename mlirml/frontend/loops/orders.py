"""Python's `max` and `min` with a key, and of tuples, and `sorted` with a key, for dynamic items.

best = max(points, key=lambda p: p[1])      best = points[0]; an scf.for that carries it and its key
xs = sorted(xs, key=abs)                    order = np.argsort(keys); xs = xs[order]
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from mlirml.core.tree import flatten
from mlirml.errors import UnsupportedSyntaxError
from mlirml.frontend.arrays.array import Traced
from mlirml.frontend.arrays.growing_list import GrowingList
from mlirml.frontend.arrays.list_parts import Rows, is_mutable, is_numeric_list, note_copied, settle_items, tree_of
from mlirml.frontend.iteration_limits import MOST_COPIES
from mlirml.frontend.loops.ranges import Items, TracedRange, numbered
from mlirml.frontend.loops.variables import is_number

if TYPE_CHECKING:
    from mlirml.frontend.tracing.trace import Trace

_OF_ITEMS = ("Eq", "NotEq", "Lt", "LtE", "Gt", "GtE")
_FEW = 8  # items that are compared without a loop


def is_before(trace: Trace, comparison: np.ufunc, one: Any, other: Any) -> Any:
    """The truth of `one > other`, or `one < other`; of tuples and lists that of their first items that differ."""
    if not (isinstance(one, (tuple, list)) and isinstance(other, (tuple, list))):
        if any(isinstance(x, Traced) for x in (one, other)):
            return trace.call_operator(comparison, (one, other))
        return one > other if comparison is np.greater else one < other
    if not one or not other:
        return len(one) > len(other) if comparison is np.greater else len(one) < len(other)
    first = is_before(trace, comparison, one[0], other[0])
    hooks = trace.hooks
    equal = hooks.compare(("Eq",), one[0], lambda: other[0])
    if all(map(is_number, [*one, *other])):  # they are compared at no risk, and without branches
        later = is_before(trace, comparison, one[1:], other[1:])
        later = hooks.and_(equal, lambda: later)
        return hooks.or_(first, lambda: later)
    return hooks.or_(first, lambda: hooks.and_(equal, lambda: is_before(trace, comparison, one[1:], other[1:])))


def have_items_of_program(name: str, one: Any, other: Any) -> bool:
    """True for a comparison of two tuples or two lists, of which an item is a value of the program."""
    if name not in _OF_ITEMS or not isinstance(one, (tuple, list)) or not isinstance(other, (tuple, list)):
        return False
    if isinstance(one, tuple) is not isinstance(other, tuple) or all(map(is_numeric_list, (one, other))):
        return False
    if not all(isinstance(x, tuple) or _has_few_items(x) for x in (one, other)):
        return False
    return any(isinstance(x, Traced) for x in flatten([[*one], [*other]])[0])


def _has_few_items(items: Any) -> bool:
    """True for a list that is not rows of arrays, or of few rows."""
    rows = [part for part in getattr(items, "parts", ()) if isinstance(part, Rows)]
    return all(part.counter is None and part.writer is None and part.length <= MOST_COPIES for part in rows)


def compared(trace: Trace, name: str, one: Any, other: Any) -> Any:
    """`one == other` and the like of tuples or lists; their first items that differ decide.

    NaN equals nothing: the identity of an object, by which Python compares items first, is not known to a program.
    """
    hooks = trace.hooks
    one, other = ([*x] if isinstance(x, GrowingList) else x for x in (one, other))
    if name in ("Lt", "Gt"):
        return is_before(trace, np.less if name == "Lt" else np.greater, one, other)
    if name in ("LtE", "GtE"):
        first = compared(trace, name[:2], one, other)
        return hooks.or_(first, lambda: hooks.compare_two("Eq", one, other))
    if name == "NotEq":
        return hooks.not_(hooks.compare_two("Eq", one, other))
    if len(one) != len(other) or not one:
        return len(one) == len(other)
    first = hooks.compare_two("Eq", one[0], other[0])
    return hooks.and_(first, lambda: hooks.compare_two("Eq", one[1:], other[1:]))


def extreme_by_key(trace: Trace, comparison: np.ufunc, iterable: Any, key: Callable[..., Any] | None) -> Any:
    """The first item with the greatest or least key."""
    call = _same if key is None else trace.hooks.function(key)
    numbers, item = numbered(iterable)
    read: Callable[[Any], Any] = _same

    def step(candidate: Any, best: tuple[Any, Any]) -> tuple[Any, Any]:
        mine = call(read(candidate))
        better = is_before(trace, comparison, mine, best[0])
        return trace.hooks.select(better, lambda: (mine, candidate), lambda: best)

    if isinstance(numbers, TracedRange) or (isinstance(numbers, range) and len(numbers) > _FEW):
        first = numbers[0] if isinstance(numbers, range) else numbers.start
        if isinstance(numbers, TracedRange):
            _check_some(trace, numbers, comparison)
        begin = first if item is None else item(first)
        rest: Any = numbers[1:] if isinstance(numbers, range) else replace(numbers, start=first + numbers.step)
        if item is not None and is_mutable(begin):  # the result is an item itself: a loop would carry a copy
            read = item
        elif item is not None:
            first, rest = begin, Items(rest, item)
        return read(trace.hooks.repeated(rest, step, (call(begin), first))[1])
    items = [*iterable]
    if not items:
        return max(items) if comparison is np.greater else min(items)  # with Python's own error
    best = (call(items[0]), items[0])
    for one in items[1:]:
        best = step(one, best)
    if len(items) > 1:
        _note_copies(trace, [*items, best[1]])
    return best[1]


def sorted_by_key(trace: Trace, iterable: Any, key: Callable[..., Any] | None, reverse: bool) -> Any:
    """A new list of the items in the order of their keys; items whose keys are equal keep their order."""
    if isinstance(iterable, Iterator):  # which yields its items once
        iterable = [*iterable]
    if isinstance(numbered(iterable)[0], TracedRange):
        raise UnsupportedSyntaxError(
            "`sorted` with a key, or of tuples, of as many items as the data say",
            help="keep the keys in a list of numbers, and sort that",
        )
    call = _same if key is None else trace.hooks.function(key)

    def key_of(item: Any) -> Any:
        return call(item)

    keys = trace.hooks.listed(iterable, key_of)
    items = iterable if type(iterable) is GrowingList else trace.hooks.listed(iterable, _same)
    if not any(isinstance(leaf, Traced) for leaf in _leaves_of(keys)):
        known = [one.items() if type(one) is GrowingList else one for one in keys]
        order = sorted(range(len(known)), key=known.__getitem__, reverse=reverse)
        return [items[i] for i in order]
    if type(items) is GrowingList and items.rows is not None and is_mutable(items[0]):
        raise UnsupportedSyntaxError(
            "`sorted` with a key, or of lists, whose order the data decide, of a list that is rows of an array",
            help="sort tuples, `sorted(map(tuple, rows))`, or positions, `np.argsort(keys)`",
        )
    columns, _ = _columns_of(trace, keys, "a key")
    if reverse:
        columns = [column[::-1] for column in columns]
    positions: Any = np.argsort(columns[0], kind="stable") if len(columns) == 1 else np.lexsort(tuple(columns[::-1]))
    if reverse:
        positions = (len(keys) - 1 - positions)[::-1]
    if type(items) is GrowingList and items.rows is not None:
        rows = items.rows
        return GrowingList(trace, [replace(rows, columns=tuple(column[positions] for column in rows.columns))])
    parts, treedef = _columns_of(trace, items, "an item")
    parts = [part[positions] for part in parts]
    found = [treedef.unflatten([part[i] for part in parts]) for i in range(len(items))]
    _note_copies(trace, [*items, *found])
    return found


def _note_copies(trace: Trace, items: list[Any]) -> None:
    """Refuse a later change of items some of which are copies of others."""
    for one in items:
        note_copied(trace, one, *tree_of(one), appended=False)


def _leaves_of(items: Any) -> list[Any]:
    """The leaves of all items, or the arrays that have them."""
    if type(items) is GrowingList:
        settle_items(items)
        return items.tree()[0]
    return flatten([*items])[0]


def _columns_of(trace: Trace, items: Any, what: str) -> tuple[list[Any], Any]:
    """The leaves of the items, each as an array, and their structure."""
    if type(items) is GrowingList and items.rows is not None:
        settle_items(items)
        return items.rows.arrays(), items.rows.growth.treedef
    trees = [flatten(item) for item in items]
    if any(treedef != trees[0][1] for _, treedef in trees):
        raise UnsupportedSyntaxError(f"{what} of `sorted` has another structure than others", help="sort numbers")
    return [trace.array([*leaves]) for leaves in zip(*(leaves for leaves, _ in trees))], trees[0][1]


def _same(item: Any) -> Any:
    return item


def _check_some(trace: Trace, numbers: TracedRange, comparison: np.ufunc) -> None:
    """Let the call fail if there is no item."""
    name = "max" if comparison is np.greater else "min"
    some = numbers.start < numbers.stop if numbers.step > 0 else numbers.start > numbers.stop
    trace.hooks.if_(
        some,
        _nothing,
        lambda: trace.hooks.raising(ValueError(f"{name}() arg is an empty sequence")),
        (),
        (),
        (),
        (),
        (),
    )


def _nothing() -> None:
    return None
