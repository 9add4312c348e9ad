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
