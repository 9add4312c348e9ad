"""Hooks of comprehensions, generators and new lists, which become loops that carry a total or append to a list."""

from __future__ import annotations

import math
import types
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from mlirml.core.tree import flatten
from mlirml.errors import CaptureError, TracedBoolError, UnsupportedSyntaxError
from mlirml.frontend.arrays.array import Traced
from mlirml.frontend.arrays.carry import leaf_type_of
from mlirml.frontend.arrays.growing_list import GrowingList
from mlirml.frontend.arrays.indexing import is_dynamic
from mlirml.frontend.arrays.list_parts import number_rows
from mlirml.frontend.arrays.open_lists import opened
from mlirml.frontend.arrays.tracer import Cell
from mlirml.frontend.frames import at_user_line, user_location
from mlirml.frontend.iteration_limits import MOST_COPIES
from mlirml.frontend.loops.containers import Snapshot
from mlirml.frontend.loops.narrowing import some
from mlirml.frontend.loops.ranges import Items, TracedRange, numbered, traced_range
from mlirml.frontend.loops.variables import Variables, is_array, is_number
from mlirml.frontend.tracing.trace import Trace

Part = types.FunctionType
_FEW_COPIES = 8  # of an item of a list in a loop
_FOLDS: dict[str, tuple[Any, Any]] = {
    "sum": (sum, 0), "any": (any, False), "all": (all, True), "max": (max, None), "min": (min, None),
}  # fmt: skip
"""The functions of a generator that are computed by a loop, and their results without items."""


class ListHooks:
    """The hooks of a trace that make lists."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self.list = list  # of `[*items]`, also where a variable has the name
        self.copies = 1  # of the code being traced, by the enclosing unrolled loops
        self._unassigned: dict[int, tuple[list[Any], NameError]] = {}  # lists of variables without values
        self._produced: list[int] = []  # the items so far of each comprehension with conditions that is being traced

    def for_(self, iterable: Any, body: Part, *names: Any) -> None:
        """A `for` statement."""
        raise NotImplementedError

    def _loop_over(self, iterable: Any, body: Part, *names: Any) -> None:
        raise NotImplementedError

    def if_(self, test: Any, body: Callable[[], Any], orelse: Callable[[], Any], *names: Any) -> Any:
        """An `if` statement."""
        raise NotImplementedError

    def function(self, callee: Any) -> Any:
        """The callee for a function."""
        raise NotImplementedError

    def growing(self, items: Any, grows: bool) -> Any:
        """A new list that is appended to in a loop, or may have a dynamic index."""
        return self._new_list(items, grows) if type(items) is list else items

    def times(self, items: list[Any], count: Any, grows: bool | None) -> Any:
        """`[value] * count`, a new list, which loops may append to or index unless `grows` is None."""
        value = items[0] if len(items) == 1 else None  # none in a list of the items of another one, `[*values]`
        # An array without dimensions is a factor of the items.
        is_count = isinstance(count, Traced) and count._scalar and not count.shape and count.dtype.kind in "iu"
        if not is_count or count._known() is not None or not is_number(value):
            return items * count if grows is None else self.growing(items * count, grows)
        found = self.listed(traced_range(count), lambda _: value)  # type: ignore[arg-type]
        found.sizes = count._sizes()
        return found

    def _new_list(self, items: Any, grows: bool) -> GrowingList:
        """A list that is created here: one with room for any number of items, if it has to be."""
        found = GrowingList(self._trace, items, grows=grows)
        location = user_location()
        if location is not None:
            found.site = f"{location.file}:{location.line}:{location.column}"
            room = self._trace.rooms.get(found.site)
            if room is not None:
                with at_user_line():
                    opened(found, room)
        return found

    def folded(
        self, callee: Any, iterable: Any, step: Part, original: Callable[[], Any], several: bool, *start: Any
    ) -> Any:
        """`sum`, `max`, `min`, `any` or `all` of a generator: by a loop if it is long or in a loop, else `original`.

        `step` gives the next total of an item and the total so far; `several` generators are nested in it.
        """
        name = next((name for name, function in _FOLDS.items() if callee is function[0]), None)
        numbers, _ = numbered(iterable)
        fewest = _FEW_COPIES if several or self._trace.builder.region.parent is not None else MOST_COPIES
        of_arrays = not isinstance(iterable, range) or _reads_arrays(step)
        long = isinstance(numbers, range) and len(numbers) * self.copies > fewest and of_arrays
        if name is not None and (long or isinstance(numbers, TracedRange)):
            init = start[0] if start else _FOLDS[name][1]
            for peels in (False, True):
                with suppress(CaptureError):
                    total = self._repeated_from(iterable, step, init) if peels else self.repeated(iterable, step, init)
                    return original() if total is None else some(total, name)
        return original()

    def _repeated_from(self, iterable: Any, step: Part, total: Any) -> Any:
        """`repeated` with the first iteration before the loop: a sum of arrays starts from the first one."""
        numbers, item = numbered(iterable)
        if not isinstance(numbers, range):
            raise CaptureError("the first item is not known")
        total = step(numbers[0] if item is None else item(numbers[0]), total)
        return self.repeated(numbers[1:] if item is None else Items(numbers[1:], item), step, total)

    def repeated(self, iterable: Any, step: Part, total: Any) -> Any:
        """The total after a loop, of which each iteration gives the next one."""

        def iteration(item: Any) -> None:
            nonlocal total
            total = step(item, total)

        assert isinstance(iteration, Part)
        own = ("total",)
        self._loop_over(iterable, iteration, own, own, own, (), "", "", False)
        return total

    def filtered(self, traced: Callable[[], Any], looped: Callable[[], Any]) -> Any:
        """The items of a comprehension with conditions, by `looped`, a loop, where data decide on them.

        Nothing that makes an item, and no condition that changes anything, is traced twice. What the iterable is
        computed in does not count, as `np.argwhere(x)` stores into an array of its own.
        """
        variables, begin = Variables(traced, looped), next(Cell.numbers)  # type: ignore[arg-type]
        oldest, Cell.oldest_stored = Cell.oldest_stored, math.inf
        held, values, changes = Snapshot(variables.items()), variables.items(), self._trace.changes()
        self._produced.append(0)
        try:
            return traced()
        except CaptureError as error:
            of_array = isinstance(error, TracedBoolError) and error.of_array
            kept = Cell.oldest_stored > begin and not held.restore() and _are_same(values, variables.items())
            if self._produced[-1] or of_array or not kept or _contents(changes) != _contents(self._trace.changes()):
                raise
        finally:
            self._produced.pop()
            Cell.oldest_stored = min(oldest, Cell.oldest_stored)
        return looped()

    def produced(self, item: Any) -> Any:
        """An item of a comprehension with conditions."""
        self._produced[-1] += 1
        return item

    def first(self, callee: Any, looped: Callable[[], Any]) -> Any:
        """`next` of a generator with conditions that data decide, and a default, by `looped`, which ends there.

        So are `any` and `all` of what a generator function yields.
        """
        if callee not in (next, any, all):
            raise UnsupportedSyntaxError(
                f"a generator whose items data decide is given to a function of yours, `{callee.__name__}`",
                help="give the function a name that none of Python's has",
            )
        return looped()

    def filter_(self, callee: Any, function: Any, iterable: Any) -> Any:
        """The items of `filter(function, iterable)`, as a list."""
        if callee is not filter:
            return self.function(callee)(function, iterable)
        call = unchanged if function is None else self.function(function)

        def traced() -> Any:
            return [self.produced(item) for item in iterable if call(item)]

        def looped() -> Any:
            items = GrowingList(self._trace, [], grows=True)

            def append(item: Any) -> None:
                self.if_(call(item), lambda: items.append(item), nothing, (), (), (), (), ())

            assert isinstance(append, Part)
            self.for_(iterable, append, (), (), (), (), "", "", False)
            return items

        return self.filtered(traced, looped)

    def listed(self, iterable: Any, element: Part, grows: bool = False) -> Any:
        """`[element(item) for item in iterable]`, by a loop if it is long or in a loop.

        One that loops append to or index is made by a loop only where the data decide how many items there are.
        """
        numbers, _ = numbered(iterable)
        fewest = MOST_COPIES if self._trace.builder.region.parent is None else _FEW_COPIES
        is_long = isinstance(numbers, range) and len(numbers) * self.copies > fewest
        is_long = is_long and not grows and (not isinstance(iterable, range) or _reads_arrays(element))
        if is_long or isinstance(numbers, TracedRange):
            items = self._new_list([], grows=True)

            def append(item: Any) -> None:
                value = element(item)
                if any(is_array(leaf) and leaf._views for leaf in flatten(value)[0]):
                    raise CaptureError("an item is a view of an array, which may be stored into")
                items.append(value)

            try:
                self.for_(iterable, append, (), (), (), (), "", "", False)  # type: ignore[arg-type]
            except CaptureError:
                if not is_long:
                    raise
                return [element(item) for item in iterable]
            if not is_long or not _has_python_numbers(items):
                return items
        return [element(item) for item in iterable]

    def list_(self, callee: Any, items: Any = (), *, grows: bool) -> Any:
        """`list(items)` or `deque(items)`, a new list."""
        if callee not in (list, deque):
            return self.function(callee)(items)
        if type(items) is GrowingList:
            return items.copy()
        if isinstance(items, Items) or is_dynamic(items):
            items = self.listed(items, unchanged)  # type: ignore[arg-type]
        if type(items) is GrowingList:
            return items
        if isinstance(items, Traced) and items.ndim == 1:
            items = [number_rows(items.copy(), leaf_type_of(items, "an item"))] if len(items) else []
        return self._new_list(items, grows)

    def at_left(self, queue: Any, name: str, *args: Any) -> Any:
        """`queue.popleft()`, `queue.appendleft(x)` or `queue.extendleft(xs)`; a deque that loops change is a list."""
        if queue is deque and args:
            queue, *args = args  # type: ignore[assignment]
        if not isinstance(queue, list):
            return getattr(queue, name)(*args)
        if name == "popleft":
            return queue.pop(0, *args)
        for value in args if name == "appendleft" else [*args[0]]:
            queue.insert(0, value)
        return None


def _reads_arrays(element: Part) -> bool:
    """True if a function of an enclosing scope reads traced arrays there."""
    return any(isinstance(value, Traced) for _, value in Variables(element).items())


def _are_same(before: Sequence[tuple[str, Any]], after: Sequence[tuple[str, Any]]) -> bool:
    """True if variables have the same values."""
    return all(one is other for (_, one), (_, other) in zip(before, after))


def _contents(changes: Sequence[Any]) -> list[Any]:
    """The identities of what objects hold after changes, which keep it alive."""
    return [(c.variable.name, [*map(id, c.after)] if c.whole else id(c.after)) for c in changes]


def _has_python_numbers(items: GrowingList) -> bool:
    """True if a list has Python integers, whose values may be needed."""
    leaf_types = [] if items.rows is None else items.rows.growth.leaf_types
    return any(leaf_type.weak and leaf_type.dtype.kind in "bi" for leaf_type in leaf_types)


def nothing() -> None:
    """An empty branch."""
    return None


def unchanged(x: Any) -> Any:
    """The argument."""
    return x
