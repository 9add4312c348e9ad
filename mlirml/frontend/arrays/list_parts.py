"""The contents of a list of a traced function: items, or rows of arrays where loops append to it or index it."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from mlirml.core.affine import Linear
from mlirml.core.dataclass import dataclass
from mlirml.core.tree import TreeDef, flatten
from mlirml.errors import CaptureError, SourceLocation, UnsupportedSyntaxError
from mlirml.frontend.arrays.array import Traced
from mlirml.frontend.arrays.carry import LeafType
from mlirml.frontend.arrays.optional import Optional
from mlirml.frontend.arrays.tracer import Cell
from mlirml.frontend.frames import user_location
from mlirml.ir.text.builder import Region

if TYPE_CHECKING:
    from mlirml.frontend.tracing.trace import Trace

_, _LEAF = flatten(0)


@dataclass(frozen=True, eq=False)
class Counts:
    """The numbers of items that the iterations of a loop append: `most`, or the array `each`, NaN where unknown."""

    most: int
    iterations: int
    each: np.ndarray | None = None

    @property
    def of_data(self) -> bool:
        """True if the data decide how many items an iteration appends."""
        return self.each is not None and bool(np.any(np.isnan(self.each)))

    @property
    def total(self) -> int:
        """The total number of items, or the most that there may be."""
        return self.most * self.iterations if self.each is None or self.of_data else int(self.each.sum())

    @property
    def before(self) -> np.ndarray:
        """For each iteration, the number of items appended by all earlier ones."""
        assert self.each is not None
        return np.cumsum(self.each) - self.each


@dataclass
class Growth:
    """Facts about a list learned in earlier attempts to trace a loop: items per iteration, and the structure of an
    item.
    """

    counts: Counts
    treedef: TreeDef
    leaf_types: list[LeafType]
    scalars: list[bool]


@dataclass(frozen=True, eq=False)
class Rows:
    """Items of one structure: leaf n of each item is a row of `columns[n]`, an array as long as the list may become.

    The length, `given`, is dynamic while a loop, `writer`, appends: then `appended` of the items are from this
    iteration. Where the data decide how often it appends, the length is the element of the array `counter`, and
    `appended` is the most that there may be. Items that are lists of numbers, nested `depth` deep, are rows of one
    array.
    """

    columns: tuple[Traced, ...]
    growth: Growth
    given: Any
    writer: Any = None
    appended: int = 0
    depth: int = 0
    counter: Traced | None = None
    room: Any = None  # of a list that any code may append to, which is stored into in place

    @property
    def length(self) -> Any:
        """The number of items."""
        return self.given if self.counter is None else self._counted(self.capacity)

    @property
    def following(self) -> Any:
        """The number of the next item, for which there is room."""
        return self.given if self.counter is None else self._counted(self.capacity - 1)

    def _counted(self, most: int) -> Traced:
        assert self.counter is not None
        trace, value = self.counter._trace, self.counter[0]._read()
        trace.integers.forms[value.name] = trace.integers.symbol(Linear(0), Linear(most))
        return Traced(trace, Cell(replace(value, weak=True)), scalar=True)

    @property
    def capacity(self) -> int:
        """The most items for which there is room."""
        return int(self.columns[0].shape[0])

    def arrays(self) -> list[Any]:
        """Copies of the columns, without the room for further items."""
        self._check_no_lists()
        columns = [Traced(c._trace, Cell(replace(c._read(), weak=False), owned=True)) for c in self.columns]
        if self.counter is None:
            return columns
        trace = self.counter._trace
        return [trace.handlers.beginning(column, self.length) for column in columns]

    @property
    def has_lists(self) -> bool:
        """True if items are lists with room for any number of items, which are views of the columns."""
        return is_of_rows(self.growth.treedef) and self.growth.treedef.kind.rows.counter is not None

    def _check_no_lists(self) -> None:
        """Refuse a copy of lists that another list has too."""
        if self.has_lists:
            raise UnsupportedSyntaxError(
                "a copy of a list of lists whose lengths the data decide: they are items of both",
                help="copy the lists one by one, `[list(row) for row in rows]`",
            )

    def row(self, number: Any) -> Rows:
        """An item that is a list."""
        (column,) = self.columns
        return replace(self, columns=(column[number],), given=column.shape[1], depth=self.depth - 1)

    def item(self, number: Any, removed: bool = False) -> Any:
        """A copy of an item at an index that is in bounds.

        A list, dict or object that is not `removed` from the list may not be changed: Python would change the item.
        """
        growth, leaves = self.growth, []
        if self.has_lists and not removed:
            row = growth.treedef.kind._make([column[number] for column in self.columns])
            row.is_row = True
            if self.room is not None:
                self.room.rows.append(weakref.ref(row))
            return row
        for column, leaf_type, scalar in zip(self.columns, growth.leaf_types, growth.scalars):
            element = column[number]
            if scalar and leaf_type.weak and isinstance(number, int) and (known := element._known()) is not None:
                leaves.append(known[()].item())
                continue
            value = replace(element._read(), weak=leaf_type.weak)
            leaf = Traced(column._trace, Cell(value, owned=True), scalar=scalar)
            leaf._cell.frozen = "a store into an item of a list, which is a row of an array after a loop"
            leaves.append(leaf)
        found = growth.treedef.unflatten(leaves)
        if not removed:
            note_copied(self.columns[0]._trace, found, leaves, growth.treedef, appended=False)
        return found

    def as_item(self, element: Traced) -> Traced:
        """An item that is a number, of an element of the only column."""
        value = replace(element._read(), weak=self.growth.leaf_types[0].weak)
        return Traced(element._trace, Cell(value), scalar=True)

    def sliced(self, part: slice) -> Rows:
        """A slice of the items with a static length."""
        return replace(self, columns=tuple(c[part].copy() for c in self.columns), given=len(range(self.length)[part]))

    def copied(self) -> Rows:
        """The same items in copied arrays."""
        self._check_no_lists()
        counter = None if self.counter is None else self.counter.copy()
        return replace(self, columns=tuple(c.copy() for c in self.columns), counter=counter)


@dataclass(eq=False)
class CopiedItem:
    """A list, dict, object or array that is an item of a list in Python, where a row of arrays has copies of its
    `leaves`; they are None before the item has the structure of the others.

    `location` is where it was read from the list or appended. As long as it is among the trace's `open_items`, `store`
    writes its leaves into the row again, in the region of the append and before the list is read.
    """

    item: Any
    leaves: tuple[Any, ...] | None
    treedef: TreeDef
    appended: bool
    location: SourceLocation | None
    growing: PartedList | None = None
    number: Any = None
    store: Callable[[Any], None] | None = None
    region: Region | None = None
    versions: tuple[int, ...] = ()

    def has_changed(self) -> bool:
        """True if it differs from its copy."""
        leaves, treedef = tree_of(self.item)
        return (
            self.leaves is None
            or treedef != self.treedef
            or any(one is not other for one, other in zip(leaves, self.leaves))
            or (bool(self.versions) and _versions(leaves) != self.versions)
        )

    def write_back(self) -> None:
        """Store it into its row once more, if it has changed; only in the region of the append that is certain."""
        if not self.has_changed():
            return
        assert self.growing is not None and self.store is not None
        if self.growing.trace.builder.region is not self.region:
            raise self.refused()
        self.store(self.item)
        self.rebase()

    def rebase(self) -> None:
        """Take the values that it has after the branches of an `if`, of which the one that appends it stored them."""
        leaves, self.treedef = tree_of(self.item)
        self.leaves, self.versions = tuple(leaves), _versions(leaves)

    def check(self) -> None:
        """Refuse a function that has changed it: one of the two would have other contents than in Python."""
        if self.has_changed():
            raise self.refused()

    def refused(self) -> CaptureError:
        """The error for a change that the copy would not see."""
        if self.appended:
            error = CaptureError(
                "what is appended here is changed later, and the list has a copy of it",
                location=self.location,
                help="change it before it is appended, or append a new one in each iteration",
            )
            if self.growing is not None and (rows := self.growing.rows) is not None and rows.writer is not None:
                error.roots, error.lists = frozenset([rows.writer.loop]), self.growing.sites()
            return error
        return CaptureError(
            "an item of a list is changed, which is a row of arrays after a loop",
            location=self.location,
            help="store a new item into the list, `items[i] = ...`, or keep numbers that change in an array",
        )


def note_copied(trace: Trace, item: Any, leaves: Sequence[Any], treedef: TreeDef, *, appended: bool) -> None:
    """Record an item that may be changed."""
    if is_mutable(item) and _has_leaves(item):
        trace.copied_items.append(CopiedItem(item, tuple(leaves), treedef, appended, user_location()))


def note_appended(growing: PartedList, number: Any, item: Any, store: Callable[[Any], None], stored: bool) -> None:
    """Record an item that may be changed, of which `store` writes the leaves into row `number`, and has if `stored`."""
    trace, array = growing.trace, isinstance(item, Traced) and not item._scalar
    if not (array or is_mutable(item)) or not _has_leaves(item):
        return
    leaves, treedef = tree_of(item)
    one = CopiedItem(
        item,
        tuple(leaves) if stored else None,
        treedef,
        appended=True,
        location=user_location(),
        growing=growing,
        number=number,
        store=store,
        region=trace.builder.region,
        versions=_versions(leaves),
    )
    trace.open_items.append(one)
    if not array:  # the writer sees to arrays
        trace.copied_items.append(one)


def close_items(trace: Trace) -> None:
    """At the end of a region: store the items that were appended in it, as they are now."""
    for one in [one for one in trace.open_items if one.region is trace.builder.region][::-1]:
        one.write_back()
        trace.open_items.remove(one)


def update_items(trace: Trace) -> None:
    """Before a loop or branch: store the items that were appended in this region, as far as they are complete."""
    for one in trace.open_items:
        if one.region is trace.builder.region and one.leaves is not None:
            one.write_back()


def settle_items(growing: PartedList, index: Any = None) -> None:
    """Before a list is read, or only item `index`: store the items that were appended to it, as they are now.

    From then on there may be other copies, so that they may not be changed any more.
    """
    trace = growing.trace
    for one in [one for one in trace.open_items if one.growing is growing]:
        if not _differ(trace, index, one.number):
            trace.open_items.remove(one)
            one.write_back()


def _differ(trace: Trace, one: Any, other: Any) -> bool:
    """True if two integers differ for certain."""
    forms = [trace.integers.of(number) for number in (one, other)]
    if None in forms:
        return False
    least, greatest = trace.integers.limits(forms[0] - forms[1])
    return (least is not None and least > 0) or (greatest is not None and greatest < 0)


def _versions(leaves: Sequence[Any]) -> tuple[int, ...]:
    return tuple(leaf._cell.version if isinstance(leaf, Traced) else 0 for leaf in leaves)


def _has_leaves(item: Any) -> bool:
    """True for an item that is no list of which loops have made parts."""
    return not (isinstance(item, PartedList) and item.has_rows and item.rows is None)


def note_joined(trace: Trace, item: Any, sources: Sequence[Any], leaves: Sequence[Any] | None = None) -> None:
    """Record the value of a variable in or after a loop or branch, if one of those it may be is such an item.

    `leaves` are those that it may have at the end.
    """
    if is_mutable(item) and not isinstance(item, PartedList):
        known = next((one for one in trace.copied_items if any(one.item is source for source in sources)), None)
        if known is not None:
            now, treedef = flatten(item)
            copied = CopiedItem(item, tuple(now if leaves is None else leaves), treedef, known.appended, known.location)
            trace.copied_items.append(copied)


def tree_of(item: Any) -> tuple[list[Any], TreeDef]:
    """The leaves of an item, with rows as columns, and its structure."""
    return item.tree() if isinstance(item, PartedList) else flatten(item)


def is_mutable(item: Any) -> bool:
    """True for a list, dict or object, and a tuple with one in it."""
    if isinstance(item, tuple):
        return any(map(is_mutable, item))
    if type(item) is Optional:
        return is_mutable(item.value)
    return not isinstance(item, (Traced, np.generic, bool, int, float, complex, str, bytes, type(None)))


def is_of_rows(treedef: TreeDef) -> bool:
    """True for the structure of a list that is rows of arrays."""
    return hasattr(treedef.kind, "rows")


def number_rows(array: Traced, leaf_type: LeafType) -> Rows:
    """The rows of a list whose numbers, of this type, are the elements of an array."""
    growth = Growth(Counts(0, 0), _LEAF, [replace(leaf_type, shape=())], [True])
    return Rows((array,), growth, array.shape[0], depth=array.ndim - 1)


class PartedList:
    """The contents of a list, and what is known of it.

    `parts` are items and, during or after a loop, `Rows` of them. A list of numbers is rows from its creation on if
    loops index it (`wants_rows`), for numbers of the type `leaf_type`. A list that is a row of another list, `owner`,
    is item `number` of it. `changed`: items may have been added, removed or replaced.
    """

    def __init__(self, trace: Trace, items: Iterable[Any], *, grows: bool = True) -> None:
        self._parts: list[Any] = list(items)
        self._either: list[tuple[Any, list[Any]]] = []
        self.trace = trace
        self.grows = grows
        self.region = self.seen_in = trace.builder.region
        self.wants_rows = False
        self.retraced: Any = None  # the loop or branch that was retraced last to make rows of it
        self.changed = False
        self.leaf_type: LeafType | None = None
        self.owner: PartedList | None = None
        self.number: Any = None
        self.sample_of: PartedList | None = None  # the list that a loop may append to, and of which it takes any item
        self.sizes: frozenset[str] = frozenset()  # the arguments that say how long it is
        self.site = ""  # the expression that creates it
        self.inner_sites: frozenset[str] = frozenset()  # those that create lists which have become its rows
        self.is_row = False  # whether it is an item of another list, of which its columns are views
        self.empty: tuple[Traced, int] | None = None  # the counter of a new list with room, and its version
        self.room: Any = None  # of a list whose length only the data decide, see `open_lists`
        self._views: list[weakref.ref[PartedList]] = []

    @property
    def parts(self) -> list[Any]:
        """Items, and `Rows` of them."""
        for source, items in self._either:
            now = source.parts if isinstance(source, PartedList) else source
            if len(now) != len(items) or any(one is not other for one, other in zip(now, items)):
                raise UnsupportedSyntaxError(
                    "this is one list or another, and one of them has changed since",
                    help="give it a copy, `list(a)`, before that",
                )
        return self._parts

    @parts.setter
    def parts(self, parts: list[Any]) -> None:
        self._parts = parts

    def only_read(self, sources: Iterable[Any]) -> None:
        """Mark this as one of several possible lists, none of which may change any more while this one is used."""
        self._either = [(one, [*(one.parts if isinstance(one, PartedList) else one)]) for one in sources]

    @property
    def whole(self) -> PartedList:
        """The outermost list that this one is a row of."""
        return self if self.owner is None else self.owner.whole

    def note_view(self, row: PartedList) -> None:
        """Record a list that is a row of this one."""
        self._views = [view for view in self._views if view() is not None]
        self._views.append(weakref.ref(row))

    def views(self) -> list[PartedList]:
        """The rows of this list that are in use, without those of abandoned attempts."""
        return [found for view in self._views if (found := view()) is not None and found.seen_in.open]

    @property
    def rows(self) -> Rows | None:
        """The items as rows, if they are all in one; else None."""
        return self.parts[0] if len(self.parts) == 1 and isinstance(self.parts[0], Rows) else None

    @property
    def has_rows(self) -> bool:
        """True if a loop has appended, so that the items are no Python objects."""
        return any(isinstance(part, Rows) for part in self.parts)

    @property
    def length(self) -> Any:
        """The number of items, a dynamic value while a loop appends."""
        rows = self.rows
        if rows is not None:
            return rows.length
        return sum(part.length if isinstance(part, Rows) else 1 for part in self.parts)

    def sites(self) -> frozenset[str]:
        """The expression that creates the list, if it could be made an open one."""
        return frozenset([self.site] if self.site and self.room is None else [])

    def array(self) -> Any:
        """The array that `np.array` makes of the list."""
        raise NotImplementedError

    def items(self) -> list[Any]:
        """All items, each as a Python object."""
        raise NotImplementedError

    def tree(self) -> tuple[list[Any], TreeDef]:
        """The leaves and the structure."""
        raise NotImplementedError


def is_numeric(rows: Rows) -> bool:
    """True if the items of rows are numbers, or lists of them, and no loop appends to them."""
    return rows.writer is None and rows.growth.treedef == _LEAF and rows.growth.scalars == [True]


def is_numeric_list(x: Any) -> bool:
    """True if something is a list of numbers, or of lists of them, that is an array."""
    return isinstance(x, PartedList) and x.rows is not None and is_numeric(x.rows)
