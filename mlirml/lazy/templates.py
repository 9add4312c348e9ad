"""Arguments with gaps for arrays and numbers: nested tuples that are hashable, so that equal calls are one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from mlirml.core.tree import exact

GAP = "gap"
_NUMBERS = (int, float, complex)


class NoTemplateError(Exception):
    """An argument is no array, number or hashable object: the call is left to NumPy."""


def taken_apart(value: Any, operands: list[Any], operand: Callable[[Any], Any]) -> Any:
    """The template of a value; what goes into its gaps is appended to `operands`.

    `operand` turns an array into what is appended, and returns None for what is no array.
    """
    kind = type(value)
    if kind in _NUMBERS or isinstance(value, np.generic):
        operands.append(value)
        return GAP
    if kind is tuple or kind is list:
        return (kind, *(taken_apart(item, operands, operand) for item in value))
    if kind is dict:
        return (dict, *((key, taken_apart(value[key], operands, operand)) for key in value))
    if kind is slice:
        return (slice, *(taken_apart(part, operands, operand) for part in (value.start, value.stop, value.step)))
    found = operand(value)
    if found is not None:
        operands.append(found)
        return GAP
    if isinstance(value, tuple):
        return (kind, *(taken_apart(item, operands, operand) for item in value))
    try:
        hash(value)
    except TypeError:
        raise NoTemplateError from None
    return "static", _Static(value)


class _Static:
    """A static argument, equal to one of the same type and value."""

    __slots__ = ("_exact", "value")

    def __init__(self, value: Any) -> None:
        self.value, self._exact = value, exact(value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Static) and self._exact == other._exact

    def __hash__(self) -> int:
        return hash(self._exact)


def filled(template: Any, operands: Sequence[Any]) -> Any:
    """The value of a template, with operands in its gaps."""
    return _filled(template, iter(operands))


def _filled(template: Any, operands: Iterator[Any]) -> Any:
    if template is GAP:
        return next(operands)
    kind = template[0]
    if kind == "static":
        return template[1].value
    if kind is dict:
        return {key: _filled(item, operands) for key, item in template[1:]}
    items = [_filled(item, operands) for item in template[1:]]
    if kind is list:
        return items
    if kind is slice or hasattr(kind, "_fields"):
        return kind(*items)
    return kind(items)
