"""Lists whose lengths only the data decide: rows of arrays with room for items, and a count of those that are there.

    stack = [(0, 0)]                  ys, xs = np.zeros(1024, int), np.zeros(1024, int); count = 1
    while stack:                      while count > 0:
        y, x = stack.pop()                count -= 1; y, x = ys[count], xs[count]
        ...
        stack.append((y + 1, x))          assert count < 1024; ys[count], xs[count] = y + 1, x; count += 1

A list that cannot be compiled otherwise is such a list from its creation on: the function is traced anew for that.
Where a list outgrows its room when the program runs, the call is repeated by a program with more room.
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from dataclasses import field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from mlirml.core.dataclass import dataclass
from mlirml.core.rooms import CAPACITIES, capacity_of, shares_room
from mlirml.core.tree import TreeDef, flatten
from mlirml.errors import CaptureError, OutgrownListError, UnsupportedSyntaxError
from mlirml.frontend.arrays.array import Traced
from mlirml.frontend.arrays.carry import LeafType, joined, leaf_type_of
from mlirml.frontend.arrays.constructs import Restart
from mlirml.frontend.arrays.list_parts import (
    Counts,
    Growth,
    PartedList,
    Rows,
    is_mutable,
    is_numeric,
    is_of_rows,
    note_appended,
    note_copied,
    settle_items,
)
from mlirml.frontend.arrays.number_lists import become_rows, is_number, numbers_in, widen
from mlirml.frontend.arrays.tracer import Cell
from mlirml.frontend.frames import at_user_line
from mlirml.ir.text import control
from mlirml.ir.text.builder import Check, Region

if TYPE_CHECKING:
    from mlirml.frontend.tracing.trace import Trace


@dataclass(eq=False)
class Room:
    """The room of the lists that an expression creates: the structure of an item, once one is known.

    `site` names the expression by its file, line and column.
    """

    site: str
    growth: Growth | None = None
    rows: list[weakref.ref[PartedList]] = field(default_factory=list)  # items that are lists, and in use
    guessed: bool = False  # whether items are taken for integers, as one is read before one is appended
    filled_later: bool = False  # whether items get their structure after they are appended

    @property
    def capacity(self) -> int:
        """The most items of a list."""
        return capacity_of(self.site)


def opened(found: PartedList, room: Room) -> None:
    """Make rows with room of a new list; without items they are made once it is known what is appended."""
    items, trace, numbers = found.parts, found.trace, found.rows
    lists = [id(item) for item in items if isinstance(item, PartedList)]
    if len(set(lists)) < len(lists):
        raise _refused("one list that is two items", "make a list for each, `[[] for _ in range(n)]`,")
    found.room = room
    rooms = {item.room.site for item in items if isinstance(item, PartedList) and item.room is not None}
    smaller = [shares_room(site, len(items)) for site in sorted(rooms)]
    if any(smaller):
        raise Restart
    if numbers is not None:  # of `list(x)`
        items = [numbers.as_item(numbers.columns[0][0])] if numbers.length else []
    for item in items:
        learn(room, item)
    if room.growth is None:
        trace.lists_without_items = True
        found.parts = []
        return
    count = len(items) if numbers is None else numbers.length
    capacity = capacity_of(room.site, count + 1)
    columns = [_zeros(trace, (capacity, *one.shape), one.dtype) for one in room.growth.leaf_types]
    counter = _zeros(trace, (1,), np.dtype(np.int64))
    if count or items:
        counter[0] = count
    else:
        found.empty = counter, counter._cell.version
    rows = Rows(tuple(columns), room.growth, None, counter=counter, room=room)
    if numbers is not None:
        columns[0][:count] = numbers.columns[0]
        items = []
    for number, item in enumerate(items):
        if not _is_empty(item):  # the columns are zeros
            _store(found, rows, number, item)
        note_copied(trace, item, *_flat(item), appended=True)
    found.parts = [rows]
    trace.guards["room", room.site] = CAPACITIES, room.site, CAPACITIES[room.site]


def _is_empty(item: Any) -> bool:
    """True for a list without items that nothing has changed since it was created."""
    if not isinstance(item, PartedList) or item.empty is None or item.rows is None:
        return False
    counter, version = item.empty
    return item.rows.counter is counter and bool(counter._cell.version == version)


def _zeros(trace: Trace, shape: tuple[int, ...], dtype: np.dtype) -> Traced:
    return Traced(trace, Cell(trace.builder.filled(shape, dtype, 0), owned=True))


def check_rows(room: Room) -> None:
    """Refuse to replace or move items that are lists while one of them has a name: it would be another item then."""
    room.rows = [row for row in room.rows if (found := row()) is not None and found.seen_in.open]
    if room.rows:
        raise _refused(
            "a list in a list is replaced or moved while one has a name: items", "change its items, `row.clear()`,"
        )


def learn(room: Room, item: Any) -> bool:
    """Extend the types of items to those of a further one; True if they change.

    A list of numbers becomes rows where others are: loops index some of the lists that one expression creates.
    """
    known = room.growth
    if known is not None and is_of_rows(known.treedef) and isinstance(item, PartedList):
        _match_rows(item, known.treedef.kind.rows.growth.leaf_types[0])
    if known is not None and is_of_rows(known.treedef) and known.treedef.kind.rows.room is not None:
        _match_rooms_of_items(known.treedef.kind.rows.room, item)
    leaves, treedef = _flat(item)
    if not leaves or not all(is_number(leaf) or isinstance(leaf, Traced) for leaf in leaves):
        raise _refused("an item that is no number, array, tuple or dict of them", "append numbers or arrays")
    leaf_types = [leaf_type_of(leaf, "an item") for leaf in leaves]
    scalars = [is_number(leaf) for leaf in leaves]
    if known is None or room.guessed or _become_rows(known.treedef, treedef):
        room.guessed = False
        room.growth = Growth(Counts(0, 0), treedef, leaf_types, scalars)
        return True
    both = [joined(*pair) for pair in zip(known.leaf_types, leaf_types)]
    if treedef != known.treedef or None in both or scalars != known.scalars:
        raise _refused("items of several types", "append items of one type and shape, in the same containers")
    wider = [one for one in both if one is not None]
    if wider == known.leaf_types:
        return False
    known.leaf_types = wider
    return True


def _match_rooms_of_items(room: Room, item: Any) -> None:
    """Give an item that is a list as much room as others, and items of one type."""
    if isinstance(item, PartedList) and item.room is None and item.sites():
        error = _refused("a list without room as an item", "append a new list, `[]`,")
        error.lists = item.sites()
        raise error
    if isinstance(item, PartedList) and item.room is not None and item.room is not room:
        _match([room, item.room])


def _as_row(found: PartedList, rows: Rows, value: Any) -> Any:
    """A plain list as an item of a list of lists with room."""
    treedef = rows.growth.treedef
    room = treedef.kind.rows.room if is_of_rows(treedef) else None
    if type(value) is not list or room is None:
        return value
    note_copied(found.trace, value, *flatten(value), appended=True)
    row = type(found)(found.trace, value)
    opened(row, room)
    return row


def _match_rows(item: PartedList, leaf_type: LeafType) -> None:
    """Make an item that is a list of numbers rows of a type as wide as that of others."""
    if item.rows is None and numbers_in(item.parts) is not None:
        become_rows(item)
    if item.rows is not None and is_numeric(item.rows):
        both = joined(item.rows.growth.leaf_types[0], leaf_type)
        if both is not None and both != item.rows.growth.leaf_types[0]:
            widen(item, both)


def _become_rows(known: TreeDef, new: TreeDef) -> bool:
    """True if lists of a structure turn out to be rows of arrays, or rows of a wider type."""
    if known == new or not is_of_rows(new):
        return False
    return known.kind is list or (is_of_rows(known) and known.kind.rows.capacity == new.kind.rows.capacity)


def _flat(item: Any) -> tuple[list[Any], TreeDef]:
    if isinstance(item, PartedList) and item.room is not None:
        if item.rows is None:
            _guess(item)
        if item.is_row:
            raise _no_copy("a list that is an item of another list is an item of a further one")
        return item.tree()
    if isinstance(item, PartedList) and item.has_rows and (item.rows is None or item.rows.counter is not None):
        raise _refused("lists that grow as items", "use a tuple, or an array of two dimensions")
    return item.tree() if isinstance(item, PartedList) else flatten(item)


def _refused(what: str, help_: str) -> CaptureError:
    return UnsupportedSyntaxError(f"{what} of a list whose length the data decide", help=help_)


def _store(found: PartedList, rows: Rows, number: Any, item: Any) -> None:
    leaves, _ = _flat(item)
    for column, leaf in zip(rows.columns, leaves):
        if not is_number(leaf) and not isinstance(item, PartedList):
            _freeze(found, leaf)
        column[number] = leaf


def _restore(found: PartedList, rows: Rows, number: Any, item: Any) -> None:
    """Store an item that has changed since it was appended."""
    room = rows.room
    if _flat(item)[1] != rows.growth.treedef and not room.filled_later:
        room.growth, room.filled_later = None, True
    _fit(found, rows, item)
    _store(found, rows, number, item)


def _freeze(found: PartedList, leaf: Traced) -> None:
    """Refuse an array that may be stored into after it was appended: the list has a copy of it."""
    cell = leaf._cell
    region: Region | None = found.trace.builder.region
    while region is not cell.region:
        if region is None or hasattr(region.construct, "appends"):
            raise _no_copy("an array from outside of the loop is an item")
        region = region.parent
    if leaf._views or not cell.owned:
        raise _no_copy("a view of an array is an item")
    cell.frozen = "a store into an array that is an item of a list"


def _no_copy(what: str) -> CaptureError:
    error = _refused(what, "append a copy, `items.append(x.copy())`")
    error.final = True
    return error


def _check(found: PartedList, condition: Any, error: Exception) -> None:
    """Let the call raise an error if a condition on numbers does not hold."""
    b = found.trace.builder
    if not isinstance(condition, Traced):
        if condition:
            return
        holds = b.scalar(False, np.dtype(np.bool_))
    else:
        holds = control.to_scalar(b, condition._read())
    b.check(holds, Check(type(error).__name__, str(error), raised=error))


def _clamped(rows: Rows, number: Any) -> Any:
    """A position within the room, as what follows a failed check is executed all the same."""
    return np.minimum(np.maximum(number, 0), rows.capacity - 1)


def _fit(found: PartedList, rows: Rows, value: Any) -> None:
    """Start anew if the rows do not take a value as it is."""
    assert isinstance(rows.room, Room)
    if learn(rows.room, value):
        raise Restart


def _guess(found: PartedList) -> None:
    """Start anew with integers as the items of a list, of which one is read where none was appended yet."""
    learn(found.room, 0)
    found.room.guessed = True
    raise Restart


def match_rooms(one: Any, other: Any) -> None:
    """Start anew with as much room in the lists of two expressions as in either, and items of one type."""
    rooms = [x.room for x in (one, other) if isinstance(x, PartedList) and x.room is not None]
    if len(rooms) == 2 and rooms[0] is not rooms[1]:
        _match(rooms)


def _match(rooms: Sequence[Any]) -> None:
    grown = [room.growth for room in rooms]
    if None in grown:
        _match_empty(rooms)
        return
    if grown[0].treedef != grown[1].treedef:
        return
    both = [joined(*pair) for pair in zip(grown[0].leaf_types, grown[1].leaf_types)]
    capacity = max(room.capacity for room in rooms)
    changed = any(room.capacity < capacity or room.growth.leaf_types != both for room in rooms)
    if None in both or not changed:
        return
    for room in rooms:
        capacity_of(room.site, capacity)
        room.growth.leaf_types = both
    raise Restart


def _match_empty(rooms: Sequence[Any]) -> None:
    """Start anew with the items of one list as those of another one, of which nothing is known."""
    known = next((room.growth for room in rooms if room.growth is not None), None)
    for room in rooms:
        if known is not None and room.growth is None:
            room.growth = replace(known, leaf_types=[*known.leaf_types])
            raise Restart


def append(found: PartedList, value: Any) -> None:
    """`list.append`."""
    insert(found, None, value)


def insert(found: PartedList, index: Any, value: Any) -> None:
    """`list.insert`; without an index at the end."""
    with at_user_line():
        rows, room = found.rows, found.room
        assert isinstance(room, Room)
        if rows is None:
            learn(room, value)
            raise Restart
        value = _as_row(found, rows, value)
        ready = not room.filled_later or not is_mutable(value) or _flat(value)[1] == rows.growth.treedef
        if ready:
            _fit(found, rows, value)
        count: Any = rows.length
        _check(found, count < rows.capacity, OutgrownListError(room.site, rows.capacity))
        number: Any = count
        if index is not None:
            check_rows(room)
            number = _at_least_zero(index, count)
            number = np.minimum(number, count)
            _shift(rows, number, 1)
        number = _clamped(rows, number)
        store = partial(_restore, found, rows, number)
        if ready:
            _store(found, rows, number, value)
        if is_mutable(value):
            note_appended(found, number, value, store, stored=ready)
        rows.counter[0] = np.minimum(count + 1, rows.capacity)  # type: ignore[index]


def _at_least_zero(index: Any, count: Any) -> Any:
    """An index counted from the start, at least 0."""
    if not isinstance(index, Traced):
        return index if index >= 0 else np.maximum(count + index, 0)
    return np.maximum(np.where(np.less(index, 0), index + count, index), 0)


def _shift(rows: Rows, number: Any, step: int) -> None:
    """Move the items from a position on by one: up to insert one there (`step` 1), or down over it (-1)."""
    for column in rows.columns:
        rest = np.arange(rows.capacity - 1) >= number
        rest = rest.reshape((-1,) + (1,) * (column.ndim - 1))
        upper, lower = column[1:].copy(), column[:-1].copy()
        if step > 0:
            column[1:] = np.where(rest, lower, upper)
        else:
            column[:-1] = np.where(rest, upper, lower)


def position(found: PartedList, rows: Rows, index: Any, message: str) -> Any:
    """The position of an item, checked to exist."""
    count: Any = rows.length
    number: Any
    if isinstance(index, Traced):
        number = np.where(np.less(index, 0), index + count, index)
        _check(found, np.logical_and(number >= 0, number < count), IndexError(message))
    else:
        number = index if index >= 0 else count + index
        _check(found, number < count if index >= 0 else number >= 0, IndexError(message))
    return _clamped(rows, number)


def pop(found: PartedList, index: Any = -1, message: str = "pop index out of range") -> Any:
    """`list.pop`."""
    with at_user_line():
        rows = found.rows
        if rows is None:
            _guess(found)
            raise AssertionError("starts anew")
        _check(found, np.greater(rows.length, 0), IndexError("pop from empty list"))
        check_rows(rows.room)
        number = position(found, rows, index, message)
        item = rows.item(number, removed=True)
        if isinstance(index, Traced) or index != -1:
            _shift(rows, number, -1)
        rows.counter[0] = np.maximum(rows.length - 1, 0)  # type: ignore[index]
        return item


def item_at(found: PartedList, index: Any) -> Any:
    """`items[index]`, or a list of a slice of numbers."""
    rows = found.rows
    with at_user_line():
        if rows is None:
            _guess(found)
            raise AssertionError("starts anew")
        if not isinstance(index, slice):
            number = position(found, rows, index, "list index out of range")
            settle_items(found, number)
            return rows.item(number)
        settle_items(found)
        columns = [column[index] for column in rows.arrays()]
        return of_columns(found, rows, columns)


def of_columns(found: PartedList, rows: Rows, columns: Sequence[Any]) -> Any:
    """A list of items whose leaves are the elements of arrays of dynamic length."""
    buffers = [found.trace.handlers.sized_parts(column)[0] for column in columns]
    counter = _zeros(found.trace, (1,), np.dtype(np.int64))
    counter[0] = buffers[0][1] if len(buffers[0]) > 1 else columns[0].shape[0]
    parts = tuple(buffer[0].copy() for buffer in buffers)
    room = rows.room if parts[0].shape[0] == rows.capacity else None
    made = type(found)(found.trace, [replace(rows, columns=parts, counter=counter, room=room)])
    made.room, made.site = room, found.site
    return made


def joined_lists(found: PartedList, lists: Sequence[Any]) -> Any:
    """A list of the items of several, of which the data decide how many some have."""
    counted = [one.rows for one in lists if isinstance(one, PartedList) and one.rows is not None]
    rows = next((one for one in counted if one.counter is not None), None)
    if rows is None:
        raise _refused("a concatenation with a list of several parts", "append the items one by one")
    columns: list[list[Any]] = [[] for _ in rows.columns]
    for one in lists:
        for column, array in zip(columns, _columns_like(rows, one)):
            column.append(array)
    arrays = [np.concatenate(column) if len(column) > 1 else column[0] for column in columns]
    return of_columns(found, rows, arrays)


def _columns_like(rows: Rows, items: Any) -> list[Any]:
    """The leaves of all items of a list as arrays, one for each column of rows with items of the same types."""
    given = items.rows if isinstance(items, PartedList) else None
    if given is not None and given.writer is None:
        _check_alike(rows, given.growth.treedef, given.growth.leaf_types, given.growth.scalars)
        return given.arrays()
    if isinstance(items, PartedList):
        items = items.items()
    found: list[list[Any]] = [[] for _ in rows.columns]
    for item in items:
        leaves, treedef = _flat(item)
        _check_alike(rows, treedef, [leaf_type_of(leaf, "an item") for leaf in leaves], [*map(is_number, leaves)])
        for column, leaf in zip(found, leaves):
            column.append(leaf)
    trace = rows.columns[0]._trace
    types = zip(found, rows.growth.leaf_types)
    return [
        trace.array(column).astype(one.dtype) if column else _zeros(trace, (0, *one.shape), one.dtype)
        for column, one in types
    ]


def _check_alike(rows: Rows, treedef: TreeDef, leaf_types: Sequence[LeafType], scalars: Sequence[bool]) -> None:
    growth = rows.growth
    alike = treedef == growth.treedef and list(scalars) == list(growth.scalars)
    if not alike or [one.dtype for one in leaf_types] != [one.dtype for one in growth.leaf_types]:
        raise _refused("a concatenation with items of several types", "append items of one type and shape")


def extend(found: PartedList, values: PartedList) -> None:
    """`list.extend` by a list whose length the data decide."""
    with at_user_line():
        rows, room = found.rows, found.room
        added = values.rows
        assert isinstance(room, Room)
        if added is None:
            raise _refused("an extension by a list of several parts", "append the items one by one")
        if rows is None:
            room.growth = replace(added.growth, leaf_types=[*added.growth.leaf_types])
            raise Restart
        if not added.capacity:
            return
        _fit(found, rows, added.item(0))
        count: Any = rows.length
        longer: Any = count + added.length
        _check(found, longer <= rows.capacity, OutgrownListError(room.site, rows.capacity))
        end = np.minimum(longer, rows.capacity)
        for column, array in zip(rows.columns, added.arrays()):
            column[count:end] = array[: end - count]
        rows.counter[0] = end  # type: ignore[index]


def put(found: PartedList, index: Any, value: Any) -> None:
    """`items[index] = value`."""
    rows = found.rows
    with at_user_line():
        if isinstance(index, slice):
            raise _refused("a store into a slice", "store the items one by one")
        if rows is None:
            _guess(found)
            raise AssertionError("starts anew")
        check_rows(rows.room)
        value = _as_row(found, rows, value)
        _fit(found, rows, value)
        _store(found, rows, position(found, rows, index, "list assignment index out of range"), value)
        note_copied(found.trace, value, *_flat(value), appended=True)


def clear(found: PartedList) -> None:
    """`list.clear`."""
    if found.rows is not None:
        check_rows(found.room)
        found.rows.counter[0] = 0  # type: ignore[index]


def rotate(found: PartedList, steps: Any) -> None:
    """`deque.rotate`."""
    with at_user_line():
        rows = found.rows
        if rows is None:
            _guess(found)
            raise AssertionError("starts anew")
        check_rows(found.room)
        positions, count = np.arange(rows.capacity), rows.length
        moved = np.where(positions < count, (positions - steps) % np.maximum(count, 1), positions)
        for column in rows.columns:
            column[...] = column[moved]


def index_of(found: PartedList, value: Any, error: str) -> Any:
    """`list.index` of a number; a check for that it is there."""
    with at_user_line():
        rows = found.rows
        if rows is None:
            _guess(found)
            raise AssertionError("starts anew")
        if rows.growth.scalars != [True] or not is_number(value):
            raise _refused("a search for something else than a number", "write a loop over the items")
        same = np.logical_and(rows.columns[0] == value, np.arange(rows.capacity) < rows.length)
        _check(found, same.any(), ValueError(error))
        return np.argmax(same)
