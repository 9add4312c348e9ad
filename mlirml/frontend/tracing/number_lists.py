"""Lists of numbers, or of such lists, as arrays: those that are read or stored at a dynamic index.

    best = [0.0] * (n + 1)              best = np.zeros(n + 1)
    for w in weights:                   an scf.for that carries it
        for c in range(n, w - 1, -1):
            best[c] = max(best[c], best[c - w])

Before, such a list is an ordinary one: its items are Python objects. It becomes an array before the outermost loop or
branch that uses it, which is retraced. A list in a list becomes a row, of which `table[i]` is a view.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from mlirml.core.tree import TreeDef, flatten
from mlirml.errors import CaptureError, UnsupportedSyntaxError
from mlirml.frontend.state.objects import flatten_objects
from mlirml.frontend.tracing.array import Cell, Traced
from mlirml.frontend.tracing.carry import LeafType, joined, leaf_type_of
from mlirml.frontend.tracing.growing_list import Counts, GrowingList, Growth, Rows
from mlirml.ir.text.builder import Region

if TYPE_CHECKING:
    from mlirml.frontend.tracing.trace import Trace

_, _LEAF = flatten(0)
COPIES = 64
"""Loops that make no more copies are unrolled instead, so that each of their indices is constant."""


def is_dynamic_integer(index: Any) -> bool:
    """True for a dynamic integer."""
    return isinstance(index, Traced) and index.ndim == 0 and index.dtype.kind in "iu" and index._known() is None


def pays(trace: Trace, index: Any) -> bool:
    """True if unrolling the loops that an index depends on makes more than a few copies of their bodies."""
    roots = set(trace.integers.roots(index))
    if not roots or any(getattr(root, "count", None) is None for root in roots):
        return True
    copies, last = 1, None
    region: Region | None = trace.builder.region
    while roots and region is not None:
        construct = region.construct
        if construct is not last:
            copies *= getattr(construct, "count", None) or 1
            roots.discard(construct)
        last, region = construct, region.parent
    return copies > COPIES


def numbers_in(items: Sequence[Any]) -> tuple[tuple[int, ...], LeafType] | None:
    """The shape of a list of numbers, or of lists of them, and the type of its numbers; None for another list."""
    if not items:
        return None
    shape: tuple[int, ...] | None = None
    leaf_type: LeafType | None = None
    for item in items:
        if isinstance(item, Rows):
            inner: tuple[tuple[int, ...], LeafType] | None = None
        elif type(item) is GrowingList:
            inner = _shape_of(item)
        else:
            inner = ((), leaf_type_of(item, "an item")) if is_number(item) else None
        if inner is None or (shape is not None and inner[0] != shape):
            return None
        both = inner[1] if leaf_type is None else joined(leaf_type, inner[1])
        if both is None:
            return None
        shape, leaf_type = inner[0], both
    lists = [id(item) for item in items if type(item) is GrowingList]
    if len(set(lists)) < len(lists) or shape is None or leaf_type is None:  # one list twice: a store changes both
        return None
    return (len(items), *shape), leaf_type


def is_number(item: Any) -> bool:
    """True for a number: Python's, NumPy's or a dynamic one."""
    if type(item) in (bool, int, float, complex) or isinstance(item, np.generic):
        return True
    return isinstance(item, Traced) and item._scalar


def is_numeric(rows: Rows) -> bool:
    """True if the items of rows are numbers, or lists of them, and no loop appends to them."""
    return rows.writer is None and rows.growth.treedef == _LEAF and rows.growth.scalars == [True]


def become_rows(growing: GrowingList) -> None:
    """Make an array of a list of numbers, before the enclosing loops and branches that it is defined outside of."""
    whole = growing.whole
    whole.wants_rows = True
    _before_constructs(whole)
    settle(whole)


def widen(growing: GrowingList, leaf_type: LeafType) -> None:
    """Give the numbers of a list a wider type from its creation on."""
    whole = growing.whole
    whole.leaf_type = leaf_type
    _before_constructs(whole)
    settle(whole)


def _before_constructs(whole: GrowingList) -> None:
    """Retrace the outermost loop or branch in the list's region; returns if there is none."""
    from mlirml.frontend.loops.construct import Construct, Retrace

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
    if outermost is not None:
        raise Retrace(outermost, (whole,))


def settle(whole: GrowingList) -> None:
    """Create the array, or one of a wider type, here."""
    rows, trace = whole.rows, whole.trace
    if rows is None:
        found = numbers_in(whole.parts)
        if found is None:
            raise not_numbers()
        leaf_type = found[1] if whole.leaf_type is None else joined(found[1], whole.leaf_type)
        if leaf_type is None:
            raise not_numbers()
        inner = [item for item in whole.parts if type(item) is GrowingList]
        array = trace.array(_nested(whole), leaf_type.dtype)
        growth = Growth(Counts(0, 0), _LEAF, [replace(leaf_type, shape=())], [True])
        whole.parts = [Rows((array,), growth, len(whole.parts), depth=array.ndim - 1)]
        for number, item in enumerate(inner):
            _make_view(whole, item, number)
    elif whole.leaf_type is not None and is_numeric(rows) and rows.growth.leaf_types != [whole.leaf_type]:
        growth = replace(rows.growth, leaf_types=[whole.leaf_type])
        array = rows.columns[0].astype(whole.leaf_type.dtype)
        whole.parts = [replace(rows, columns=(array,), growth=growth)]
        for view in whole.views():
            _make_view(whole, view, view.number)


def _nested(growing: GrowingList) -> Any:
    """The items in plain lists, or an array of them."""
    if growing.rows is not None:
        return growing.rows.columns[0]
    return [_nested(item) if type(item) is GrowingList else item for item in growing.parts]


def _make_view(whole: GrowingList, row: GrowingList, number: Any) -> None:
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


def view_of(whole: GrowingList, number: Any) -> GrowingList:
    """A row of a list of lists, through which stores go."""
    found = GrowingList(whole.trace, ())
    found.region = whole.region
    _make_view(whole, found, number)
    return found


def store_item(growing: GrowingList, rows: Rows, index: Any, value: Any) -> None:
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


def _store_row(growing: GrowingList, rows: Rows, index: Any, value: Any) -> None:
    """Replace a row of a list of lists by another list, which becomes a view of it."""
    trace, shape = growing.trace, rows.columns[0].shape[1:]
    found = _shape_of(value) if type(value) is GrowingList else None
    if found is None or found[0] != shape or value.owner is not None or value.region is not trace.builder.region:
        raise UnsupportedSyntaxError(
            "a list in a list of lists of numbers is replaced by something else than a new list as long as it is",
            help="store its items, `for j in range(len(row)): table[i][j] = row[j]`, or a copy, `row.copy()`",
        )
    _check_unnamed(growing)
    column = _fit(growing, rows, found[1])
    column[index] = trace.array(_nested(value), column.dtype)
    _make_view(growing, value, index)


def exchange(one: GrowingList, first: Any, second: Any) -> None:
    """`one[first], one[second] = one[second], one[first]`, of rows that are lists."""
    rows = one.rows
    assert rows is not None
    (column,) = rows.columns
    _check_unnamed(one)
    a, b = column[first].copy(), column[second].copy()
    column[first], column[second] = b, a


def _check_unnamed(growing: GrowingList) -> None:
    """Refuse to replace a row that a variable refers to: it would refer to another list then."""
    if growing.views():
        raise UnsupportedSyntaxError(
            "a list in a list of lists is replaced, while it or another one of them has a name",
            help="store its items, `for j in range(len(row)): table[i][j] = row[j]`",
        )


def _shape_of(growing: GrowingList) -> tuple[tuple[int, ...], LeafType] | None:
    """The shape and the type of a list of numbers."""
    rows = growing.rows
    if rows is None:
        return numbers_in(growing.parts)
    return (rows.columns[0].shape, rows.growth.leaf_types[0]) if is_numeric(rows) else None


def _fit(growing: GrowingList, rows: Rows, other: LeafType) -> Any:
    """The array of a list, of a type to which numbers of another type convert too."""
    leaf_type = rows.growth.leaf_types[0]
    both = joined(replace(leaf_type, shape=()), replace(other, shape=()))
    if both is None:
        both = LeafType((), np.result_type(leaf_type.dtype, other.dtype))
    if both != leaf_type:
        widen(growing, both)
    assert growing.rows is not None
    return growing.rows.columns[0]


def alike(one: Any, other: Any) -> GrowingList | None:
    """The list of two that must become rows, or of a wider type, for both to have one type."""
    if type(one) is not GrowingList or type(other) is not GrowingList or one.length != other.length:
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


class Listed:
    """The container type in a `TreeDef` for a list that is an array: a list of the array's numbers."""

    __name__ = "list"

    def __init__(self, weak: bool) -> None:
        self.weak = weak

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Listed) and self.weak == other.weak

    def __hash__(self) -> int:
        return hash((Listed, self.weak))

    def __reduce__(self) -> Any:
        return Listed, (self.weak,)

    def _make(self, arrays: Sequence[Any]) -> list[Any]:
        return listed(np.asarray(next(iter(arrays))), self.weak)


def listed(array: np.ndarray, weak: bool) -> list[Any]:
    """The numbers of an array in lists, as Python's or NumPy's."""
    if weak:
        found: list[Any] = array.tolist()
        return found
    return [*array] if array.ndim == 1 else [listed(row, weak) for row in array]


def flatten_result(result: Any, is_known: Callable[[Any], bool]) -> tuple[list[Any], TreeDef]:
    """The leaves of a function's result, in which a list that is an array is one leaf.

    `is_known` is true for objects that a call does not create.
    """
    leaves, tree = flatten(result, is_leaf=is_numeric_list)
    if not all(isinstance(x, _PLAIN) for x in leaves):
        leaves, tree = flatten_objects(result, is_numeric_list, is_known)
    leaf_types: dict[int, TreeDef] = {}
    for number, leaf in enumerate(leaves):
        if is_numeric_list(leaf):
            leaves[number] = leaf.array()
            found = _shape_of(leaf)
            assert found is not None
            leaf_types[number] = TreeDef(Listed(found[1].weak), ("",), (_LEAF,))
    return leaves, tree.with_trees(leaf_types) if leaf_types else tree


_PLAIN = (Traced, GrowingList, np.ndarray, np.generic, bool, int, float, complex)


def is_numeric_list(x: Any) -> bool:
    """True if something is a list of numbers, or of lists of them, that is an array."""
    return type(x) is GrowingList and x.rows is not None and is_numeric(x.rows)
