"""Lists of numbers, or of such lists, as arrays: those that are read or stored at a dynamic index.

    best = [0.0] * (n + 1)              best = np.zeros(n + 1)
    for w in weights:                   an scf.for that carries it
        for c in range(n, w - 1, -1):
            best[c] = max(best[c], best[c - w])

Before, such a list is an ordinary one: its items are Python objects. It becomes an array before the outermost loop or
branch that uses it, which is retraced. A list in a list becomes a row, of which `table[i]` is a view.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from mlirml.core.tree import flatten
from mlirml.errors import CaptureError, UnsupportedSyntaxError
from mlirml.frontend.arrays.array import Traced
from mlirml.frontend.arrays.carry import LeafType, joined, leaf_type_of
from mlirml.frontend.arrays.constructs import Construct, Retrace
from mlirml.frontend.arrays.list_parts import PartedList, Rows, is_numeric, number_rows
from mlirml.frontend.arrays.tracer import Cell
from mlirml.ir.text.builder import Region

if TYPE_CHECKING:
    from mlirml.frontend.tracing.trace import Trace

_, _LEAF = flatten(0)
COPIES = 64
"""Loops that make no more copies are unrolled instead, so that each of their indices is constant."""


def is_dynamic_integer(index: Any) -> bool:
    """True for a dynamic integer."""
    return isinstance(index, Traced) and index.ndim == 0 and index.dtype.kind in "iu" and index._known() is None


def pays(trace: Trace, index: Any, most: int = COPIES) -> bool:
    """True if unrolling the loops that an index depends on makes more than so many copies of their bodies."""
    roots = set(trace.integers.roots(index))
    if not roots or any(getattr(root, "count", None) is None for root in roots):
        return True
    copies: int = trace.hooks.copies
    last = None
    region: Region | None = trace.builder.region
    while roots and region is not None:
        construct = region.construct
        if construct is not last:
            copies *= getattr(construct, "count", None) or 1
            roots.discard(construct)
        last, region = construct, region.parent
    return copies > most


def numbers_in(items: Sequence[Any]) -> tuple[tuple[int, ...], LeafType] | None:
    """The shape of a list of numbers, or of lists of them, and the type of its numbers; None for another list."""
    if not items:
        return None
    types = set(map(type, items))
    if len(types) == 1 and types <= {bool, float, complex}:
        return (len(items),), leaf_type_of(items[0], "an item")
    shape: tuple[int, ...] | None = None
    leaf_type: LeafType | None = None
    for item in items:
        if isinstance(item, Rows):
            inner: tuple[tuple[int, ...], LeafType] | None = None
        elif isinstance(item, PartedList):
            inner = _shape_of(item)
        else:
            inner = ((), leaf_type_of(item, "an item")) if is_number(item) else None
        if inner is None or (shape is not None and inner[0] != shape):
            return None
        both = inner[1] if leaf_type is None else joined(leaf_type, inner[1])
        if both is None:
            return None
        shape, leaf_type = inner[0], both
    lists = [id(item) for item in items if isinstance(item, PartedList)]
    if len(set(lists)) < len(lists) or shape is None or leaf_type is None:  # one list twice: a store changes both
        return None
    return (len(items), *shape), leaf_type


def is_number(item: Any) -> bool:
    """True for a number: Python's, NumPy's or a dynamic one."""
    if type(item) in (bool, int, float, complex) or isinstance(item, np.generic):
        return True
    return isinstance(item, Traced) and item._scalar


def check_lengths(items: Sequence[Any]) -> None:
    """Refuse lists as long as an argument says, `[0] * n`, as rows of an array: the argument becomes static."""
    sizes = [item.sizes for item in items if isinstance(item, PartedList)]
    if items and len(sizes) == len(items) and all(sizes):
        error = UnsupportedSyntaxError("a list of lists of which a number of the program says how long they are")
        error.sizes, error.subject = frozenset().union(*sizes), "the length of a list"
        raise error


def become_rows(growing: PartedList) -> None:
    """Make an array of a list of numbers, before the enclosing loops and branches that it is defined outside of."""
    whole = growing.whole
    whole.wants_rows = True
    _before_constructs(whole, once=True)
    settle(whole)


def widen(growing: PartedList, leaf_type: LeafType) -> None:
    """Give the numbers of a list a wider type from its creation on."""
    whole = growing.whole
    whole.leaf_type = leaf_type
    _before_constructs(whole)
    settle(whole)


def _before_constructs(whole: PartedList, once: bool = False) -> None:
    """Retrace the outermost loop or branch in the list's region; returns if there is none.

    With `once`, it is an error if that has been retraced for the list already.
    """
    region: Region | None = whole.trace.builder.region
    outermost: Construct | None = None
    while region is not None and region is not whole.region:
        if not isinstance(region.construct, Construct):
            raise UnsupportedSyntaxError(
                "a list from outside changes, or has an index that is known only at run time, in a function "
                "that is traced for a loop or branch",
                help="use an array of the program, `np.array(items)`",
            )
        outermost, region = region.construct, region.parent
    if outermost is None:
        return
    if once and whole.retraced is outermost:
        error = UnsupportedSyntaxError(
            "an index into a list is known only at run time, where items are also added, removed or replaced",
            help="use an array of the program, `np.array(items)`",
        )
        error.lists = whole.sites()
        raise error
    whole.retraced = outermost
    raise Retrace(outermost, (whole,))


def settle(whole: PartedList) -> None:
    """Create the array, or one of a wider type, here."""
    rows, trace = whole.rows, whole.trace
    if rows is None:
        found = numbers_in(whole.parts)
        if found is None:
            raise not_numbers()
        leaf_type = found[1] if whole.leaf_type is None else joined(found[1], whole.leaf_type)
        if leaf_type is None:
            raise not_numbers()
        inner = [item for item in whole.parts if isinstance(item, PartedList)]
        array = trace.array(_nested(whole), leaf_type.dtype)
        whole.parts = [number_rows(array, leaf_type)]
        whole.inner_sites = frozenset().union(*(item.sites() for item in inner))
        for number, item in enumerate(inner):
            _make_view(whole, item, number)
    elif whole.leaf_type is not None and is_numeric(rows) and rows.growth.leaf_types != [whole.leaf_type]:
        growth = replace(rows.growth, leaf_types=[whole.leaf_type])
        array = rows.columns[0].astype(whole.leaf_type.dtype)
        whole.parts = [replace(rows, columns=(array,), growth=growth)]
        for view in whole.views():
            _make_view(whole, view, view.number)


def _nested(growing: PartedList) -> Any:
    """The items in plain lists, or an array of them."""
    if growing.rows is not None:
        return growing.rows.columns[0]
    return [_nested(item) if isinstance(item, PartedList) else item for item in growing.parts]


def _make_view(whole: PartedList, row: PartedList, number: Any) -> None:
    """Make a list a view of a row of another one."""
    rows = whole.rows
    assert rows is not None
    row.owner, row.number, row.parts = whole, number, [rows.row(number)]
    whole.note_view(row)


def not_numbers() -> CaptureError:
    """The error for a list that cannot be an array."""
    return UnsupportedSyntaxError(
        "an index into a list is known only at run time, and the items are not numbers of one type",
        help="index an array of the program, `np.stack(items)[i]`",
    )


def view_of(whole: PartedList, number: Any) -> PartedList:
    """A row of a list of lists, through which stores go."""
    found = type(whole)(whole.trace, ())
    found.region = whole.region
    _make_view(whole, found, number)
    return found


def store_item(growing: PartedList, rows: Rows, index: Any, value: Any) -> None:
    """`growing[index] = value`, for an item of numeric rows."""
    if rows.depth:
        _store_row(growing, rows, index, value)
        return
    if not is_number(value):
        raise UnsupportedSyntaxError(
            f"an item of a list of numbers becomes something else (of type `{type(value).__name__}`)",
            help="use a list of its own for it",
        )
    _fit(growing, rows, leaf_type_of(value, "an item"))[index] = value


def _store_row(growing: PartedList, rows: Rows, index: Any, value: Any) -> None:
    """Replace a row of a list of lists by another list, which becomes a view of it."""
    trace, shape = growing.trace, rows.columns[0].shape[1:]
    found = _shape_of(value) if isinstance(value, PartedList) else None
    if found is None or found[0] != shape or value.owner is not None or value.region is not trace.builder.region:
        raise UnsupportedSyntaxError(
            "a list in a list of lists of numbers is replaced by something else than a new list as long as it is",
            help="store its items, `for j in range(len(row)): table[i][j] = row[j]`, or a copy, `row.copy()`",
        )
    _check_unnamed(growing)
    column = _fit(growing, rows, found[1])
    column[index] = trace.array(_nested(value), column.dtype)
    _make_view(growing, value, index)


def exchange(one: PartedList, first: Any, second: Any) -> None:
    """`one[first], one[second] = one[second], one[first]`, of rows that are lists."""
    rows = one.rows
    assert rows is not None
    one.whole.changed = True
    (column,) = rows.columns
    _check_unnamed(one)
    a, b = column[first].copy(), column[second].copy()
    column[first], column[second] = b, a


def _check_unnamed(growing: PartedList) -> None:
    """Refuse to replace a row that a variable refers to: it would refer to another list then."""
    if growing.views():
        raise UnsupportedSyntaxError(
            "a list in a list of lists is replaced, while it or another one of them has a name",
            help="store its items, `for j in range(len(row)): table[i][j] = row[j]`",
        )


def _shape_of(growing: PartedList) -> tuple[tuple[int, ...], LeafType] | None:
    """The shape and the type of a list of numbers; None if the data decide how many there are."""
    rows = growing.rows
    if rows is None:
        return numbers_in(growing.parts)
    if rows.counter is not None or not is_numeric(rows):
        return None
    return rows.columns[0].shape, rows.growth.leaf_types[0]


def _fit(growing: PartedList, rows: Rows, other: LeafType) -> Any:
    """The array of a list, of a type to which numbers of another type convert too."""
    leaf_type = rows.growth.leaf_types[0]
    both = joined(replace(leaf_type, shape=()), replace(other, shape=()))
    if both is None:
        both = LeafType((), np.result_type(leaf_type.dtype, other.dtype))
    if both != leaf_type:
        widen(growing, both)
    assert growing.rows is not None
    return growing.rows.columns[0]


def alike(one: Any, other: Any) -> PartedList | None:
    """The list of two that must become rows, or of a wider type, for both to have one type."""
    if not isinstance(one, PartedList) or not isinstance(other, PartedList):
        return None
    counted = any(x.rows is not None and x.rows.counter is not None for x in (one, other))
    if one.room is not None or other.room is not None or counted or one.length != other.length:
        return None
    if one.rows is not None and other.rows is not None and is_numeric(one.rows) and is_numeric(other.rows):
        leaf_types = [rows.growth.leaf_types[0] for rows in (one.rows, other.rows)]
        both = joined(*leaf_types)
        if both is None or one.rows.depth != other.rows.depth:
            return None
        for each, leaf_type in zip((one, other), leaf_types):
            if leaf_type != both:
                each.leaf_type = both
                return each
        return None
    for each, rest in ((one, other.rows), (other, one.rows)):
        if each.rows is None and rest is not None and is_numeric(rest) and numbers_in(each.parts) is not None:
            each.wants_rows = True
            return each
    return None


def element_at(trace: Trace, items: Sequence[Any], index: Any) -> Any:
    """`items[index]` for a plain list or tuple of numbers and a dynamic index."""
    found = numbers_in(items)
    if found is None or len(found[0]) > 1 or not pays(trace, index):
        return items[index]
    value = trace.array([*items], found[1].dtype)[index]._read()
    return Traced(trace, Cell(replace(value, weak=found[1].weak)), scalar=True)
