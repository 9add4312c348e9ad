"""Errors of Python's in branches: where the program comes to such a branch the call fails, and else it does not."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import mlirml as ml

from .against_python import TARGETS, same

X = np.array([1.0, 2.0, 3.0])


def stored_into_an_empty_list(k, x):
    items = []
    if len(items) < 10 - k:
        items.append(1)
    else:
        items[0] = 2
    return items


def stored(k, x):
    items, j = [1, 2], 5
    if k > 10:
        items[j] = 3
    return items


def read(k, x):
    items, total = [1, 2], 0
    if k > 10:
        total += 1
        total = items[2]
    return total


def read_of_an_empty_list(k, x):
    items, total = [], 0.5
    if k > 10:
        total = items[0]
    else:
        total += x[0]
    return total, items


def popped(k, x):
    items, total = [], 0
    for v in x:
        if v > k - 9:
            total += items.pop()
    return total


def first_value(k, x):
    if k > 10:
        found = (1, 2)[len(x)]
        other = "a"
    else:
        found, other = x[1], "a"
    return found * 2, len(other)


def rows(k, x):
    table, total = [[1, 2], [3, 4]], 0
    if k > 10:
        total += table[1][2]
    return total, table


def deleted(k, x):
    items = [1, 2]
    if k > 10:
        del items[3]
    else:
        items.append(3)
    return items


def changed_before(k, x):
    items, d = [1, 2], {"a": 1}
    if k > 10:
        x[0] = 9.0
        items[0] = 7
        d["a"] += items[2]
    return items, d["a"]


def looked_up(k, x):
    return {1: 2}[3] if k > 10 else 5


def compared(k, x):
    items = [1, 2]
    return k > 10 and items[2] > 3


def in_a_loop(k, x):
    items = [1, 2]
    for i in range(len(x)):
        if x[i] > 10:
            for _ in range(2):
                x[i] += items[4]
        else:
            x[i] += items[1]
    return x


def divided(k, x):
    count = 0
    if k > 10:
        return 1.0 / count
    return x[0]


def smallest(k, x):
    items: list[Any] = []
    return min(items) if k > 10 else math.sqrt(k)


def asserted(k, x):
    if k > 10:
        if k > 11:
            assert len(x) > 3, "short"
        return 1
    return 2


def in_a_loop_that_does_not_iterate(k, x):
    """The error is one of the loop, which the branch may not run."""
    items = [1.0, 2.0]
    if k < 10:
        while items and items[-1] > 3:
            items.pop()
        for i in range(len(x)):
            if x[i] > 5:
                items.pop()
                items.pop()
                items.pop()
        while len(items) > 2:
            items.pop()
    return items


FUNCTIONS = [
    in_a_loop_that_does_not_iterate,
    stored_into_an_empty_list, stored, read, read_of_an_empty_list, popped, first_value, rows, deleted, changed_before,
    looked_up, compared, in_a_loop, divided, smallest, asserted,
]  # fmt: skip


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("function", FUNCTIONS)
def test_against_python(function: Any, target: str) -> None:
    compiled = ml.compile(function, target, frontend="loops")
    for k in (3, 12):
        given, x, error = X.copy(), X.copy(), None
        try:
            expected = function(k, x)
        except Exception as raised:
            error = raised
        if error is None:
            same(compiled(k, given), expected, True, f"k = {k}")
            same(given, x, True, f"x for k = {k}")
            continue
        with pytest.raises(type(error)) as caught:
            compiled(k, given)
        assert str(caught.value) and str(caught.value) in str(error)
        assert caught.traceback[-1].path.name == "test_failing_branches.py"
        same(given, X, True, "x of a call that fails")


def test_the_line() -> None:
    with pytest.raises(IndexError) as caught:
        ml.compile(read)(12, X)
    assert str(caught.traceback[-1].statement).strip() == "total = items[2]"


def test_what_python_finds_at_once() -> None:
    """Outside of branches such an error is one of tracing."""

    def at_once(x):
        items = [1, 2]
        return items[2] + x[0]

    with pytest.raises(IndexError, match="list index out of range"):
        ml.compile(at_once, frontend="loops").lower(X)
