"""Long lists of numbers among the arguments of a call, each passed as one array."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from mlirml.core.dataclass import dataclass

FEWEST = 65
"""The least number of numbers for a list to be passed as an array; shorter lists are passed number by number."""


class ListArray(np.ndarray):
    """The numbers of a list, or of lists of lists: `source`."""

    source: list[Any]

    def restore(self) -> None:
        """Put the numbers of the array into the list."""
        _restore(self.source, self.tolist())


def _restore(old: list[Any], new: list[Any]) -> None:
    if type(new[0]) is not list:
        old[:] = new
        return
    for one, other in zip(old, new):
        _restore(one, other)


@dataclass(frozen=True)
class ListOf:
    """The container type in a `TreeDef` for a list of numbers that is one array: a container of that array."""

    number: type

    def _make(self, arrays: Iterable[Any]) -> NumberList:
        (array,) = arrays
        return NumberList(self.number, array)


@dataclass(frozen=True, eq=False)
class NumberList:
    """A list of Python numbers of one type, or of lists of lists of them, as an array."""

    number: type
    array: Any


def packed(arguments: tuple[Any, ...], named: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]] | None:
    """The arguments of a call with long lists of numbers as arrays; None without such lists.

    One list that is passed twice is one array.
    """
    made: dict[int, Any] = {}

    def one(value: Any) -> Any:
        if type(value) is not list or len(value) == 0:
            return value
        if id(value) not in made:
            made[id(value)] = _array(value) or value
        return made[id(value)]

    found = tuple(map(one, arguments)), {name: one(value) for name, value in named.items()}
    return found if any(type(value) is NumberList for value in made.values()) else None


def _array(value: list[Any]) -> NumberList | None:
    """The array of a long list of numbers of one type, or of distinct lists of them as long as each other."""
    rows = value
    while (types := set(map(type, rows))) == {list}:
        if len(set(map(len, rows))) > 1 or len(set(map(id, rows))) < len(rows):
            return None
        rows = [item for row in rows for item in row]
    if len(rows) < FEWEST or len(types) > 1 or not types <= {bool, int, float, complex}:
        return None
    (number,) = types
    try:
        array = np.array(value, np.dtype(number)).view(ListArray)
    except OverflowError:
        return None
    array.source = value
    return NumberList(number, array)
