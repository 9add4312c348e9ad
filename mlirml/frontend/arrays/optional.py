"""Variables that are None or have a value, depending on data: `found = None` before a search."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar, NoReturn

import numpy as np

from mlirml.core.dataclass import dataclass
from mlirml.core.tree import TreeDef, flatten
from mlirml.errors import DTypeError, UnsupportedSyntaxError
from mlirml.frontend.arrays.array import Traced
from mlirml.frontend.arrays.operators import install_operators
from mlirml.frontend.frames import at_user_line
from mlirml.ir.text import control
from mlirml.ir.text.builder import Check

NO_EXAMPLE: Any = object()
_HELP = "compare it with None first, `if x is not None:`, or start with a number, such as -1"


@dataclass(frozen=True, eq=False)
class Optional:
    """None where `present`, a bool of the program, is false, and else `value`: numbers, arrays, or tuples of them.

    A value that is None has any numbers of its types. Where a condition does not tell that it is there, operators check
    that at run time.
    """

    present: Any
    value: Any
    _mlirml_steps: ClassVar[dict[str, str]] = {"present": " is not None", "value": ""}  # in paths of leaves

    @staticmethod
    def _mlirml_built(parts: dict[str, Any]) -> Any:
        """None or the value, if it is known which, as in results."""
        present = parts["present"]
        if isinstance(present, Traced):
            return Optional(**parts)
        if np.ndim(present):
            raise UnsupportedSyntaxError(
                "a result of a batch is None for some examples and a number for others",
                help="return a number in place of None, such as -1",
            )
        return parts["value"] if present else None

    def _mlirml_given(self) -> Any:
        name = self.unassigned()
        if name is None:
            return self.checked(Check("DTypeError", "a value that is None is used as a number", _HELP))
        message = f"`{name}` has no value here: a branch assigns it, but not in this case"
        return self.checked(Check("UnassignedNameError", message, f"give `{name}` a value before"))

    def unassigned(self) -> str | None:
        """The name of a variable that is not None where it has no value, but unassigned; None for others."""
        present = getattr(getattr(self.present, "_cell", None), "value", None)
        return None if present is None else self.present._trace.unassigned.get(getattr(present, "name", ""))

    def checked(self, check: Check) -> Any:
        """The value, with a check at run time that it is there."""
        with at_user_line():
            b = self.present._trace.builder
            b.check(control.to_scalar(b, self.present._read()), check)
            return self.value

    def _mlirml_bound(self, default: int) -> Any:
        """The value as a bound of a slice, which is `default` for None."""
        return self.present._trace.hooks.select(self.present, lambda: self.value, lambda: default)

    def __getitem__(self, index: Any) -> Any:
        return self._mlirml_given()[index]

    def __iter__(self) -> Iterator[Any]:
        return iter(self._mlirml_given())

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        return getattr(ufunc, method)(*map(given, inputs), **kwargs)

    def __array_function__(self, function: Callable[..., Any], types: Any, args: Any, kwargs: Any) -> Any:
        return function(*map(given, args), **{name: given(value) for name, value in kwargs.items()})

    def __bool__(self) -> NoReturn:
        with at_user_line():
            raise DTypeError("the truth of a value that is None depending on data", help=_HELP)

    def __index__(self) -> NoReturn:
        with at_user_line():
            raise DTypeError("an integer that is None depending on data", help=_HELP)


def assigned(x: Any) -> Any:
    """Any value; of a variable that may be unassigned the value that it has, which is checked at run time."""
    return x._mlirml_given() if type(x) is Optional and x.unassigned() is not None else x


def given(x: Any) -> Any:
    """Any value; of a variable that may be None the value that it has, which is checked at run time."""
    return x._mlirml_given() if type(x) is Optional else x


def _operated(self: Optional, ufunc: np.ufunc, operands: Sequence[Any]) -> Any:
    if ufunc not in (np.equal, np.not_equal):
        return ufunc(*map(given, operands))
    with at_user_line():
        equal = _equal(*map(assigned, operands))
        return equal if ufunc is np.equal else np.logical_not(equal)


def _equal(one: Any, other: Any) -> Any:
    """`one == other`, as Python compares None with all else, too."""
    if type(one) is not Optional:
        one, other = other, one
    if type(one) is not Optional:
        return np.equal(one, other)
    if other is None:
        return np.logical_not(one.present)
    if type(other) is not Optional:
        return np.logical_and(one.present, np.equal(one.value, other))
    same = np.logical_and(np.equal(one.present, other.present), np.equal(one.value, other.value))
    return np.logical_or(same, np.logical_not(np.logical_or(one.present, other.present)))


install_operators(Optional, _operated, lambda self, ufunc, other: ufunc(given(self), given(other)))


def structure_of(values: Sequence[Any]) -> TreeDef | None:
    """The structure of a variable that is one of these values, of which one is or may be None; None for others."""
    payloads = [x.value if type(x) is Optional else x for x in values if x is not None]
    is_optional = len(payloads) < len(values) or any(type(x) is Optional for x in values)
    if not is_optional or not payloads or not all(map(_fits, payloads)):
        return None
    structure, *others = (flatten(Optional(True, payload))[1] for payload in payloads)
    return structure if all(other == structure for other in others) else None


def _fits(payload: Any) -> bool:
    """True for numbers, arrays, and tuples of them."""
    if type(payload) is tuple:
        return all(map(_fits, payload))
    return type(payload) in (bool, int, float, complex) or isinstance(payload, (Traced, np.generic))


def example_of(values: Sequence[Any]) -> Any:
    """A value with the structure of one that is one of these values: `Optional` for each item, also of tuples, that is
    None in some of them. `NO_EXAMPLE` for other values.
    """
    if structure_of(values) is not None:
        return Optional(True, next(x.value if type(x) is Optional else x for x in values if x is not None))
    if not all(type(x) is tuple and len(x) == len(values[0]) for x in values):
        same = all((x is None or _fits(x)) and flatten(x)[1] == flatten(values[0])[1] for x in values)
        return values[0] if same else NO_EXAMPLE
    items = [*map(example_of, zip(*values))]
    return NO_EXAMPLE if any(item is NO_EXAMPLE for item in items) else tuple(items)


def has_structure(value: Any, treedef: TreeDef) -> bool:
    """True for a value that `leaves_of` takes apart."""
    if treedef.kind is Optional:
        return value is None or structure_of([value, None]) == treedef
    if treedef.kind is tuple:
        children = treedef.children
        return type(value) is tuple and len(value) == len(children) and all(map(has_structure, value, children))
    return flatten(value)[1] == treedef


def leaves_of(value: Any, treedef: TreeDef, otherwise: Sequence[Any] = ()) -> list[Any]:
    """The leaves of a value in a structure with `Optional`; None has those of `otherwise`, or zeros."""
    found, structure = flatten(value)
    if structure == treedef:
        return found
    if treedef.kind is Optional:
        return [False, *(otherwise[1:] or [0] * (treedef.leaf_count() - 1))] if value is None else [True, *found]
    if treedef.kind is not tuple:
        return found
    rest, leaves = iter(otherwise), []
    for item, child in zip(value, treedef.children):
        leaves += leaves_of(item, child, [*itertools.islice(rest, child.leaf_count())])
    return leaves
