"""Lists that loops of the program append to: during and after such a loop, their items are rows of arrays."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Iterator, MutableSequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from mlirml.core.dataclass import dataclass
from mlirml.core.tree import TreeDef, flatten
from mlirml.errors import UnsupportedSyntaxError
from mlirml.frontend.frames import at_user_line
from mlirml.frontend.tracing.array import Cell, Traced
from mlirml.frontend.tracing.carry import LeafType
from mlirml.ir.text.builder import Region

if TYPE_CHECKING:
    from mlirml.frontend.tracing.trace import Trace

_, _LEAF = flatten(0)


@dataclass(frozen=True, eq=False)
class Counts:
    """The numbers of items that the iterations of a loop append: `most`, or the array `each`."""

    most: int
    iterations: int
    each: np.ndarray | None = None

    @property
    def total(self) -> int:
        """The total number of items."""
        return self.most * self.iterations if self.each is None else int(self.each.sum())

    @property
    def before(self) -> np.ndarray:
        """For each iteration, the number of items appended by all earlier ones."""
        assert self.each is not None
        before: np.ndarray = np.cumsum(self.each) - self.each
        return before


@dataclass
class Growth:
    """Facts about a list learned in earlier attempts to trace a loop: items per iteration, and the structure of an
    item.
    """

    counts: Counts
    treedef: TreeDef
    leaf_types: list[LeafType]
    scalars: list[bool]


class Columns:
    """The container type in a `TreeDef` for a list that is rows: a container of its columns."""

    def __init__(self, rows: Rows, trace: Trace) -> None:
        self.rows, self.trace = rows, trace
        growth = rows.growth
        self._key = rows.length, rows.depth, growth.treedef, tuple(growth.leaf_types), tuple(growth.scalars)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Columns) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    def _make(self, columns: Iterable[Traced]) -> GrowingList:
        return GrowingList(self.trace, [replace(self.rows, columns=tuple(columns))])


@dataclass(frozen=True, eq=False)
class Rows:
    """Items of one structure: leaf n of each item is a row of `columns[n]`, an array as long as the list may become.

    `length` is dynamic while a loop, `writer`, appends: then `appended` of the items are from this iteration. Items
    that are lists of numbers, nested `depth` deep, are rows of one array.
    """

    columns: tuple[Traced, ...]
    growth: Growth
    length: Any
    writer: Any = None
    appended: int = 0
    depth: int = 0

    def row(self, number: Any) -> Rows:
        """An item that is a list."""
        (column,) = self.columns
        return replace(self, columns=(column[number],), length=column.shape[1], depth=self.depth - 1)

    def item(self, number: Any) -> Any:
        """A copy of an item at an index that is in bounds."""
        growth, leaves = self.growth, []
        for column, leaf_type, scalar in zip(self.columns, growth.leaf_types, growth.scalars):
            element = column[number]
            if scalar and leaf_type.weak and isinstance(number, int) and (known := element._known()) is not None:
                leaves.append(known[()].item())
                continue
            value = replace(element._read(), weak=leaf_type.weak)
            leaf = Traced(column._trace, Cell(value, owned=True), scalar=scalar)
            leaf._cell.frozen = "a store into an item of a list, which is a row of an array after a loop"
            leaves.append(leaf)
        return growth.treedef.unflatten(leaves)

    def sliced(self, part: slice) -> Rows:
        """A slice of the items with a static length."""
        return replace(self, columns=tuple(c[part].copy() for c in self.columns), length=len(range(self.length)[part]))

    def copied(self) -> Rows:
        """The same items in copied arrays."""
        return replace(self, columns=tuple(c.copy() for c in self.columns))


class GrowingList(MutableSequence[Any]):
    """A list of a traced function, which loops of the program may append to.

    `parts` are items and, during or after a loop, `Rows` of them. A list of numbers is rows from its creation on if
    loops index it (`wants_rows`), for numbers of the type `leaf_type`. A list that is a row of another list, `owner`,
    is item `number` of it.
    """

    def __init__(self, trace: Trace, items: Iterable[Any], *, grows: bool = True) -> None:
        self._parts: list[Any] = list(items)
        self._either: list[tuple[Any, list[Any]]] = []
        self.trace = trace
        self.grows = grows
        self.region = self.seen_in = trace.builder.region
        self.wants_rows = False
        self.leaf_type: LeafType | None = None
        self.owner: GrowingList | None = None
        self.number: Any = None
        self._views: list[weakref.ref[GrowingList]] = []

    @property
    def parts(self) -> list[Any]:
        """Items, and `Rows` of them."""
        for source, items in self._either:
            now = source.parts if type(source) is GrowingList else source
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
        self._either = [(one, [*(one.parts if type(one) is GrowingList else one)]) for one in sources]

    @property
    def whole(self) -> GrowingList:
        """The outermost list that this one is a row of."""
        return self if self.owner is None else self.owner.whole

    def note_view(self, row: GrowingList) -> None:
        """Record a list that is a row of this one."""
        self._views = [view for view in self._views if view() is not None]
        self._views.append(weakref.ref(row))

    def views(self) -> list[GrowingList]:
        """The rows of this list that are in use, without those of abandoned attempts."""
        return [found for view in self._views if (found := view()) is not None and found.seen_in.open]

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        """The class that `isinstance` sees: `list`. C code, which would access the memory of a list, sees the real
        one.
        """
        return list

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

    def tree(self) -> tuple[list[Any], TreeDef]:
        """The list as `mlirml.core.tree.flatten` returns it, with rows as columns."""
        rows = self.rows
        if rows is None:
            return flatten(self.items())
        if rows.writer is not None:
            return [self], _LEAF
        numbers = tuple(range(len(rows.columns)))
        return [*rows.columns], TreeDef(Columns(rows, self.trace), numbers, tuple(_LEAF for _ in numbers))

    @property
    def counted(self) -> int:
        """The number of items, without those that other iterations of the appending loop add."""
        rows = self.rows
        return rows.appended if rows is not None and rows.writer is not None else self.length

    def items(self) -> list[Any]:
        """All items, each as a Python object."""
        self._check_closed("all of its items")
        found: list[Any] = []
        for part in self.parts:
            found += self._items_of(part) if isinstance(part, Rows) else [part]
        return found

    def _items_of(self, rows: Rows) -> Iterator[Any]:
        return (self._item_of(rows, number) for number in range(rows.length))

    def _item_of(self, rows: Rows, number: Any) -> Any:
        """An item of rows: a copy, or a view of a list."""
        if not rows.depth:
            return rows.item(number)
        from mlirml.frontend.tracing.number_lists import view_of

        return view_of(self, number)

    def array(self) -> Any:
        """The array that `np.array` makes of the list."""
        self._check_closed("an array of it")
        if not self.has_rows:
            return self.trace.array(self.parts)
        rows = self.rows
        if rows is None:
            return np.concatenate([p.array() for p in self._runs()])
        columns = [Traced(self.trace, Cell(replace(c._read(), weak=False), owned=True)) for c in rows.columns]
        if rows.growth.treedef == _LEAF:
            return columns[0]
        return np.stack(columns, axis=1) if _is_flat(rows.growth.treedef) else self.trace.array(self.items())

    def _runs(self) -> Iterator[GrowingList]:
        """The list split into runs that are rows entirely, or not at all."""
        items: list[Any] = []
        for part in self.parts:
            if isinstance(part, Rows):
                if items:
                    yield GrowingList(self.trace, items)
                yield GrowingList(self.trace, [part])
                items = []
            else:
                items.append(part)
        if items:
            yield GrowingList(self.trace, items)

    def _check_closed(self, what: str) -> None:
        rows = self.rows
        if rows is not None and rows.writer is not None:
            raise rows.writer.refused(f"a loop appends to a list and takes {what}")

    # Methods of `list`.

    def append(self, value: Any) -> None:
        self._check_alone()
        rows = self.rows
        if rows is None or rows.writer is None:
            self.parts.append(value)
        else:
            self.parts[0] = rows.writer.appended(rows, value)

    def extend(self, values: Iterable[Any]) -> None:
        for value in [*values]:
            self.append(value)

    def __iadd__(self, values: Iterable[Any]) -> GrowingList:  # type: ignore[misc]
        self.extend(values)
        return self

    def __len__(self) -> int:
        self._check_closed("its length")
        return int(self.length)

    def __bool__(self) -> bool:
        rows = self.rows
        if rows is None or rows.writer is None or rows.appended:
            return rows is not None or bool(self.length)
        rows.writer.check_index(rows, 0)
        return True

    def __iter__(self) -> Iterator[Any]:
        self._check_closed("all of its items")
        for part in [*self.parts]:
            if isinstance(part, Rows):
                yield from self._items_of(part)
            else:
                yield part

    def __getitem__(self, index: Any) -> Any:
        rows = self.rows
        if rows is not None and rows.writer is not None:
            return rows.item(rows.writer.check_index(rows, index))
        if not self.has_rows:
            return self._item(index)
        if isinstance(index, slice):
            return GrowingList(self.trace, [rows.sliced(index)] if rows is not None else self.items()[index])
        if isinstance(index, Traced):
            if rows is None:
                raise UnsupportedSyntaxError(
                    "an index that is known only at run time, into a list of which loops have made parts",
                    help="take an array of it, `np.stack(items)[i]`",
                )
            return self._item_of(rows, index)
        number = range(len(self))[index]  # with Python's own error
        for part in self.parts:
            length = part.length if isinstance(part, Rows) else 1
            if number < length:
                return self._item_of(part, number) if isinstance(part, Rows) else part
            number -= length
        raise AssertionError("within the list")

    def _item(self, index: Any) -> Any:
        """A Python object of the list. In the first attempt to trace an appending loop, any item will do."""
        around = []
        region: Region | None = self.trace.builder.region
        while region is not None:
            if getattr(region.construct, "appends", False):
                around.append(region.construct)
            region = region.parent
        known = not isinstance(index, Traced)
        if known and (not isinstance(index, int) or -len(self.parts) <= index < len(self.parts)):
            return self.parts[index]
        if self.grows and any(loop.note_read(self, index) for loop in reversed(around)):
            return self.parts[-1]
        if self.becomes_rows(index):
            return self[index]
        return self.parts[index]  # with the error of Python or of the array

    def becomes_rows(self, index: Any) -> bool:
        """Convert the list to an array for a dynamic index, if it holds numbers and that pays; True if it was
        converted.
        """
        from mlirml.frontend.tracing.number_lists import become_rows, is_dynamic_integer, numbers_in, pays

        if (
            self.has_rows
            or not is_dynamic_integer(index)
            or numbers_in(self.parts) is None
            or not pays(self.trace, index)
        ):
            return False
        become_rows(self)
        return True

    def _changed(self) -> list[Any]:
        """The items as Python objects, before some of them are replaced."""
        self._check_alone()
        if self.has_rows:
            self.parts = self.items()
        return self.parts

    def _check_alone(self) -> None:
        """Refuse to change a row of a list of lists in any way other than storing numbers into it."""
        if self._either:
            raise UnsupportedSyntaxError(
                "a list changes that is one list or another", help="give it a copy, `list(a)`, and change that"
            )
        if self.owner is not None:
            raise UnsupportedSyntaxError(
                "a list that is an item of another list of lists of numbers changes its length, or its items otherwise "
                "than one by one",
                help="use a copy of it, `list(row)`",
            )

    def __setitem__(self, index: Any, value: Any) -> None:
        from mlirml.frontend.tracing.number_lists import is_number, is_numeric, store_item

        with at_user_line():
            if not self.becomes_rows(index) and isinstance(index, Traced) and index._known() is not None:
                index = index.__index__()
            rows = self.rows
            if self._either:
                self._check_alone()
            if rows is None or not is_numeric(rows) or isinstance(index, slice):
                self._changed()[index] = value
                return
            here = self.owner is None and self.trace.builder.region is self.region
            if here and not isinstance(index, Traced) and (rows.depth or not is_number(value)):
                self._changed()[index] = value  # converted back to Python objects, of which this one may be any
                return
            store_item(self, rows, index, value)

    def __delitem__(self, index: Any) -> None:
        del self._changed()[index]

    def insert(self, index: int, value: Any) -> None:
        self._changed().insert(index, value)

    def sort(self, *, key: Any = None, reverse: bool = False) -> None:
        """`list.sort`."""
        from mlirml.frontend.tracing.number_lists import is_numeric

        rows = self.rows
        if key is None and rows is not None and is_numeric(rows) and not rows.depth:
            (column,) = rows.columns
            numbers: Any = np.sort(column)
            column[...] = numbers[::-1] if reverse else numbers
            return
        self._changed().sort(key=key, reverse=reverse)

    def copy(self) -> GrowingList:
        """`list.copy`."""
        self._check_closed("a copy of it")
        parts = [part.copied() if isinstance(part, Rows) else part for part in self.parts]
        return GrowingList(self.trace, parts, grows=self.grows)

    __copy__ = copy

    def __add__(self, other: Any) -> Any:
        return [*self, *other]

    def __radd__(self, other: Any) -> Any:
        return [*other, *self]

    def __mul__(self, count: int) -> Any:
        return [*self] * count

    __rmul__ = __mul__

    def __eq__(self, other: object) -> bool:
        return isinstance(other, list) and [*self] == [*other]

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return repr(self.items())


def _is_flat(treedef: TreeDef) -> bool:
    """True if items are tuples or lists of arrays or numbers."""
    return treedef.kind in (tuple, list) and all(child == _LEAF for child in treedef.children)


def stacked(items: GrowingList, axis: int = 0, **options: Any) -> Any:
    """`np.stack` of a list."""
    found = items.array()
    if options:
        found = found.astype(options.pop("dtype"), casting=options.pop("casting", "same_kind"), **options)
    return np.moveaxis(found, 0, axis) if axis else found


def _concatenated(items: GrowingList, axis: int | None = 0, **options: Any) -> Any:
    """`np.concatenate` of a list of arrays."""
    array = items.array()
    if options or array.ndim < 2:
        return np.concatenate(items.items(), axis, **options)
    if axis is None:
        return array.reshape(-1)
    axis = range(array.ndim - 1)[axis]
    sizes = list(array.shape[1:])
    sizes[axis] *= array.shape[0]
    return np.moveaxis(array, 0, axis).reshape(sizes)


def _vertical(items: GrowingList, **options: Any) -> Any:
    """`np.vstack` of a list."""
    array = items.array()
    if options or array.ndim > 2:
        return _concatenated(items, 0, **options)
    return array if array.ndim == 2 else array[:, None]


def _horizontal(items: GrowingList, **options: Any) -> Any:
    """`np.hstack` of a list."""
    array = items.array()
    return array if array.ndim == 1 and not options else _concatenated(items, 0 if array.ndim == 2 else 1, **options)


OF_SEQUENCES: dict[Any, Callable[..., Any]] = {
    np.stack: stacked,
    np.concatenate: _concatenated,
    np.vstack: _vertical,
    np.hstack: _horizontal,
}
"""NumPy's functions of lists of arrays, for a list whose items are rows."""
