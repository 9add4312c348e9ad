"""Lists of numbers among the arguments, which numbers of the program may index.

    def f(prices, n):                   f([3.0, 1.0, 2.0], 3)
        best = 0.0
        for i in range(n):
            best = max(best, prices[i])

The function gets lists of the front end in place of them, so that they become arrays where that is needed. What is
stored into them goes back to the user's lists with the other new items of containers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mlirml.core.number_lists import NumberList
from mlirml.errors import UnsupportedSyntaxError
from mlirml.frontend.arrays.carry import LeafType
from mlirml.frontend.arrays.growing_list import GrowingList
from mlirml.frontend.arrays.list_parts import number_rows
from mlirml.frontend.arrays.number_lists import numbers_in

if TYPE_CHECKING:
    from mlirml.frontend.tracing.trace import Trace


class ArgumentLists:
    """The lists of numbers of one call, with the items or the array that they were given."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._given: list[tuple[GrowingList, list[Any] | NumberList]] = []

    def of(self, value: Any) -> Any:
        """A container with lists of the front end in place of its lists of numbers."""
        if type(value) is NumberList:
            return self._made([number_rows(value.array, LeafType((), value.array.dtype, True))], value)
        if type(value) is tuple:
            return tuple(map(self.of, value))
        if type(value) is dict:
            value.update({key: self.of(item) for key, item in value.items()})
        if type(value) is not list:
            return value
        value[:] = map(self.of, value)
        return value if numbers_in(value) is None else self._made(value, [*value])

    def _made(self, parts: list[Any], given: list[Any] | NumberList) -> GrowingList:
        made = GrowingList(self._trace, parts, grows=False)
        self._given.append((made, given))
        return made

    def plain(self, value: Any) -> Any:
        """A container with plain lists: of the items that were given, where nothing has been stored."""
        if type(value) is tuple:
            return tuple(map(self.plain, value))
        if type(value) is dict:
            return {key: self.plain(item) for key, item in value.items()}
        if type(value) is list:
            return [self.plain(item) for item in value]
        if type(value) is not GrowingList:
            return value
        given = next((given for made, given in self._given if made is value), None)
        if isinstance(given, NumberList):
            rows = value.rows
            if rows is not None and rows.columns[0]._cell is given.array._cell:
                return given
        elif value.is_counted:
            raise UnsupportedSyntaxError(
                "a list among the arguments gets other items as often as the data say",
                help="append to a new list, and return that",
            )
        elif given is not None and not value.whole.changed:
            return [self.plain(item) for item in given]
        return [self.plain(item) for item in value.items()]
