"""The room that compiled code has for the items of lists whose lengths only the data decide."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from mlirml.errors import OutgrownListError

CAPACITIES: dict[str, int] = {}
"""The most items of the lists that an expression creates, by its file, line and column."""

_FIRST, _MOST, _FACTOR = 1 << 10, 1 << 26, 16


def capacity_of(site: str, least: int = 0) -> int:
    """The most items of the lists of an expression: at least so many."""
    while CAPACITIES.setdefault(site, _FIRST) < least:
        CAPACITIES[site] *= _FACTOR
    return CAPACITIES[site]


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
