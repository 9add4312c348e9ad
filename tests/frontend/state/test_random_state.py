"""Random objects, dicts, lists, arrays and numbers inside of each other: each change of them is seen."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import mlirml as ml

X = np.arange(3.0)
NAMES = ("a", "b", "c")


class Node:
    """An object with attributes."""

    def __init__(self, **held: Any) -> None:
        vars(self).update(held)

    def total(self, x: Any) -> Any:
        return weighted(list(vars(self).values()), x)

    def __len__(self) -> int:
        return len(vars(self))


class Slots:
    """An object with slots."""

    __slots__ = NAMES

    def __init__(self, **held: Any) -> None:
        for name, value in held.items():
            setattr(self, name, value)

    def total(self, x: Any) -> Any:
        return weighted([getattr(self, name) for name in NAMES if hasattr(self, name)], x)


def weighted(items: Any, x: Any) -> Any:
    result: Any = 0.0
    for weight, item in enumerate(items, 1):
        result = result + weight * total(item, x)
    return result


def total(value: Any, x: Any) -> Any:
    """A number that depends on all that is reached, and on where it is."""
    if isinstance(value, (Node, Slots)):
        return value.total(x)
    if isinstance(value, dict):
        return weighted(value.values(), x) + 0.5 * len(value)
    if isinstance(value, (list, tuple, deque)):
        return weighted(value, x) - 0.5 * len(value)
    if isinstance(value, np.ndarray):
        return np.sum(x * value) + value[0] + np.sum(value * value) if len(value) > 1 else np.sum(x) * value
    return np.sum(x) * value


def leaf(draw: random.Random) -> Any:
    kind = draw.randrange(5)
    if kind == 0:
        return np.array([float(draw.randrange(9)) for _ in range(3)])
    if kind == 1:
        return np.array([draw.randrange(9)])
    return (draw.randrange(9), draw.random(), bool(draw.randrange(2)))[kind - 2]


def made(draw: random.Random, depth: int) -> Any:
    kind = draw.randrange(8) if depth else 7
    held = {name: made(draw, depth - 1) for name in NAMES[: draw.randrange(1, 4)]} if kind < 7 else {}
    if kind < 2:
        return Node(**held)
    if kind == 2:
        return Slots(**held)
    if kind == 3:
        return dict(held)
    if kind < 6:
        return list(held.values())
    return (tuple if draw.randrange(2) else deque)(held.values()) if kind == 6 else leaf(draw)


def reached(value: Any) -> Iterator[Any]:
    """Everything that can change."""
    if isinstance(value, (Node, Slots, dict, list, deque, np.ndarray)):
        yield value
    if isinstance(value, Slots):
        inner: Any = [getattr(value, name) for name in NAMES if hasattr(value, name)]
    elif isinstance(value, Node):
        inner = vars(value).values()
    else:
        inner = value.values() if isinstance(value, dict) else value if isinstance(value, (list, tuple, deque)) else ()
    for item in inner:
        yield from reached(item)


def changed(value: Any, draw: random.Random) -> str:
    """Change one thing; in words, what."""
    holder = draw.choice(list(reached(value)))
    new = made(draw, draw.randrange(2))
    if isinstance(holder, np.ndarray):
        holder[draw.randrange(len(holder))] += 1
        return "an element"
    if isinstance(holder, (Node, Slots)):
        setattr(holder, draw.choice(NAMES), new)
        return "an attribute"
    if isinstance(holder, dict):
        how = draw.randrange(3)
        if how == 0 and len(holder) > 1:
            holder.update({key: holder.pop(key) for key in [next(iter(holder))]})
            return "the order of a dict"
        if how == 1 and len(holder) > 1:
            del holder[draw.choice(list(holder))]
            return "a removed key"
        holder[draw.choice((*NAMES, "d"))] = new
        return "an item of a dict"
    how = draw.randrange(3)
    if how == 0 and len(holder) > 1:
        holder.pop()
        return "a removed item"
    if how == 1 and len(holder) < 6:
        holder.append(new)
        return "a new item"
    holder[draw.randrange(len(holder))] = new
    return "an item of a list"


def of_closure(root: Any) -> Callable[[Any], Any]:
    return lambda x: total(root, x)


def of_attribute(root: Any) -> Callable[[Any], Any]:
    return Node(a=root).total


def of_container(root: Any) -> Callable[[Any], Any]:
    kept = {"root": [root]}
    return lambda x: total(kept["root"][0], x)


@pytest.mark.parametrize("frontend", ["auto", "loops"])
@pytest.mark.parametrize("seed", range(4))
def test_changes_are_seen(seed: int, frontend: str) -> None:
    draw = random.Random(seed)
    root = [made(draw, 2), made(draw, 3)]
    function = draw.choice([of_closure, of_attribute, of_container])(root)
    compiled = ml.compile(function, "reference", frontend=frontend)
    what = "nothing"
    for step in range(8):
        expected = function(X)
        for call in range(2):
            np.testing.assert_allclose(compiled(X), expected, rtol=1e-12, err_msg=f"{seed} {step} {call}: {what}")
        what = changed(root, draw)
