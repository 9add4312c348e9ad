"""Lists that loops of the program append to: during and after such a loop, their items are rows of arrays."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, MutableSequence, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from mlirml.core.tree import TreeDef, flatten
from mlirml.errors import CaptureError, UnsupportedSyntaxError
from mlirml.frontend.arrays import open_lists
from mlirml.frontend.arrays.array import Traced
from mlirml.frontend.arrays.carry import leaf_type_of
from mlirml.frontend.arrays.indexing import is_dynamic
from mlirml.frontend.arrays.list_parts import PartedList, Rows, is_numeric, is_numeric_list, number_rows, settle_items
from mlirml.frontend.arrays.number_lists import (
    become_rows,
    check_lengths,
    is_dynamic_integer,
    is_number,
    numbers_in,
    pays,
    store_item,
    view_of,
)
from mlirml.frontend.frames import at_user_line
from mlirml.frontend.iteration_limits import MOST_COPIES
from mlirml.ir.text.builder import Region

if TYPE_CHECKING:
    from mlirml.frontend.tracing.trace import Trace

_, _LEAF = flatten(0)
_AS_ARRAY = "iterate over it, or take an array of its numbers, `np.array(items)`"


class Columns:
    """The container type in a `TreeDef` for a list that is rows: a container of its columns."""

    def __init__(self, rows: Rows, trace: Trace) -> None:
        self.rows, self.trace = rows, trace
        growth = rows.growth
        length = rows.length if rows.counter is None else None
        self._key = length, rows.capacity, rows.depth, growth.treedef, tuple(growth.leaf_types), tuple(growth.scalars)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Columns) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    def _make(self, columns: Iterable[Traced]) -> GrowingList:
        counter, columns = None, tuple(columns)
        if self.rows.counter is not None:
            *columns, counter = columns
        found = GrowingList(self.trace, [replace(self.rows, columns=tuple(columns), counter=counter)])
        found.room = self.rows.room
        return found


class GrowingList(PartedList, MutableSequence[Any]):
    """A list of a traced function, which loops of the program may append to."""

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        """The class that `isinstance` sees: `list`. C code, which would access the memory of a list, sees the real
        one.
        """
        return list

    def tree(self) -> tuple[list[Any], TreeDef]:
        """The list as `mlirml.core.tree.flatten` returns it, with rows as columns."""
        rows = self.rows
        settle_items(self)
        if rows is None:
            return flatten(self.items())
        if rows.writer is not None or (rows.counter is not None and rows.room is None):
            return [self], _LEAF
        columns = [*rows.columns, *([] if rows.counter is None else [rows.counter])]
        numbers = tuple(range(len(columns)))
        return columns, TreeDef(Columns(rows, self.trace), numbers, tuple(_LEAF for _ in numbers))

    @property
    def is_counted(self) -> bool:
        """True if the data decide how many items there are."""
        return any(isinstance(part, Rows) and part.counter is not None for part in self.parts)

    @property
    def counted(self) -> int:
        """The number of items, or the most, without those that other iterations of the appending loop add."""
        rows = self.rows
        if rows is not None and rows.writer is not None:
            return rows.appended
        return sum(part.capacity if isinstance(part, Rows) else 1 for part in self.parts)

    def counts(self) -> tuple[Any, ...]:
        """Numbers that are equal as long as no item has been added or removed."""
        counters = [part.counter for part in self.parts if isinstance(part, Rows) and part.counter is not None]
        return self.counted, *((id(counter._cell), counter._cell.version) for counter in counters)

    def items(self) -> list[Any]:
        """All items, each as a Python object."""
        settle_items(self)
        self._check_closed("all of its items")
        self._check_counted("the Python objects")
        found: list[Any] = []
        for part in self.parts:
            found += self._items_of(part) if isinstance(part, Rows) else [part]
        return found

    def _items_of(self, rows: Rows) -> Iterator[Any]:
        return (self._item_of(rows, number) for number in range(rows.length))

    def item_of_rows(self, number: Any) -> Any:
        """An item of a list that is rows, at an index that is in bounds."""
        settle_items(self, number)
        assert self.rows is not None
        return self.rows.item(number)

    def _item_of(self, rows: Rows, number: Any) -> Any:
        """An item of rows: a copy, or a view of a list."""
        if not rows.depth:
            return rows.item(number)
        if self.rows is None:
            raise CaptureError(
                "an item of a list that is rows of an array before, and other lists after them",
                help="create the list before the loop that appends to it, and append in that loop only",
            )
        return view_of(self, number)

    def array(self) -> Any:
        """The array that `np.array` makes of the list."""
        settle_items(self)
        self._check_closed("an array of it")
        if not self.has_rows:
            return self.trace.array(self.parts)
        rows = self.rows
        if rows is None:
            return np.concatenate([p.array() for p in self._runs()])
        columns = rows.arrays()
        if rows.growth.treedef == _LEAF:
            return columns[0]
        if _is_flat(rows.growth.treedef):
            return np.stack(columns, axis=1)
        self._check_counted("an array of the items")
        return self.trace.array(self.items())

    def _check_counted(self, what: str) -> None:
        """Refuse what takes each item of a list whose length the data decide."""
        if self.is_counted:
            with at_user_line():
                raise self.as_open(
                    f"compiled code cannot take {what} of a list to which a loop appends as often as the data say",
                    _AS_ARRAY,
                )

    def as_open(self, message: str, help_: str) -> CaptureError:
        """An error that does not arise if the list has room for any number of items."""
        error = UnsupportedSyntaxError(message, help=help_)
        error.lists = self.sites()
        return error

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
        if self.room is not None:
            open_lists.append(self, value)
            return
        rows = self.rows
        if rows is not None and rows.counter is not None and rows.writer is None and not self._appending_loops():
            self._append_counted(rows, value)
        elif rows is None or rows.writer is None:
            self.parts.append(value)
        else:
            self.parts[0] = rows.writer.appended(rows, value)

    def _appending_loops(self) -> list[Any]:
        """The enclosing loops that may append to the list, innermost first; they are retraced once they do."""
        found = []
        region: Region | None = self.trace.builder.region
        while region is not None and region is not self.region:
            if getattr(region.construct, "appends", False):
                found.append(region.construct)
            region = region.parent
        return found

    def _append_counted(self, rows: Rows, value: Any) -> None:
        """Append outside of loops to a list whose length the data decide."""
        if not self._takes(rows, value) or self.trace.builder.region is not self.region:
            self._check_counted("an extension in a branch, or by another type,")
        (column,) = rows.columns
        number = rows.length
        longer: Any = np.concatenate([column, np.zeros(1, column.dtype)])
        longer[number] = value
        counter = rows.counter.copy()  # type: ignore[union-attr]
        counter[0] = number + 1
        self.parts = [replace(rows, columns=(longer,), counter=counter)]

    def _takes(self, rows: Rows, value: Any) -> bool:
        """True if a value can be an item of rows of numbers as they are."""
        if not is_numeric(rows) or not is_number(value):
            return False
        return leaf_type_of(value, "an item").dtype == rows.growth.leaf_types[0].dtype

    def extend(self, values: Iterable[Any]) -> None:
        if is_dynamic(values):
            values = self.trace.hooks.list_(list, values, grows=True)
        if not isinstance(values, GrowingList) or not values.is_counted:
            for value in [*values]:
                self.append(value)
        elif self.room is not None:
            open_lists.extend(self, values)
        else:
            self._check_alone()
            if self._appending_loops() or self.trace.builder.region is not self.region:
                with at_user_line():
                    raise self.as_open("a list is extended by items of which the data decide how many", _AS_ARRAY)
            self.parts = self._joined([self, values]).parts

    def __iadd__(self, values: Iterable[Any]) -> Any:  # type: ignore[misc]
        if _is_array(values):
            return self + values
        self.extend(values)
        return self

    def __len__(self) -> int:
        self._check_closed("its length")
        if self.room is not None and self.rows is not None:
            self._check_counted("the constant length")
        self._check_counted("the constant length")
        return int(self.length)

    def __bool__(self) -> bool:
        rows = self.rows
        if rows is not None and rows.counter is not None:
            return bool(rows.length > 0)
        if rows is None or rows.writer is None or rows.appended:
            return rows is not None or bool(self.length)
        rows.writer.check_index(rows, 0)
        return True

    def __iter__(self) -> Iterator[Any]:
        # One at a time, as Python does: an item may be replaced, or the list grow, before it is its turn.
        self._check_closed("all of its items")
        number, mixed = 0, self.has_rows
        while number < (len(self) if mixed else len(self.parts)):
            yield self[number] if mixed else self.parts[number]
            number, mixed = number + 1, mixed or any(type(part) is Rows for part in self.parts[:1])

    def __getitem__(self, index: Any) -> Any:
        if self.room is not None:
            return open_lists.item_at(self, index)
        rows = self.rows
        if rows is not None and rows.counter is not None:
            settle_items(self)
            if not is_numeric(replace(rows, writer=None)):
                self._check_counted("an item that is several numbers")
            if isinstance(index, slice):
                return open_lists.of_columns(self, rows, [rows.arrays()[0][index]])
            return rows.as_item(rows.arrays()[0][index])
        if rows is not None and rows.writer is not None:
            number = rows.writer.check_index(rows, index)
            settle_items(self, number)
            return rows.item(number)
        settle_items(self)
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
        with self._or_open():
            number = range(len(self))[index]  # with Python's own error
        for part in self.parts:
            length = part.length if isinstance(part, Rows) else 1
            if number < length:
                return self._item_of(part, number) if isinstance(part, Rows) else part
            number -= length
        raise AssertionError("within the list")

    def _item(self, index: Any) -> Any:
        """A Python object of the list. In the first attempt to trace an appending loop, any item will do."""
        if isinstance(index, slice):
            return self._alike(self.parts[index])
        known = not isinstance(index, Traced)
        if known and (not isinstance(index, int) or -len(self.parts) <= index < len(self.parts)):
            return self.parts[index]
        if self.grows and any(loop.note_read(self, index) for loop in reversed(self._appending_loops())):
            found = self.parts[-1]
            if isinstance(found, PartedList) and found.region is self.region:
                found.sample_of = self
            return found
        if self.becomes_rows(index):
            return self[index]
        with self._or_open():
            return self.parts[index]  # with the error of Python or of the array

    @contextmanager
    def _or_open(self) -> Iterator[None]:
        """Context manager: an error does not arise if the list has room for any number of items."""
        try:
            yield
        except (IndexError, ValueError, CaptureError) as error:
            if not getattr(error, "lists", ()):
                inner = [item.sites() for item in self.parts if isinstance(item, PartedList)]
                error.lists = self.sites().union(*inner)  # type: ignore[union-attr]
            raise

    def becomes_rows(self, index: Any) -> bool:
        """Convert the list to an array for a dynamic index, if it holds numbers and that pays; True if it was
        converted.
        """
        if self.has_rows or not is_dynamic_integer(index) or not pays(self.trace, index):
            return False
        check_lengths(self.parts)
        if numbers_in(self.parts) is None:
            return False
        become_rows(self)
        return True

    def _check_sample(self, index: Any) -> None:
        """Make rows of the list of lists that this one is any item of, before a store: no loop that appends to it could
        be compiled then.
        """
        holder = self.sample_of
        if holder is not None and holder.grows and is_dynamic_integer(index) and numbers_in(holder.parts) is not None:
            holder.grows = False
            become_rows(holder)

    def _changed(self) -> list[Any]:
        """The items as Python objects, before some of them are replaced."""
        settle_items(self)
        self._check_alone()
        if self.has_rows:
            self.parts = self.items()
        return self.parts

    def _check_alone(self) -> None:
        """Refuse to change a row of a list of lists in any way other than storing numbers into it."""
        self.whole.changed = True
        if self._either:
            raise UnsupportedSyntaxError(
                "a list changes that is one list or another", help="give it a copy, `list(a)`, and change that"
            )
        if self.owner is not None:
            error = UnsupportedSyntaxError(
                "a list that is an item of another list of lists of numbers changes its length, or its items otherwise "
                "than one by one",
                help="use a copy of it, `list(row)`",
            )
            error.lists = self.whole.sites() | self.whole.inner_sites
            raise error

    def __setitem__(self, index: Any, value: Any) -> None:
        settle_items(self)
        self.whole.changed = True
        if self.room is not None:
            open_lists.put(self, index, value)
            return
        with at_user_line():
            self._check_sample(index)
            if not self.becomes_rows(index) and isinstance(index, Traced) and index._known() is not None:
                index = index.__index__()
            rows = self.rows
            if self._either:
                self._check_alone()
            if rows is not None and rows.counter is not None and is_number(value) and is_numeric(rows):
                if not self._takes(rows, value):
                    self._check_counted("a store of another type into an item")
                rows.columns[0][: rows.length][index] = value
                return
            if rows is None or not is_numeric(rows) or isinstance(index, slice):
                with self._or_open():
                    self._changed()[index] = value
                return
            here = self.owner is None and self.trace.builder.region is self.region
            if here and not isinstance(index, Traced) and (rows.depth or not is_number(value)):
                self._changed()[index] = value  # converted back to Python objects, of which this one may be any
                return
            store_item(self, rows, index, value)

    def __delitem__(self, index: Any) -> None:
        settle_items(self)
        if self.room is not None:
            open_lists.pop(self, index, "list assignment index out of range")
            return
        with self._or_open():
            del self._changed()[index]

    def pop(self, index: Any = -1) -> Any:
        """`list.pop`."""
        settle_items(self)
        if self.room is not None:
            return open_lists.pop(self, index)
        with self._or_open():
            try:
                return super().pop(index)
            except IndexError as error:
                if type(error) is not IndexError:
                    raise
                raise IndexError("pop index out of range" if self.parts else "pop from empty list") from None

    def clear(self) -> None:
        """`list.clear`."""
        settle_items(self)
        if self.room is not None:
            open_lists.clear(self)
            return
        super().clear()

    def remove(self, value: Any) -> None:
        """`list.remove`."""
        if self.room is not None:
            open_lists.pop(self, open_lists.index_of(self, value, "list.remove(x): x not in list"))
            return
        with self._or_open():
            try:
                super().remove(value)
            except ValueError as error:
                if type(error) is not ValueError:
                    raise
                raise ValueError("list.remove(x): x not in list") from None

    def index(self, value: Any, *limits: Any) -> Any:
        """`list.index`."""
        counted = self.rows is not None and self.rows.counter is not None
        if (self.room is not None or counted) and not limits:
            return open_lists.index_of(self, value, "the value is not in the list")
        with self._or_open():
            return [*self].index(value, *limits)  # with Python's own error

    def reverse(self) -> None:
        """`list.reverse`."""
        settle_items(self)
        if self.room is None:
            super().reverse()
            return
        open_lists.check_rows(self.room)
        for column in () if self.rows is None else self.rows.columns:
            part = column[: self.rows.length]  # type: ignore[union-attr]
            part[...] = part[::-1].copy()

    def rotate(self, n: Any = 1) -> None:
        """`deque.rotate`; a deque that loops change is a list."""
        settle_items(self)
        if self.room is not None:
            open_lists.rotate(self, n)
            return
        with self._or_open():
            steps = n.__index__()
        if items := self._changed():
            steps %= len(items)
            items[:] = [*items[len(items) - steps :], *items[: len(items) - steps]]

    def insert(self, index: int, value: Any) -> None:
        settle_items(self)
        if self.room is not None:
            open_lists.insert(self, index, value)
            return
        with self._or_open():
            self._changed().insert(index, value)

    def sort(self, *, key: Any = None, reverse: bool = False) -> None:
        """`list.sort`."""
        self.whole.changed = True
        rows = self.rows
        if key is None and rows is not None and is_numeric(rows) and not rows.depth:
            (column,) = rows.columns
            part = slice(None) if rows.counter is None else slice(rows.length)
            numbers: Any = np.sort(column[part])
            column[part] = numbers[::-1] if reverse else numbers
            return
        self._check_alone()
        self.parts = list(self.trace.hooks.function(sorted)(self, key=key, reverse=reverse))

    def copy(self) -> GrowingList:
        """`list.copy`."""
        settle_items(self)
        self._check_closed("a copy of it")
        parts = [part.copied() if isinstance(part, Rows) else part for part in self.parts]
        return self._alike(parts)

    def _alike(self, parts: list[Any]) -> GrowingList:
        """A list of items of this one, which has room for any number of them if this one has."""
        found = GrowingList(self.trace, parts, grows=self.grows)
        found.room, found.site = self.room, self.site
        return found

    __copy__ = copy

    def __add__(self, other: Any) -> Any:
        return self._by_items(np.add, self, other) if _is_array(other) else self._joined([self, other])

    def __radd__(self, other: Any) -> Any:
        return self._by_items(np.add, other, self) if _is_array(other) else self._joined([other, self])

    def _by_items(self, ufunc: np.ufunc, *operands: Any) -> Any:
        """An operator of a list and an array, which is the array's."""
        arrays = (self.trace.array(x, copy=False) if isinstance(x, np.ndarray) else x for x in operands)
        return self.trace.call_operator(ufunc, tuple(arrays))

    def __mul__(self, count: Any) -> Any:
        if _is_array(count) and not isinstance(count, np.generic) and not getattr(count, "_scalar", False):
            return self._by_items(np.multiply, self, count)
        return self._joined([self] * count.__index__())

    __rmul__ = __mul__

    def __eq__(self, other: object) -> Any:
        if _is_array(other):
            return self._by_items(np.equal, self, other)
        if other is self or not isinstance(other, list):
            return other is self
        if type(other) is list and not other and self.rows is not None and self.rows.counter is not None:
            return self.rows.length == 0
        if is_numeric_list(self) and is_numeric_list(other):
            self._check_counted("a comparison")
            other._check_counted("a comparison")  # type: ignore[attr-defined]
            one, two = self.array(), other.array()  # type: ignore[attr-defined]
            return one.shape == two.shape and (one == two).all()
        return [*self] == [*other]

    def __ne__(self, other: object) -> Any:
        equal = self == other
        return np.logical_not(equal) if isinstance(equal, Traced) else not equal

    def count(self, value: Any) -> Any:
        """The number of items that are equal to a value."""
        if is_numeric_list(self) and is_number(value):
            return (self.array() == value).sum()
        return super().count(value)

    def _joined(self, lists: Sequence[Any]) -> Any:
        """The items of several lists; many numbers of one type, some of which are rows, are rows of a new array."""
        opened = next((one for one in lists if isinstance(one, GrowingList) and one.room is not None), None)
        if opened is not None and all(isinstance(one, list) for one in lists):
            return opened.chained(lists)
        for one in lists:
            if isinstance(one, GrowingList):
                settle_items(one)
                if one.is_counted and not all(isinstance(other, list) for other in lists):
                    one._check_counted("a concatenation")
        if any(isinstance(one, GrowingList) and one.is_counted for one in lists):
            with at_user_line():
                return open_lists.joined_lists(self, lists)
        parts = [part for one in lists for part in (one.parts if isinstance(one, GrowingList) else one)]
        rows = [part for part in parts if isinstance(part, Rows)]
        types = [part.growth.leaf_types[0] for part in rows if is_numeric(part) and not part.depth]
        types += [leaf_type_of(part, "an item") for part in parts if is_number(part)]
        alike = len(types) == len(parts) and all(one == types[0] for one in types)
        if not (rows and alike and len(parts) - len(rows) + sum(part.length for part in rows) > MOST_COPIES):
            return [item for one in lists for item in one]
        return GrowingList(self.trace, [number_rows(GrowingList(self.trace, parts).array(), types[0])])

    def chained(self, lists: Sequence[Any]) -> GrowingList:
        """A new list with the room of this one, of the items of several."""
        found = self.copy()
        if lists[0] is not self:
            found.clear()
        for one in lists[lists[0] is self :]:
            found.extend(one)
        return found

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return repr(self.items())


def _is_array(x: Any) -> bool:
    """True for an array, or a NumPy scalar, whose operators a list leaves to it."""
    return is_dynamic(x) or isinstance(x, (np.ndarray, np.generic)) or (isinstance(x, Traced) and not x._is_weak())


def _is_flat(treedef: TreeDef) -> bool:
    """True if items are tuples or lists of arrays or numbers."""
    return treedef.kind in (tuple, list) and all(child == _LEAF for child in treedef.children)
