"""Objects as pytrees: the arrays that a model holds in its attributes, for derivatives and for results.

    loss, gradient = ml.value_and_grad(loss)(model, x)
    model.weights -= 0.1 * gradient.weights

While a function is differentiated by an object, the object itself holds the arrays that derivatives are taken by, so
that methods, lists of layers and other references to it all see the same; its gradient is another object of the same
class.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from mlirml.core.tree import ObjectFlattener, TreeDef, flatten
from mlirml.errors import UnsupportedSyntaxError
from mlirml.frontend.arrays.array import Traced
from mlirml.frontend.arrays.indexing import is_dynamic
from mlirml.frontend.arrays.list_parts import Growth, PartedList, Rows, is_numeric_list
from mlirml.frontend.arrays.optional import Optional, assigned
from mlirml.frontend.state.concrete_arrays import original
from mlirml.frontend.user_objects import attributes_of
from mlirml.ir.text.dtypes import is_float
from mlirml.runtime.array import Array, put

if TYPE_CHECKING:
    from mlirml.frontend.tracing.trace import Trace

_, _LEAF = flatten(0)


def flatten_parameters(tree: Any) -> tuple[list[Any], TreeDef]:
    """The leaves to differentiate by, and the structure: in objects the float arrays."""
    found = ObjectFlattener(attributes_of, _is_parameter, original)
    structure = found.flatten(tree)
    return found.leaves, structure


def _is_parameter(value: Any) -> bool:
    if not isinstance(value, (Traced, np.ndarray)):  # including proxies of arrays
        return False
    return _has_floats(value)


def _has_floats(value: Any) -> bool:
    return is_float(value.dtype) or value.dtype.kind == "c"


class _FloatFlattener(ObjectFlattener):
    """Flattens to the floats of a tree; numbers that an object of no dataclass holds are constants."""

    def __init__(self) -> None:
        super().__init__(attributes_of, self._is_float, original)
        self._has_constants = False

    def _is_float(self, value: Any) -> bool:
        if isinstance(value, (float, np.inexact)):
            return not self._has_constants
        return _is_parameter(value) or (isinstance(value, Array) and _has_floats(value))

    def _object(self, one: Any, fields: Mapping[str, Any]) -> TreeDef:
        before, self._has_constants = self._has_constants, not dataclasses.is_dataclass(one)
        try:
            return super()._object(one, fields)
        finally:
            self._has_constants = before


def flatten_floats(tree: Any) -> tuple[list[Any], TreeDef]:
    """The arrays that an optimiser changes, and the structure, which has all else of the tree.

    Numbers are arrays, too, where a compiled function takes them as arguments: in containers, and in the fields of a
    dataclass that are not static. So a tree has the same leaves in and outside of compiled functions.
    """
    found = _FloatFlattener()
    structure = found.flatten(tree, in_object=True)
    return [np.asarray(leaf) if isinstance(leaf, (float, np.inexact)) else leaf for leaf in found.leaves], structure


def flatten_objects(
    tree: Any, is_leaf: Callable[[Any], bool], is_known: Callable[[Any], bool]
) -> tuple[list[Any], TreeDef]:
    """The leaves and structure of a result with objects; those for which `is_known` is true are returned themselves."""
    found = ObjectFlattener(attributes_of, lambda x: isinstance(x, Traced) or is_leaf(x), original, is_known)
    structure = found.flatten(tree)
    return found.leaves, structure


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
        return array.tolist()
    return [*array] if array.ndim == 1 else [listed(row, weak) for row in array]


class Items:
    """The container type in a `TreeDef` for a list of items, whose leaves are each a list or an array of its own."""

    __name__ = "list"

    def __init__(self, item: TreeDef) -> None:
        self.item = item

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Items) and self.item == other.item

    def __hash__(self) -> int:
        return hash((Items, self.item))

    def __reduce__(self) -> Any:
        return Items, (self.item,)

    def _make(self, columns: Sequence[Any]) -> list[Any]:
        return [self.item.unflatten([*leaves]) for leaves in zip(*columns)]


class Ragged:
    """The container type in a `TreeDef` for a list of lists, each the beginning of a row of all columns but the last,
    which has the lengths.
    """

    __name__ = "list"

    def __init__(self, row: TreeDef) -> None:
        self.row = row

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Ragged) and self.row == other.row

    def __hash__(self) -> int:
        return hash((Ragged, self.row))

    def __reduce__(self) -> Any:
        return Ragged, (self.row,)

    def _make(self, columns: Sequence[Any]) -> list[Any]:
        *columns, lengths = map(np.asarray, columns)
        return [
            self.row.unflatten([column[number][:length] for column in columns])
            for number, length in enumerate(lengths[:, 0])
        ]


class Beginning:
    """The container type in a `TreeDef` for an array whose lengths along `dims` depend on data: it is made of a buffer,
    which is as long as it can get, and of these lengths.
    """

    __name__ = "array"

    def __init__(self, dims: tuple[int, ...]) -> None:
        self.dims = dims

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Beginning) and self.dims == other.dims

    def __hash__(self) -> int:
        return hash((Beginning, self.dims))

    def __reduce__(self) -> Any:
        return Beginning, (self.dims,)

    def _make(self, parts: Sequence[Any]) -> Any:
        whole, *lengths = parts
        buffer = whole.numpy() if isinstance(whole, Array) else whole
        index: list[Any] = [slice(None)] * buffer.ndim
        for dim, length in zip(self.dims, lengths):
            index[dim] = slice(int(np.asarray(length)))
        found = buffer[tuple(index)]
        if found.size == buffer.size:
            found = buffer
        elif not found.flags.c_contiguous or found.nbytes < buffer.nbytes // _KEPT_PART:
            found = found.copy()
        return put(found, whole.device) if isinstance(whole, Array) else found


_KEPT_PART = 4
"""A result that is a smaller part of its buffer than one in so many is copied, so that the rest is freed."""


def flatten_result(result: Any, is_known: Callable[[Any], bool], trace: Trace) -> tuple[list[Any], TreeDef]:
    """The leaves of a function's result, in which a list that is an array is one leaf.

    `is_known` is true for objects that a call does not create. An array of dynamic length is a buffer and its lengths.
    """
    if trace.unassigned:
        leaves, tree = flatten(result, is_leaf=lambda x: type(x) is Optional)
        result = tree.unflatten([*map(assigned, leaves)])
    leaves, tree = flatten(result, is_leaf=_is_one_leaf)
    if not all(isinstance(x, _PLAIN) or is_dynamic(x) for x in leaves):
        leaves, tree = flatten_objects(result, lambda x: _is_one_leaf(x) or is_dynamic(x), is_known)
    found: list[Any] = []
    trees: dict[int, TreeDef] = {}
    for number, leaf in enumerate(leaves):
        if _is_rows(leaf) and not is_numeric_list(leaf):
            parts, form = _columns(trace, leaf.rows)
            found += parts
            trees[number] = form
            continue
        array = leaf.array() if is_numeric_list(leaf) else leaf
        parts, form = _with_lengths(trace, array) if is_dynamic(array) else ([array], _LEAF)
        found += parts
        if is_numeric_list(leaf):
            form = TreeDef(Listed(leaf.rows.growth.leaf_types[0].weak), ("",), (form,))
        if form != _LEAF:
            trees[number] = form
    return found, tree.with_trees(trees) if trees else tree


def _is_rows(x: Any) -> bool:
    """True for a list whose length only the data decide, or those of its items."""
    rows = x.rows if isinstance(x, PartedList) else None
    return rows is not None and rows.writer is None and (rows.counter is not None or rows.has_lists)


def _is_one_leaf(x: Any) -> bool:
    return is_numeric_list(x) or _is_rows(x)


def _columns(trace: Trace, rows: Rows) -> tuple[list[Any], TreeDef]:
    """The leaves of the items of a list, as arrays of the length of the list, and their structure."""
    found, forms = [], []
    arrays = [trace.handlers.beginning(column, rows.length) for column in rows.columns]
    for column in arrays:
        parts, form = _with_lengths(trace, column)
        found += parts
        forms.append(form)
    return found, _listed(Ragged(_rows_of(rows)), forms) if rows.has_lists else _of_items(rows.growth, forms)


def _of_items(growth: Growth, forms: Sequence[TreeDef]) -> TreeDef:
    """The structure of a list, of whose columns these are the forms."""
    types = zip(forms, growth.leaf_types, growth.scalars)
    leaves = [_listed(Listed(leaf_type.weak), [form]) if scalar else form for form, leaf_type, scalar in types]
    return leaves[0] if growth.treedef == _LEAF and growth.scalars == [True] else _listed(Items(growth.treedef), leaves)


def _rows_of(rows: Rows) -> TreeDef:
    """The structure of an item that is a list, of whose columns the leaves are slices."""
    inner = rows.growth.treedef.kind.rows
    if inner.has_lists:
        error = UnsupportedSyntaxError(
            "a list of lists of lists whose lengths the data decide is no result",
            help="return one list of all items, `items.extend(row)` of each row, and the lengths of the rows",
        )
        error.final = True  # no attempt with more room does better
        raise error
    return _of_items(inner.growth, [_LEAF for _ in inner.columns])


def _listed(container: Any, children: Sequence[TreeDef]) -> TreeDef:
    return TreeDef(container, ("",) * len(children), tuple(children))


def _with_lengths(trace: Trace, array: Any) -> tuple[list[Any], TreeDef]:
    """The buffer and the lengths of an array of dynamic length, and the structure of these."""
    with trace.in_loops():
        parts, dims = trace.handlers.sized_parts(array)
    return parts, TreeDef(Beginning(dims), ("",) * len(parts), (_LEAF,) * len(parts))


_PLAIN = (Traced, PartedList, np.ndarray, np.generic, bool, int, float, complex)
