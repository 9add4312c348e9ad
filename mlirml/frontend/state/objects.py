"""Objects as pytrees: the arrays that a model holds in its attributes, for derivatives and for results.

    loss, gradient = ml.value_and_grad(loss)(model, x)
    model.weights -= 0.1 * gradient.weights

While a function is differentiated by an object, the object itself holds the arrays that derivatives are taken by, so
that methods, lists of layers and other references to it all see the same; its gradient is another object of the same
class.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from mlirml.core.tree import ObjectFlattener, TreeDef, flatten
from mlirml.frontend.arrays.array import Traced
from mlirml.frontend.arrays.list_parts import PartedList, is_numeric_list
from mlirml.frontend.state.concrete_arrays import original
from mlirml.frontend.user_objects import attributes_of
from mlirml.ir.text.dtypes import is_float

_, _LEAF = flatten(0)


def flatten_parameters(tree: Any) -> tuple[list[Any], TreeDef]:
    """The leaves to differentiate by, and the structure: in objects the float arrays."""
    found = ObjectFlattener(attributes_of, _is_parameter, original)
    structure = found.flatten(tree)
    return found.leaves, structure


def _is_parameter(value: Any) -> bool:
    if not isinstance(value, (Traced, np.ndarray)):  # including proxies of arrays
        return False
    return is_float(value.dtype) or value.dtype.kind == "c"


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
            leaf_types[number] = TreeDef(Listed(leaf.rows.growth.leaf_types[0].weak), ("",), (_LEAF,))
    return leaves, tree.with_trees(leaf_types) if leaf_types else tree


_PLAIN = (Traced, PartedList, np.ndarray, np.generic, bool, int, float, complex)
