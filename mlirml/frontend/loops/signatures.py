"""Keys of facts learned in earlier attempts to trace a construct: the types of variables, not their identities."""

from __future__ import annotations

import types
from collections.abc import Iterable
from typing import Any

from mlirml.frontend.arrays.array import Traced
from mlirml.frontend.arrays.growing_list import GrowingList
from mlirml.frontend.arrays.optional import Optional


class Signature:
    """A description of variables that is equal in each attempt to trace the code around them.

    Arrays and functions that an attempt makes anew are numbered in the order in which they are met, so that two names
    of one array differ from two arrays. All other objects are described by identity, and listed in `met`, as they have
    to live as long as the key.
    """

    def __init__(self) -> None:
        self.met: list[Any] = []
        self._numbers: dict[int, int] = {}

    def of(self, variables: Iterable[tuple[str, Any]]) -> tuple[Any, ...]:
        """The description of variables."""
        return tuple((name, self._sign(value)) for name, value in variables)

    def _sign(self, value: Any) -> Any:
        if isinstance(value, Traced):
            alias = () if value._scalar else self._number(value._cell)[0]
            return value.shape, value.dtype, value._is_weak(), value._scalar, alias
        if type(value) in (bool, int, float, complex):
            return type(value), repr(value)
        if type(value) is not GrowingList and isinstance(value, (tuple, list)):
            return type(value), tuple(map(self._sign, value))
        if type(value) is Optional:
            return Optional, self._sign(value.present), self._sign(value.value)
        if type(value) is types.FunctionType:
            return self._function(value)
        self.met.append(value)
        return id(value)

    def _function(self, function: types.FunctionType) -> Any:
        """The code of a function, and what it holds; of one that was met before its number."""
        number, is_new = self._number(function)
        if not is_new:
            return types.FunctionType, number
        defaults = tuple(map(self._sign, function.__defaults__ or ()))
        named = tuple((name, self._sign(value)) for name, value in (function.__kwdefaults__ or {}).items())
        held = tuple(map(self._content, function.__closure__ or ()))
        return types.FunctionType, number, function.__code__, id(function.__globals__), defaults, named, held

    def _content(self, cell: types.CellType) -> Any:
        try:
            return self._sign(cell.cell_contents)
        except ValueError:
            return None

    def _number(self, item: Any) -> tuple[int, bool]:
        count = len(self._numbers)
        number = self._numbers.setdefault(id(item), count)
        return number, number == count
