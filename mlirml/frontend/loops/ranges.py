"""`range` with dynamic bounds, and `ml.parallel`."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from mlirml.core.dataclass import dataclass
from mlirml.core.sizes import Size, is_size
from mlirml.errors import DTypeError, ShapeError, UnsupportedSyntaxError
from mlirml.frontend.current import current_trace
from mlirml.frontend.frames import at_user_line
from mlirml.frontend.iteration_limits import MOST_COPIES

if TYPE_CHECKING:
    from mlirml.frontend.tracing.trace import Trace


ENDLESS = 1 << 62
"""The trip count of a loop over `itertools.count()`."""


@dataclass(frozen=True)
class TracedRange:
    """A `range` with a dynamic bound. The step is constant."""

    start: Any
    stop: Any
    step: int
    parallel: bool = False

    def __iter__(self) -> Iterator[Any]:
        with at_user_line():
            raise self._refused(
                "a range whose bounds are known only at run time is iterated outside of a `for` statement",
                "write a `for` loop that stores into an array",
            )

    def __len__(self) -> int:
        with at_user_line():
            raise self._refused(
                "the length of a range whose bounds are known only at run time", "compute it from the bounds"
            )

    def _refused(self, what: str, help_: str) -> UnsupportedSyntaxError:
        """The error for operations that need the bounds, which become static if they are Python integers of the
        caller's.
        """
        error = UnsupportedSyntaxError(what, help=help_)
        sizes = [bound._sizes() for bound in (self.start, self.stop) if hasattr(bound, "_sizes")]
        if all(sizes):
            error.sizes, error.subject = frozenset().union(*sizes), "`range()`"
        return error


def traced_range(*bounds: Any) -> Any:
    """`range` for traced bounds."""
    from mlirml.frontend.arrays.array import Traced

    start, stop, step = (0, *bounds, 1) if len(bounds) == 1 else (*bounds, 1) if len(bounds) == 2 else bounds
    start, stop = (_number(bound) for bound in (start, stop))
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


def _number(bound: Any) -> Any:
    """A dynamic size as a number of the program."""
    trace = current_trace()
    return trace.size_number(bound) if type(bound) is Size and trace is not None else bound


@dataclass(frozen=True)
class Items:
    """An iterable with an item for each number of a range, of which some are those of the iterables `sources`."""

    numbers: Any
    item: Callable[[Any], Any]
    sources: tuple[Any, ...] = ()

    def __iter__(self) -> Iterator[Any]:
        return map(self.item, self.numbers)

    def __len__(self) -> int:
        return len(self.numbers)


class Parallel:
    """A range whose iterations do not depend on each other."""

    def __init__(self, iterable: range) -> None:
        self.range = iterable

    def __iter__(self) -> Iterator[int]:
        return iter(self.range)

    def __len__(self) -> int:
        return len(self.range)


def parallel(iterable: Iterable[int]) -> Any:
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
    if current_trace() is None:
        return iterable
    if isinstance(iterable, TracedRange):
        return TracedRange(iterable.start, iterable.stop, iterable.step, True)
    if isinstance(iterable, range):
        return Parallel(iterable)
    raise UnsupportedSyntaxError("`ml.parallel` takes a range", help="write `ml.parallel(range(n))`")


def numbered(iterable: Any) -> tuple[Any, Callable[[Any], Any] | None]:
    """An iterable as a range, and the function from a number of it to the item; None if that is the number itself."""
    from mlirml.frontend.arrays.array import Traced
    from mlirml.frontend.arrays.growing_list import GrowingList
    from mlirml.frontend.arrays.list_parts import settle_items
    from mlirml.frontend.arrays.number_lists import become_rows, element_at, numbers_in

    if isinstance(iterable, Items):
        return iterable.numbers, iterable.item
    if type(iterable) is itertools.count:
        start, step = (*iterable.__reduce__()[1], 1)[:2]
        return range(ENDLESS), lambda number: start + number * step
    if type(iterable) in (list, tuple) and len(iterable) > MOST_COPIES and numbers_in(iterable) is not None:
        trace = current_trace()
        assert trace is not None
        return range(len(iterable)), lambda number: element_at(trace, iterable, number)
    if type(iterable) is GrowingList and iterable.rows is not None:
        settle_items(iterable)
    if type(iterable) is GrowingList and iterable.rows is not None and iterable.rows.counter is not None:
        return traced_range(iterable.rows.length), iterable.item_of_rows
    if type(iterable) is GrowingList:
        if len(iterable) > MOST_COPIES and iterable.rows is None and numbers_in(iterable.parts) is not None:
            become_rows(iterable)
        return (iterable, None) if iterable.rows is None else (range(len(iterable)), iterable.__getitem__)
    from mlirml.frontend.arrays.indexing import (
        is_dynamic,  # would import all op records, which `import mlirml` need not
    )

    if is_dynamic(iterable):
        return traced_range(iterable.shape[0]), lambda number: iterable[number]
    if isinstance(iterable, Traced) and iterable.ndim:
        if is_size(iterable.shape[0]):
            return traced_range(iterable.shape[0]), lambda number: iterable[number]
        return range(len(iterable)), lambda number: iterable[number]
    return iterable, None


class ConstantRows:
    """The rows of an array from outside of the program, by number."""

    def __init__(self, array: Any) -> None:
        trace = current_trace()
        assert trace is not None
        self.array, self._rows = array, trace.array(array, copy=False)

    def __call__(self, number: Any) -> Any:
        return self._rows[number]


def is_constant_array(x: Any) -> bool:
    """True for an array of numbers from outside of the program."""
    from mlirml.frontend.state.concrete_arrays import Watched

    return type(x) in (np.ndarray, Watched) and x.ndim > 0 and x.size > 0 and x.dtype.char in "?bhilqBHILQefdFD"


def lists_in(iterable: Any) -> list[Any]:
    """The lists of the front end that an iteration goes through."""
    from mlirml.frontend.arrays.growing_list import GrowingList

    if isinstance(iterable, Items):
        return [one for source in iterable.sources for one in lists_in(source)]
    return [iterable] if type(iterable) is GrowingList else []


def count_of(iterable: Any) -> Any:
    """The range of an iterable's items; None for an iterable that only Python can iterate over."""
    numbers, _ = numbered(iterable)
    if isinstance(numbers, range):
        return range(len(numbers))
    if isinstance(numbers, TracedRange) and numbers.step == 1:
        return TracedRange(0, numbers.stop - numbers.start, 1)
    return None


def item_of(iterable: Any, number: Any) -> Any:
    """The item of an iterable for a number of its `count_of`."""
    numbers, item = numbered(iterable)
    index = numbers.start + number * numbers.step
    return index if item is None else item(index)


def traced_enumerate(iterable: Any, start: Any = 0) -> Any:
    """`enumerate` of a range or a traced array."""
    count = count_of(iterable)
    if count is None:
        return enumerate(iterable, start)
    return Items(count, lambda number: (start + number, item_of(iterable, number)), (iterable,))


def traced_zip(*parts: Any, strict: bool = False) -> Any:
    """`zip` of ranges and traced arrays."""
    counts = [count_of(part) for part in parts]
    static = [len(count) for count in counts if isinstance(count, range)]
    dynamic = [count.stop for count in counts if isinstance(count, TracedRange)]
    if len(static) + len(dynamic) < len(parts) or (strict and dynamic):
        return zip(*parts, strict=strict)
    if strict and len(set(static)) > 1:
        raise ShapeError(f"zip: parts of different lengths, {static}")
    numbers: Any = range(min(static, default=0))
    if dynamic:
        trace = current_trace()
        assert trace is not None
        shortest = [min(static), *dynamic] if static else dynamic
        numbers = traced_range(trace.hooks.function(min)(shortest))
    return Items(numbers, lambda number: tuple(item_of(part, number) for part in parts), parts)


def traced_product(*parts: Any, repeat: int = 1) -> Any:
    """`itertools.product` of ranges, lists and traced arrays: one range, whose numbers are taken apart."""
    counts = [count_of(part) for part in parts]
    if any(count is None for count in counts):
        return itertools.product(*parts, repeat=repeat)
    parts, sizes = parts * repeat, [len(n) if isinstance(n, range) else n.stop for n in counts] * repeat

    def item(number: Any) -> tuple[Any, ...]:
        found: list[Any] = []
        for part, size in zip(parts[::-1], sizes[::-1]):
            found.append(item_of(part, number % size if len(found) < len(parts) - 1 else number))
            number = number // size
        return tuple(found[::-1])

    count = math.prod(sizes)
    return Items(range(count) if type(count) is int else traced_range(count), item)


CHOICES: dict[Any, Callable[[int, int], int]] = {
    itertools.combinations: math.comb,
    itertools.permutations: math.perm,
    itertools.combinations_with_replacement: lambda n, r: math.comb(max(n + r - 1, 0), r),
}
_MOST_POSITIONS = 1 << 23


def traced_choices(trace: Trace, function: Any, items: Any, r: Any = None) -> Any:
    """`itertools.combinations` and its like: a loop over a table of positions, if there are many."""
    if isinstance(items, Iterator):
        items = list(items)
    n = len(items)
    size = n if r is None else r.__index__()
    count = CHOICES[function](n, size)
    if count <= MOST_COPIES:
        return function(items, size)
    if count * size > _MOST_POSITIONS:
        raise UnsupportedSyntaxError(
            f"`itertools.{function.__name__}` of {n} items, of which there are {count:,}",
            help="write loops over the positions",
        )
    positions = itertools.chain.from_iterable(function(range(n), size))
    table = trace.known(np.fromiter(positions, np.min_scalar_type(n), count * size).reshape(count, size))

    def pick(position: Any) -> Any:
        position = trace.hooks.function(int)(position)
        return item_of(items, position) if isinstance(items, (Items, range)) else trace.hooks.item(items, position)

    def item(number: Any) -> tuple[Any, ...]:
        return tuple(pick(table[number, k]) for k in range(size))

    return Items(range(count), item)


def traced_pairwise(iterable: Any) -> Any:
    """`itertools.pairwise` of a range, a list or a traced array."""
    count = count_of(iterable)
    if count is None:
        return itertools.pairwise(iterable)
    numbers = count[1:] if isinstance(count, range) else traced_range(1, count.stop)
    return Items(numbers, lambda number: (item_of(iterable, number - 1), item_of(iterable, number)), (iterable,))


def traced_ndindex(*shape: Any) -> Any:
    """`np.ndindex`: the indices of the elements of an array of a static shape."""
    sizes = shape[0] if len(shape) == 1 and isinstance(shape[0], tuple) else shape
    if not all(type(size) is int and size >= 0 for size in sizes):
        return np.ndindex(*sizes)
    return traced_product(*map(range, sizes))


def traced_ndenumerate(array: Any) -> Any:
    """`np.ndenumerate`: the indices of the elements of an array, and the elements."""
    indices = traced_ndindex(*array.shape)
    return Items(indices.numbers, lambda number: ((index := indices.item(number)), array[index]))


def traced_repeat(trace: Trace, value: Any, *times: Any) -> Any:
    """`itertools.repeat` of a known or a dynamic count."""
    return Items(trace.hooks.function(range)(*times), lambda number: value) if times else itertools.repeat(value)


def traced_map(trace: Trace, function: Any, *parts: Any) -> Any:
    """`map` over ranges, lists and traced arrays."""
    call = trace.hooks.function(function)
    if not parts or any(count_of(part) is None for part in parts):
        return map(call, *parts)
    tuples = traced_zip(*parts)
    return Items(tuples.numbers, lambda number: call(*tuples.item(number)), parts)


def traced_reversed(iterable: Any) -> Any:
    """`reversed` of a range or a traced array."""
    if isinstance(iterable, range):
        return iterable[::-1]
    count = count_of(iterable)
    if isinstance(count, range):
        return Items(count[::-1], lambda number: item_of(iterable, number))
    if isinstance(iterable, TracedRange):
        start, step = iterable.start, iterable.step
        count = (iterable.stop - start + step - (1 if step > 0 else -1)) // step
        last = iterable.stop - step if abs(step) == 1 else start + (count - 1) * step
        return TracedRange(last, start - (1 if step > 0 else -1), -step)
    if count is not None:
        return Items(count, lambda number: item_of(iterable, count.stop - 1 - number), (iterable,))
    return reversed(iterable)
