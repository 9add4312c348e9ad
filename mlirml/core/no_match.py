"""The exception of what looks for a form of the IR and does not find it, and what asks for such forms."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

_Item = TypeVar("_Item")
_Found = TypeVar("_Found")


class NoMatch(Exception):
    """A pattern or matcher does not apply here; the text is the reason, shown as a remark."""


def attempt(match: Callable[..., _Found], *operands: Any) -> _Found | None:
    """The result of a matcher; None where it does not apply."""
    try:
        return match(*operands)
    except NoMatch:
        return None


def applies(match: Callable[..., Any], *operands: Any, **options: Any) -> bool:
    """True if a matcher applies."""
    try:
        match(*operands, **options)
    except NoMatch:
        return False
    return True


def matched(match: Callable[..., _Found], items: Iterable[_Item], *operands: Any) -> Iterator[tuple[_Item, _Found]]:
    """The items to which a matcher applies, each with its result; an item is looked at after the one before is used."""
    for item in items:
        try:
            found = match(item, *operands)
        except NoMatch:
            continue
        yield item, found
