"""Lists that loops append to: a loop of the program stores the items into rows of arrays.

    hs = []                             hs = __mlirml__.growing([])
    for t in range(n):                  rows = np.empty((n, 4)); an scf.for that carries `rows`
        h = np.tanh(w @ h + x[t])
        hs.append(h)                        rows[t] = h
    return np.stack(hs)                 return rows.copy()

In Python such a list is like any other. A loop that is found to append as many items of the same types in each of its
iterations is retraced: the list is then rows of arrays as long as it is after the loop.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import field, replace
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from mlirml.core.affine import Linear
from mlirml.core.dataclass import dataclass
from mlirml.errors import CaptureError, UnsupportedSyntaxError
from mlirml.frontend.arrays.array import Traced
from mlirml.frontend.arrays.carry import LeafType, joined, leaf_type_of
from mlirml.frontend.arrays.constructs import InlineStore, Retrace, inline
from mlirml.frontend.arrays.growing_list import GrowingList
from mlirml.frontend.arrays.list_parts import Counts, Growth, Rows, is_mutable, note_appended, settle_items
from mlirml.frontend.arrays.tracer import Cell
from mlirml.frontend.loops.containers import Growing, Snapshot
from mlirml.frontend.loops.failing import FAILURES
from mlirml.frontend.loops.variables import Tree, is_array, is_number, value_of_type
from mlirml.ir.text.builder import Region

if TYPE_CHECKING:
    from mlirml.frontend.tracing.trace import Trace


def mask_of(test: Callable[[], Any], loop: Any) -> np.ndarray | None:
    """The iterations of a loop in which a condition holds, as a mask, if it depends on the loop variable alone; else
    None, also of a condition that changes anything.
    """
    variables, name, builder = loop.variables, loop.target, loop.trace.builder
    if not name:
        return None
    item, mark, held = variables.get(name), builder.mark(), Snapshot([("", test)])

    def at(number: Any) -> Any:
        variables.set(name, number)
        return test()

    found = None
    try:
        with suppress(InlineStore, *FAILURES), inline(builder):  # in an iteration that may not come to it
            first = at(loop.range[0])
            if isinstance(first, (bool, np.bool_)) and held.is_same():
                found = _at_once(at, loop.range) if len(loop.range) > _FEW else _one_by_one(at, loop.range)
        return found if held.is_same() else None
    finally:
        held.restore()
        variables.set(name, item)
        builder.rewind(mark)


_FEW = 16


def _at_once(at: Callable[[Any], Any], numbers: range) -> np.ndarray | None:
    """A condition for all iterations as an array, computed in one call if possible; else one by one."""
    some = [*range(0, len(numbers), len(numbers) // _FEW), len(numbers) - 1]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            found = at(np.arange(numbers.start, numbers.stop, numbers.step))
    except (TypeError, ValueError, AttributeError, Warning, CaptureError):
        found = None
    if type(found) is not np.ndarray or found.dtype != np.bool_ or found.shape != (len(numbers),):
        return _one_by_one(at, numbers)
    alike = _one_by_one(at, [numbers[i] for i in some])
    return found if alike is not None and np.array_equal(found[some], alike) else _one_by_one(at, numbers)


def _one_by_one(at: Callable[[Any], Any], numbers: Sequence[int]) -> np.ndarray | None:
    found = []
    for number in numbers:
        truth = at(number)
        if not isinstance(truth, (bool, np.bool_)):
            return None
        found.append(truth)
    return np.array(found)


@dataclass(eq=False)
class Branched:
    """A list to which the branches of an `if` append different numbers of items.

    `missing` are the numbers of items by which some iterations append fewer than `counts`.
    """

    kept: Growing
    counts: list[int] = field(default_factory=list)
    missing: list[Any] = field(default_factory=list)
    parts: list[list[Any]] = field(default_factory=list)

    def note(self, missing: dict[int, np.ndarray]) -> None:
        """Record the numbers of items at the end of a branch."""
        growing = self.kept.holder
        self.counts.append(growing.counted - self.kept.counted)
        self.missing.append(missing.get(id(growing), 0))
        self.parts.append(growing.parts)

    def each(self, mask: np.ndarray | None) -> Any:
        """The number of items that each iteration appends, NaN where the data decide that."""
        then, other = (count - missing for count, missing in zip(self.counts, self.missing))
        if mask is not None:
            return np.where(mask, then, other)
        return then if np.array_equal(then, other) else np.nan

    def join(self, loop: Any, mask: np.ndarray | None) -> None:
        """After the branches: take the counts of the one that appends most, with the others' missing items."""
        growing, most, each = self.kept.holder, max(self.counts), self.each(mask)
        missing = most - each
        if np.any(missing):
            loop.missing[id(growing)] = loop.missing.get(id(growing), 0) + missing
        rows = self.kept.open_rows
        if rows is None:  # an attempt that finds the types of items
            parts = self.parts[0] if self.counts[0] == most else self.parts[1]
            old = [*self.kept.before.values()]
            growing.parts = [*old, *(_alike(growing, part) for part in parts[len(old) :])]
            return
        given = rows.given
        if rows.counter is None:
            is_known = not np.any(np.isnan(each))  # else the number of items is refused at the end of the iteration
            given = given + (table(loop, each) if np.any(missing) and is_known else most)
        growing.parts = [replace(rows, given=given, appended=rows.appended + most)]


def _alike(growing: GrowingList, part: Any) -> Any:
    """A placeholder of the same type as an item, or rows, of a region that is closed."""
    trace = growing.trace
    if isinstance(part, Rows):
        return replace(part, columns=tuple(_column(trace, c.shape, c.dtype) for c in part.columns))
    tree, leaves = Tree.of(part), []
    for leaf in tree.leaves:
        leaf_type = leaf_type_of(leaf, "an item")
        value = replace(trace.builder.filled(leaf_type.shape, leaf_type.dtype, 0), weak=leaf_type.weak)
        leaves.append(Traced(trace, Cell(value), scalar=is_number(leaf)))
    return tree.treedef.unflatten(leaves)


def table(loop: Any, numbers: np.ndarray) -> Any:
    """The element of an array for the current iteration."""
    trace = loop.trace
    found = trace.known(numbers)[loop.number]
    limits = Linear(int(numbers.min())), Linear(int(numbers.max()))
    trace.integers.forms[found._read().name] = trace.integers.symbol(*limits, frozenset([loop]))
    return found


@dataclass(eq=False)
class Writer:
    """The appends of a loop to one list, in one attempt to trace it.

    `start` are the rows before the loop, `parts` the contents of the list then.
    """

    loop: Any
    path: str
    counts: Counts
    growing: GrowingList
    parts: list[Any]
    start: Rows
    held: list[list[tuple[Cell, int]]] = field(default_factory=list)  # arrays that are items, and their versions

    @property
    def outer(self) -> Writer | None:
        """The writer of an enclosing loop for the same rows."""
        return self.start.writer

    def begin(self) -> None:
        """Begin an iteration."""
        given = self.start.given
        if self.start.counter is None:
            each = self.counts.each
            before = self.loop.number * self.counts.most if each is None else table(self.loop, self.counts.before)
            given = given + before
        self.growing.parts = [replace(self.start, given=given, writer=self, appended=0)]

    def check_count(self) -> None:
        """Refuse an iteration that appends another number of items than the previous one."""
        if self.counts.of_data and self.growing.counted <= self.counts.most:
            return
        missing, each = self.loop.missing.get(id(self.growing), 0), self.counts.each
        wanted = 0 if each is None else self.counts.most - each
        if self.growing.counted != self.counts.most or not np.array_equal(missing, wanted):
            raise self.refused(f"iterations of a loop append different numbers of items to `{self.path}`")

    def appended(self, rows: Rows, value: Any) -> Rows:
        """The rows with one more item."""
        number = rows.following
        self.put(rows, number, value)
        if rows.counter is not None:
            rows.counter[0] = number + 1
            return replace(rows, appended=rows.appended + 1)
        return replace(rows, given=number + 1, appended=rows.appended + 1)

    def put(self, rows: Rows, number: Any, value: Any) -> None:
        """Store an item into a row, and again where it changes; later if it has not yet the structure of the others."""
        self.held.append([])
        store, fits = partial(self._store, rows, number, self.held[-1]), Tree.of(value).treedef == rows.growth.treedef
        if fits or not is_mutable(value):
            store(value)
        note_appended(self.growing, number, value, store, stored=fits)

    def _store(self, rows: Rows, number: Any, held: list[tuple[Cell, int]], value: Any) -> None:
        """Store an item into a row, which has the types of all items."""
        tree, growth = Tree.of(value), rows.growth
        leaf_types = _leaf_types(tree, self.path)
        both = None if leaf_types is None or tree.treedef != growth.treedef else _joined(growth.leaf_types, leaf_types)
        if both is None:
            raise self.refused(f"items of several types are appended to `{self.path}`")
        scalars = [a and is_number(b) for a, b in zip(growth.scalars, tree.leaves)]
        if both != growth.leaf_types or scalars != growth.scalars:
            growth.leaf_types, growth.scalars = both, scalars
            raise Retrace(self.outermost.loop)
        held[:] = _arrays(tree)
        store(rows, number, tree.leaves, self.path)

    @property
    def outermost(self) -> Writer:
        """The writer of the loop that created the rows."""
        return self if self.outer is None else self.outer.outermost

    def check_index(self, rows: Rows, index: Any) -> Any:
        """The index of an item, checked to exist."""
        integers = self.loop.trace.integers
        if isinstance(index, slice) or integers.of(index) is None:
            raise self.refused(f"a loop appends to `{self.path}` and takes a part of it")
        least, greatest = integers.limits(integers.of(index))
        if greatest is not None and greatest < 0:
            index = rows.length + index
            least, _ = integers.limits(integers.of(index))
        above = integers.limits(integers.of(rows.length) - integers.of(index))[0]
        if least is None or least < 0 or above is None or above < 1:
            raise self.refused(f"a loop appends to `{self.path}` and reads an item that may not be there yet")
        return index

    def refused(self, why: str) -> CaptureError:
        """The error for a loop that does more with a list than its rows allow. A `for` loop is unrolled then."""
        error = UnsupportedSyntaxError(why, help="store into an array made before the loop, `out[i] = x`")
        error.roots, error.lists = frozenset([self.loop]), self.growing.sites()
        return error

    def check_held(self, stored: Iterable[Cell]) -> None:
        """Refuse arrays that change after they were appended: the list has references to the arrays, not copies."""
        changed = {id(cell) for cell in stored}
        if any(cell.version != version or id(cell) in changed for cell, version in chain(*self.held)):
            raise self.refused(f"an array that is an item of `{self.path}` changes in the loop: append a copy of it")

    def note_result(self, leaf: Traced, result: Traced) -> None:
        """After the loop, a variable refers to the array `result`, which was `leaf` at the end of the last
        iteration.
        """
        if any(leaf._cell is cell for cell, _ in chain(*self.held)):
            self.held.append([(result._cell, result._cell.version)])

    def close(self) -> None:
        """After the loop: the list has all items, unless it is rows of an enclosing loop."""
        total = self.counts.total
        if self.outer is not None:
            self.outer.held += self.held
            self.growing.parts = [self._filled(total, self.start.appended + total)]
            return
        for column, leaf_type in zip(self.start.columns, self.start.growth.leaf_types):
            if not leaf_type.shape:
                continue  # its reads are numbers
            column._cell.frozen = f"a store into `{self.path}`, whose items are rows of an array after a loop"
        for cell, _ in chain(*self.held):
            cell.frozen = f"a store into an array that is an item of `{self.path}`, which a loop has appended to"
        self.growing.parts = [self._filled(total, 0)]
        around = appending_loop(self.loop.trace)
        if self.counts.of_data and around is not None and holds(around, self.growing):
            around.missing[id(self.growing)] = np.nan

    def _filled(self, total: int, appended: int) -> Rows:
        """The rows after all iterations."""
        given = self.start.given if self.start.counter is not None else self.start.given + total
        return replace(self.start, given=given, appended=appended)


def appending_loop(trace: Trace) -> Any:
    """The innermost enclosing loop, if it may append to lists; else None."""
    region: Region | None = trace.builder.region
    while region is not None and not hasattr(region.construct, "appends"):
        region = region.parent
    return region.construct if region is not None and region.construct.appends else None


def holds(loop: Any, growing: GrowingList) -> bool:
    """True if a list is from outside of a loop."""
    return any(kept.holder is growing for kept in loop.held.growing())


def store(rows: Rows, number: Any, leaves: Sequence[Any], path: str) -> None:
    """Store the leaves of an item."""
    for column, leaf_type, leaf in zip(rows.columns, rows.growth.leaf_types, leaves):
        column[number] = Traced(column._trace, Cell(value_of_type(column._trace, leaf, leaf_type, path)))


def learned(growing: GrowingList, before: Sequence[Any], counts: Counts, path: str) -> Growth | None:
    """The growth of a list in an iteration before which it had these parts; None for another change."""
    now = growing.parts
    rows = growing.rows
    if rows is not None and rows.writer is not None:
        growth = rows.growth
        return Growth(counts, growth.treedef, growth.leaf_types, growth.scalars)
    if counts.most <= 0 or len(now) < len(before) or any(a is not b for a, b in zip(before, now)):
        return None
    found: Growth | None = None
    for part in now:
        if isinstance(part, Rows):
            one: Growth | None = part.growth
        else:
            tree = Tree.of(part)
            leaf_types = _leaf_types(tree, path)
            one = (
                None
                if leaf_types is None
                else Growth(counts, tree.treedef, leaf_types, [is_number(x) for x in tree.leaves])
            )
        if one is None:
            return None
        if found is None:
            found = Growth(counts, one.treedef, one.leaf_types, one.scalars)
        both = None if one.treedef != found.treedef else _joined(found.leaf_types, one.leaf_types)
        if both is None:
            return None
        found.leaf_types, found.scalars = both, [a and b for a, b in zip(found.scalars, one.scalars)]
    return found


def opened(loop: Any, growing: GrowingList, growth: Growth, path: str) -> Writer:
    """Before a loop: convert a list to rows with room for all that it appends, or use those of an enclosing loop."""
    rows, parts = growing.rows, list(growing.parts)
    if rows is not None and rows.writer is not None:
        return Writer(loop, path, growth.counts, growing, parts, rows)
    settle_items(growing)
    total = sum(part.capacity if isinstance(part, Rows) else 1 for part in parts) + growth.counts.total
    columns = [_column(loop.trace, (total, *leaf_type.shape), leaf_type.dtype) for leaf_type in growth.leaf_types]
    counted = rows is not None and rows.counter is not None
    rows = Rows(tuple(columns), growth, growing.length)
    if growth.counts.of_data or counted:
        rows = replace(rows, counter=_counter(loop.trace, growing.length))
    writer, number = Writer(loop, path, growth.counts, growing, parts, rows), 0
    for part in parts:
        if isinstance(part, Rows):
            for column, old in zip(columns, part.columns):
                column[number : number + part.capacity] = old
        else:
            writer.put(rows, number, part)
        number += part.capacity if isinstance(part, Rows) else 1
    return writer


def _arrays(tree: Tree) -> list[tuple[Cell, int]]:
    """The arrays among the leaves, and their versions."""
    return [(leaf._cell, leaf._cell.version) for leaf in tree.leaves if is_array(leaf)]


def _counter(trace: Trace, length: Any) -> Traced:
    found = _column(trace, (1,), np.dtype(np.int64))
    found[0] = length
    return found


def _column(trace: Trace, shape: tuple[int, ...], dtype: np.dtype) -> Traced:
    return Traced(trace, Cell(trace.builder.filled(shape, dtype, 0), owned=True))


def _leaf_types(tree: Tree, path: str) -> list[LeafType] | None:
    """The types of the leaves; None if there are none, or one is neither an array nor a number."""
    if not tree.leaves or not all(is_number(leaf) or is_array(leaf) for leaf in tree.leaves):
        return None
    return [leaf_type_of(leaf, path) for leaf in tree.leaves]


def _joined(some: Sequence[LeafType], others: Sequence[LeafType]) -> list[LeafType] | None:
    found = [joined(*pair) for pair in zip(some, others)]
    return None if None in found else [leaf_type for leaf_type in found if leaf_type is not None]
