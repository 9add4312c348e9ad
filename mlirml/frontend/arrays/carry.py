"""Types of loop-carried values and branch results: the type of each leaf, which types join, and errors about them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from mlirml.core.dataclass import dataclass
from mlirml.core.sizes import same_shape
from mlirml.core.tree import TreeDef, exact_leaf, flatten
from mlirml.errors import CaptureError, DTypeError, ShapeError
from mlirml.frontend.arrays.array import Traced
from mlirml.frontend.arrays.function_proxy import original_function
from mlirml.frontend.spec import has_own_arithmetic, is_static
from mlirml.frontend.user_objects import attributes_of
from mlirml.ir.text.dtypes import describe, is_supported
from mlirml.runtime.array import Array

_WEAK = {
    bool: np.dtype(np.bool_),
    int: np.dtype(np.int64),
    float: np.dtype(np.float64),
    complex: np.dtype(np.complex128),
}


class _Mixed:
    def __bool__(self) -> bool:
        return False


MIXED: Any = _Mixed()
"""`weak` of a truth value that is one of Python's or NumPy's depending on data: it is false, as of NumPy's."""


@dataclass(frozen=True)
class LeafType:
    """Shape and dtype of a leaf; `weak` for a Python scalar, which yields to the dtype of an array in promotion."""

    shape: tuple[int, ...]
    dtype: np.dtype
    weak: bool = False

    def __str__(self) -> str:
        if self.weak:
            return f"a Python {self.dtype.name.rstrip('0123456789')}"
        return describe(self.shape, self.dtype)

    def gives_way_to(self, other: LeafType) -> bool:
        """True if this is a Python scalar that takes the dtype of `other`."""
        return self.weak and _rank(other.dtype) >= _rank(self.dtype)


def _rank(dtype: np.dtype) -> int:
    """Bools, integers, floats and complex numbers in this order; NumPy has no category for bfloat16."""
    return {"b": 0, "i": 1, "u": 1, "f": 2, "c": 3}.get(dtype.kind, 2)


def flatten_values(tree: Any) -> tuple[list[Any], TreeDef]:
    """The leaves of a pytree that loops and branches pass on, and its structure with the static leaves in it.

    Static are functions, names, dtypes and the like. An object with attributes is not, although it may be called: a
    body may store into them.
    """
    leaves, structure = flatten(tree)
    static = {number: original_function(leaf) for number, leaf in enumerate(leaves) if _is_constant(leaf)}
    if not static:
        return leaves, structure
    return [leaf for number, leaf in enumerate(leaves) if number not in static], structure.with_constants(static)


def _is_constant(leaf: Any) -> bool:
    if isinstance(leaf, (Traced, np.ndarray, np.generic)) or type(leaf) in _WEAK:
        return False
    return is_static(leaf) and type(leaf).__hash__ is not None and not attributes_of(leaf)


def leaf_type_of(leaf: Any, path: str) -> LeafType:
    """The type of a leaf; an error names it by its path."""
    if isinstance(leaf, Traced):
        return LeafType(leaf.shape, leaf.dtype, leaf._is_weak())
    if type(leaf) in _WEAK:
        return LeafType((), _WEAK[type(leaf)], True)
    if isinstance(leaf, Array):
        return LeafType(leaf.shape, leaf.dtype)
    dtype = getattr(leaf, "dtype", None)
    if not isinstance(leaf, (np.ndarray, np.generic)) or has_own_arithmetic(leaf) or not is_supported(leaf.dtype):
        what = f"has dtype {dtype}" if isinstance(dtype, np.dtype) else f"is a {type(leaf).__name__}"
        raise DTypeError(f"{path} {what}: only arrays, numbers and containers of them can be passed on")
    return LeafType(leaf.shape, leaf.dtype)


def joined(one: LeafType, other: LeafType) -> LeafType | None:
    """The type of a value that has one of two types; None if they do not join."""
    if not same_shape(one.shape, other.shape):
        return None
    if one.weak and other.weak:
        return max(one, other, key=lambda leaf_type: _rank(leaf_type.dtype))
    if one.dtype == other.dtype:
        is_mixed = one.dtype.kind == "b" and not one.shape and (one.weak != other.weak or one.weak is MIXED)
        return replace(one, weak=MIXED if is_mixed else False)
    if one.gives_way_to(other):
        return other
    return one if other.gives_way_to(one) else None


def carried(before: LeafType, after: LeafType) -> LeafType | None:
    """The type of a carry that enters a body as `before` and leaves it as `after`; None if they do not join.

    Only Python scalars change: a sum that starts from 0 and meets f32 is f32 from the start.
    """
    leaf_type = joined(before, after)
    return leaf_type if before.weak or leaf_type is None or leaf_type.dtype == before.dtype else None


def common(one: LeafType, other: LeafType) -> LeafType:
    """The type of a number that is of one of two types: if Python's type depends on the data, it is the wider one
    here.
    """
    return LeafType((), np.result_type(one.dtype, other.dtype))


def are_integer_and_double(one: LeafType, other: LeafType) -> bool:
    """True for the types of two numbers, one of them an integer, as an element of an array, and one a double."""
    kinds = sorted("f" if x.dtype == _WEAK[float] else "i" if x.dtype.kind in "iu" else "" for x in (one, other))
    return kinds == ["f", "i"] and not one.shape and not other.shape


Pair = tuple[str, LeafType, LeafType]


def check_carry(name: str, pairs: Sequence[Pair]) -> list[LeafType]:
    """The types of a carry after an iteration; `pairs` are path, type before and type after."""
    leaf_types = [carried(before, after) for _, before, after in pairs]
    wrong = [pair for pair, leaf_type in zip(pairs, leaf_types) if leaf_type is None]
    if wrong:
        raise _mismatch(f"{name}: the carry changes its type", wrong, "in", "out")
    return [leaf_type for leaf_type in leaf_types if leaf_type is not None]


def check_branches(
    name: str, labels: Sequence[str], paths: Sequence[str], leaf_types: Sequence[list[LeafType]]
) -> list[LeafType]:
    """The types of branch results; `labels` name the branches in messages."""
    found = list(leaf_types[0])
    for number, others in enumerate(leaf_types[1:], 1):
        both = [joined(one, other) for one, other in zip(found, others)]
        wrong = [(p, one, other) for p, one, other, leaf_type in zip(paths, found, others, both) if leaf_type is None]
        if wrong:
            raise _mismatch(f"{name}: the branches differ in type", wrong, f"in {labels[0]}", labels[number])
        found = [leaf_type for leaf_type in both if leaf_type is not None]
    return found


def _mismatch(what: str, pairs: Sequence[Pair], first: str, second: str) -> CaptureError:
    shown = [f"{path}: {one} {first}, {other} {'in ' if first != 'in' else ''}{second}" for path, one, other in pairs]
    _, one, other = pairs[0]
    if not same_shape(one.shape, other.shape):
        help_ = "shapes are fixed when the function is compiled: reshape or broadcast what is returned"
        return ShapeError(f"{what}, {shown[0]}", notes=tuple(shown[1:]), help=help_)
    cast = f"`.astype(np.{one.dtype.name})`"
    help_ = f"convert what is returned, {cast}" if not one.weak else f"convert one of them, {cast}"
    if first == "in":
        help_ += f", or start with {_started(other)}"
    return DTypeError(f"{what}, {shown[0]}", notes=tuple(shown[1:]), help=help_)


def _started(leaf_type: LeafType) -> str:
    return f"{leaf_type}" if not leaf_type.shape or leaf_type.weak else f"an array of dtype {leaf_type.dtype.name}"


def check_structure(name: str, what: str, tree: TreeDef, wanted: TreeDef, path: str) -> None:
    """Refuse a pytree of another structure than wanted."""
    if tree == wanted:
        return
    if tree.without_constants() == wanted.without_constants():
        raise _another_constant(name, tree, wanted, path)
    raise CaptureError(
        f"{name}: {what}",
        notes=(f"expected {_leaves(wanted, path)}", f"returned {_leaves(tree, path)}"),
        help="return the same containers, with the same keys, in the same order",
    )


def _another_constant(name: str, tree: TreeDef, wanted: TreeDef, path: str) -> CaptureError:
    """The error for a static leaf that changes."""
    before, after = wanted.constants(), tree.constants()
    paths = wanted.without_constants().paths(path)
    number = next(
        n for n in sorted({*before, *after}) if n not in before or n not in after or not _same(before, after, n)
    )
    one, other = (_shown(values[number]) if number in values else "a value" for values in (before, after))
    return CaptureError(
        f"{name}: {paths[number]} is static and differs: {one}, then {other}",
        help="functions and strings belong to the program; choose between functions with `ml.cond` or `ml.switch`",
    )


def _same(before: dict[int, Any], after: dict[int, Any], number: int) -> bool:
    return number in before and number in after and bool(exact_leaf(before[number]) == exact_leaf(after[number]))


def _shown(value: Any) -> str:
    named = getattr(value, "__qualname__", None) or getattr(value, "__name__", None)
    return f"`{named}`" if isinstance(named, str) else repr(value)


def _leaves(tree: TreeDef, path: str) -> str:
    paths = tree.paths(path)
    return ", ".join(paths[:8]) + (", ..." if len(paths) > 8 else "") if paths else f"an empty {path}"


def several(name: str, what: str, leaf_type: LeafType) -> ShapeError:
    """The error for a condition with more than one element."""
    return ShapeError(
        f"{name}: {what} must be one number, got {leaf_type}",
        help="join the elements with `np.all` or `np.any`; to select element by element use `np.where`",
    )
