"""Comparisons by identity: with None of variables that are None depending on data, and of booleans."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from mlirml.frontend.arrays.array import Traced
from mlirml.frontend.arrays.optional import Optional, assigned
from mlirml.frontend.frames import at_user_line
from mlirml.frontend.tracing.affine import Condition, value_in
from mlirml.frontend.tracing.mixed_booleans import is_mixed, refused
from mlirml.ir.text.builder import Check


def is_same(one: Any, other: Any) -> Any:
    """`one is other`: values that may be None are compared with None, and booleans of one type with each other."""
    one, other = assigned(one), assigned(other)
    if one is None or type(other) is Optional:
        one, other = other, one
    if type(one) is Optional and (other is None or _boolean_type(other) is not None):
        with at_user_line():
            if other is None:
                return _noted(one, np.logical_not(one.present), False, True)
            return np.logical_and(one.present, is_same(one.value, other))
    if isinstance(one, Traced) or isinstance(other, Traced):
        if is_mixed(one) or is_mixed(other):
            with at_user_line():
                raise refused("`is`")
        types = {_boolean_type(one), _boolean_type(other)}
        if len(types) == 1 and None not in types:
            with at_user_line():
                return one == other
    return one is other


def _boolean_type(x: Any) -> type | None:
    """The type of a truth value, of which each value is one object; None for anything else."""
    if isinstance(x, Traced) and x.dtype.kind == "b" and not x.ndim:
        return bool if x._is_weak() else np.bool_ if x._scalar else None
    return type(x) if type(x) in (bool, np.bool_) else None


def some(x: Any, name: str) -> Any:
    """The largest or smallest item; `ShapeError`, a ValueError, at run time where there are no items."""
    if type(x) is not Optional:
        return x
    return x.checked(Check("ShapeError", f"{name}: there are no items", "give it a `default`"))


def truth_of(x: Optional) -> Any:
    """The truth of a variable that may be None, which is false then."""
    with at_user_line():
        return _noted(x, x.present if type(x.value) is tuple and x.value else np.logical_and(x.present, x.value), True)


def _noted(x: Optional, condition: Any, *known: bool) -> Any:
    """A condition, noted with whether the value is there where it holds and, if that is known, where it does not."""
    present, value = value_in(x.present), value_in(condition)
    if present is not None and value is not None:
        presence = [((present.name, is_there),) for is_there in known]
        x.present._trace.integers.conditions[value.name] = Condition((), (), *presence)
    return condition


@contextmanager
def narrowed(functions: Sequence[Any], presence: Sequence[tuple[str, bool]]) -> Iterator[None]:
    """Context manager: variables of functions that are known to be None, or not, are that, or their values."""
    known, changed = dict(presence), []
    if known:
        cells = {id(cell): cell for one in functions for cell in getattr(one, "__closure__", None) or ()}
        for cell in cells.values():
            try:
                value = cell.cell_contents
            except ValueError:
                continue
            present = value_in(value.present) if type(value) is Optional else None
            if present is not None and present.name in known:
                cell.cell_contents = now = value.value if known[present.name] else None
                changed.append((cell, value, now))
    try:
        yield
    finally:
        for cell, value, now in changed:
            try:
                if cell.cell_contents is now:
                    cell.cell_contents = value
            except ValueError:
                continue
