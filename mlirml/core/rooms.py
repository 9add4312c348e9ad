"""The room that compiled code has for the items of lists whose lengths only the data decide."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from mlirml.errors import OutgrownListError

CAPACITIES: dict[str, int] = {}
"""The most items of the lists that an expression creates, by its file, line and column."""

_FIRST, _MOST, _FACTOR = 1 << 10, 1 << 26, 16
_TOGETHER, _FEWEST = 1 << 17, 16
_OF_MANY: set[str] = set()


def capacity_of(site: str, least: int = 0) -> int:
    """The most items of the lists of an expression: at least so many."""
    while CAPACITIES.setdefault(site, _FIRST) < least:
        CAPACITIES[site] *= _FACTOR
    return CAPACITIES[site]


def shares_room(site: str, count: int) -> bool:
    """True if the lists of an expression get less room than others at first, as there are so many, from now on."""
    first = max(_FEWEST, _TOGETHER // count)
    if site in _OF_MANY or first >= CAPACITIES.setdefault(site, _FIRST):
        return False
    _OF_MANY.add(site)
    CAPACITIES[site] = first
    return True


def repeated(call: Callable[..., Any]) -> Callable[..., Any]:
    """Decorator: a method that is called once more where a list outgrew its room."""

    @wraps(call)
    def calls(self: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        while True:
            try:
                return call(self, args, dict(kwargs))
            except OutgrownListError as error:
                if not _enlarge(error) or not error.repeatable:
                    raise

    return calls


def _enlarge(error: OutgrownListError) -> bool:
    """Make more room, unless another thread did; False if the list is as long as one may become."""
    if error.capacity >= _MOST:
        return False
    if CAPACITIES[error.site] == error.capacity:
        CAPACITIES[error.site] *= _FACTOR
    return True
