"""`range` with bounds that are known only when the program runs, and `ml.parallel`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from mlirml.core.dataclass import dataclass
from mlirml.errors import DTypeError, ShapeError, UnsupportedSyntaxError
from mlirml.frontend.frames import at_user_line


@dataclass(frozen=True)
class TracedRange:
    """A `range` of which a bound is a number of the program. The step is known."""

    start: Any
    stop: Any
    step: int
    parallel: bool = False

    def __iter__(self) -> Iterator[Any]:
        with at_user_line():
            raise self._refused(
                "a range whose bounds are known only when the program runs is iterated outside of a `for` statement",
                "write a `for` loop that stores into an array",
            )

    def __len__(self) -> int:
        with at_user_line():
            raise self._refused(
                "the length of a range whose bounds are known only when the program runs", "compute it from the bounds"
            )

    def _refused(self, what: str, help_: str) -> UnsupportedSyntaxError:
        """The error for what needs the bounds, which become static where they are Python integers of the caller's."""
        error = UnsupportedSyntaxError(what, help=help_)
        sizes = [bound._sizes() for bound in (self.start, self.stop) if hasattr(bound, "_sizes")]
        if all(sizes):
            error.sizes, error.subject = frozenset().union(*sizes), "`range()`"
        return error


def traced_range(*bounds: Any) -> Any:
    """`range` for bounds of which one is traced."""
    from mlirml.frontend.tracing.array import Traced

    start, stop, step = (0, *bounds, 1) if len(bounds) == 1 else (*bounds, 1) if len(bounds) == 2 else bounds
    for bound in (start, stop, step):
        if isinstance(bound, Traced) and (bound.shape or bound.dtype.kind not in "iu"):
            raise DTypeError(
                f"range: a bound must be an integer, got {bound._describe()}", help="convert it with `int(...)`"
            )
        if isinstance(bound, float):
            raise DTypeError(f"range: a bound must be an integer, got {bound!r}", help="convert it with `int(...)`")
    if isinstance(step, Traced):
        return Items(TracedRange(0, -((start - stop) // step), 1), lambda number: start + number * step)
    if step == 0:
        raise ShapeError("range: the step must not be zero")
    return TracedRange(start, stop, int(step.__index__()))


@dataclass(frozen=True)
class Items:
    """Something to iterate over that gives an item for each number of a range."""

    numbers: Any
    item: Callable[[Any], Any]

    def __iter__(self) -> Iterator[Any]:
        return map(self.item, self.numbers)


class Parallel:
    """A range whose rounds do not depend on each other."""

    def __init__(self, rounds: range) -> None:
        self.range = rounds

    def __iter__(self) -> Iterator[int]:
        return iter(self.range)

    def __len__(self) -> int:
        return len(self.range)


def parallel(rounds: Iterable[int]) -> Any:
    """`for i in ml.parallel(range(n))`: the iterations may run at the same time, as none reads what another one stores.

    That is taken for granted, not checked. Outside of compiled code it is the range itself, in
    compiled code `UnsupportedSyntaxError` is raised for what is no range.

    >>> import numpy as np, mlirml as ml
    >>> def double(x):
    ...     for i in ml.parallel(range(len(x))):
    ...         x[i] = 2 * x[i]
    >>> double(x := np.array([1, 2, 3]))
    >>> x
    array([2, 4, 6])
    """
    tracing = sys.modules.get("mlirml.frontend.tracing.trace")
    if tracing is None or tracing.current_trace() is None:
        return rounds
    if isinstance(rounds, TracedRange):
        return TracedRange(rounds.start, rounds.stop, rounds.step, True)
    if isinstance(rounds, range):
        return Parallel(rounds)
    raise UnsupportedSyntaxError("`ml.parallel` takes a range", help="write `ml.parallel(range(n))`")


def numbered(rounds: Any) -> tuple[Any, Callable[[Any], Any] | None]:
    """Something to iterate over as a range, and the item for a number of it; None where that is the number itself."""
    from mlirml.frontend.tracing.array import Traced
    from mlirml.frontend.tracing.growing_list import GrowingList

    if isinstance(rounds, Items):
        return rounds.numbers, rounds.item
    if type(rounds) is GrowingList:
        return (range(len(rounds)), rounds.__getitem__) if rounds.rows is not None else (rounds.items(), None)
    from mlirml.frontend.tracing.indexing import (
        is_varying,  # with all records of operations: nothing for `import mlirml`
    )

    if is_varying(rounds):
        return traced_range(rounds.shape[0]), lambda number: rounds[number]
    if isinstance(rounds, Traced) and rounds.ndim:
        return range(len(rounds)), lambda number: rounds[number]
    return rounds, None


def _count(rounds: Any) -> Any:
    """The numbers of the items of something to iterate over; None for what only Python can iterate over."""
    numbers, _ = numbered(rounds)
    if isinstance(numbers, range):
        return range(len(numbers))
    if isinstance(numbers, TracedRange) and numbers.step == 1:
        return TracedRange(0, numbers.stop - numbers.start, 1)
    return None


def _item(rounds: Any, number: Any) -> Any:
    numbers, item = numbered(rounds)
    place = numbers.start + number * numbers.step
    return place if item is None else item(place)


def traced_enumerate(rounds: Any, start: Any = 0) -> Any:
    """`enumerate` of a range or an array of the program."""
    count = _count(rounds)
    if count is None:
        return enumerate(rounds, start)
    return Items(count, lambda number: (start + number, _item(rounds, number)))


def traced_zip(*parts: Any, strict: bool = False) -> Any:
    """`zip` of ranges and arrays of the program."""
    counts = [_count(part) for part in parts]
    if any(not isinstance(count, range) for count in counts):
        return zip(*parts, strict=strict)
    lengths = [len(count) for count in counts]
    if strict and len(set(lengths)) > 1:
        raise ShapeError(f"zip: parts of different lengths, {lengths}")
    return Items(range(min(lengths, default=0)), lambda number: tuple(_item(part, number) for part in parts))


def traced_reversed(rounds: Any) -> Any:
    """`reversed` of a range or an array of the program."""
    if isinstance(rounds, range):
        return rounds[::-1]
    count = _count(rounds)
    if isinstance(count, range):
        return Items(count[::-1], lambda number: _item(rounds, number))
    if isinstance(rounds, TracedRange) and rounds.step == 1:
        return TracedRange(rounds.stop - 1, rounds.start - 1, -1)
    return reversed(rounds)
