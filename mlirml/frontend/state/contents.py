"""Lists and dicts among the arguments to which a function adds items, or from which it removes some.

    def f(items, x):                    items = [2.0, 3.0]; f(items, 4.0)
        items.append(x)                 items[:] = [items[0], items[1], 4.0], after the call

The new items are outputs of the program. Those that were there before, in any of these containers, stay the same
objects. They hold numbers and arrays only: a list in a list could have another name.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mlirml.core.dataclass import dataclass
from mlirml.core.tree import flatten
from mlirml.errors import CaptureError
from mlirml.frontend.captured import STATE, Contents


@dataclass
class NewContents:
    """The contents of containers after a call; the items that are `outputs` of the program."""

    found: list[Contents]
    outputs: list[Any]


def changed_contents(before: Any, after: Any, inputs: Sequence[Any]) -> tuple[Any, NewContents]:
    """The arguments after a call with their old items in containers that have others, and the contents of those."""
    new, numbers = NewContents([], []), {id(x): number for number, x in enumerate(inputs)}

    def restored(old: Any, now: Any, path: tuple[Any, ...]) -> Any:
        if type(old) is not type(now) or type(now) not in (tuple, list, dict):
            return now
        keys = [*old] if isinstance(old, dict) else [*range(len(old))]
        if keys == ([*now] if isinstance(now, dict) else [*range(len(now))]):
            items = [restored(old[key], now[key], (*path, key)) for key in keys]
            return dict(zip(keys, items)) if isinstance(old, dict) else type(old)(items)
        values = [*now.values()] if isinstance(now, dict) else [*now]
        if len(path) < 2 or path[1] == STATE or isinstance(now, tuple) or not _are_leaves(values):
            return now
        if not _are_leaves(old.values() if isinstance(old, dict) else old):
            return now
        new.found.append(Contents(path, tuple(now) if isinstance(now, dict) else None, tuple(map(number_of, values))))
        return old

    def number_of(item: Any) -> Any:
        if isinstance(item, (str, bytes)):
            return (item,)
        if (known := numbers.get(id(item))) is not None:
            return known
        new.outputs.append(item)
        return -len(new.outputs)

    return restored(before, after, ()), new


def _are_leaves(items: Any) -> bool:
    return all(x is not None and len(leaves := flatten(x)[0]) == 1 and leaves[0] is x for x in items)


def refused() -> CaptureError:
    """The error for containers that cannot get other items."""
    return CaptureError(
        "a list, dict or dataclass among the arguments has other items after the call than before",
        help="return what is new; only lists and dicts of numbers and arrays can get and lose items",
    )
