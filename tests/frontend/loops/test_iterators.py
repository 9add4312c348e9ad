"""Iterators that a function makes, and methods of containers that it keeps in variables: right, or refused."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mlirml as ml

X = np.array([5, 3, 8, 1, 0, 2])


def signs(x: Any) -> Any:
    sign, total = itertools.cycle([1, -1]), 0
    for i in range(len(x)):
        total += x[i] * next(sign)
    return total


def numbered(x: Any) -> Any:
    number = itertools.count(5)
    return x[0] * next(number) + x[1] * next(number)


def pairs_until(x: Any) -> Any:
    total = 0
    for i, j in itertools.combinations(range(len(x)), 2):
        if x[i] == 1 and x[j] == 2:
            break
        total += x[i] * x[j]
    return total


def fresh_ones(x: Any) -> Any:
    total = 0
    for k in range(3):
        both = zip(x, x[::-1])
        for v, w in both:
            total += v * w + k
    for v in map(lambda y: y + 1, x):  # noqa: C417
        total += v
    doubled = (v * 2 for v in x)
    for v in doubled:
        total += v
    return total


def stored_by_method(x: Any) -> Any:
    counts = {"n": 0}
    put, update = counts.__setitem__, counts.update
    if x[0] > 0:
        put("n", 5)
    if x[1] > 0:
        update({"n": counts["n"] + 1})
    return counts["n"]


def sorted_by_method(x: Any) -> Any:
    items = [3, 1, 2]
    order = items.sort
    if x[0] > 0:
        order()
    return items[0]


def appended_by_method(x: Any) -> Any:
    items: list[Any] = []
    add = items.append
    for v in x:
        add(v * 2)
    return np.array(items)


@pytest.mark.parametrize(
    "function",
    [signs, numbered, pairs_until, fresh_ones, stored_by_method, sorted_by_method, appended_by_method],
    ids=lambda f: f.__name__,
)
@pytest.mark.parametrize("frontend", ["auto", "loops"])
def test_equals_python(function: Callable[..., Any], frontend: str) -> None:
    for x in (X, -X, X[::-1].copy()):
        assert np.array_equal(ml.compile(function, frontend=frontend)(x), function(x))


def rest_after_break(x: Any) -> Any:
    items, total = iter(x), 0
    for v in items:
        if v == 8:
            break
    for v in items:
        total = total * 10 + v
    return total


def rest_of_zip(x: Any) -> Any:
    items, total = zip(x, range(6)), 0
    for v, _ in items:
        if v == 8:
            break
    for v, w in items:
        total = total * 10 + v * w
    return total


def twice(x: Any) -> Any:
    items, total = enumerate(x), 0
    for i, v in items:
        total += i * v
    for i, _ in items:
        total += i
    return total


def in_a_while(x: Any) -> Any:
    numbers, total, i = iter(range(100)), 0, 0
    while x[i] > 0:
        total += next(numbers)
        i += 1
    return total


def in_a_branch(x: Any) -> Any:
    numbers, first = itertools.count(), -1
    if x[0] > 0:
        first = next(numbers)
    return first, next(numbers)


def in_an_expression(x: Any) -> Any:
    numbers = itertools.count()
    first = next(numbers) if x[0] > 0 else -1
    return first, next(numbers)


def partial_in_a_branch(x: Any) -> Any:
    items = [1, 2]
    add = functools.partial(items.append, 3)
    if x[0] > 0:
        add()
    return len(items)


def set_in_a_branch(x: Any) -> Any:
    items = {1}
    add = items.add
    if x[0] > 0:
        add(7)
    return len(items)


@pytest.mark.parametrize(
    "function",
    [rest_after_break, rest_of_zip, twice, in_a_while, in_a_branch, in_an_expression, partial_in_a_branch,
     set_in_a_branch],
    ids=lambda f: f.__name__,
)  # fmt: skip
def test_refused(function: Callable[..., Any]) -> None:
    with pytest.raises(ml.UnsupportedSyntaxError) as error:
        ml.compile(function, frontend="loops")(X)
    assert error.value.location is not None and error.value.location.file == __file__


CAPTURED = np.arange(3.0)


def types(x: Any, n: Any) -> Any:
    items = [x[0], x[1]]
    tests = (
        type(x) is np.ndarray, type(x) == np.ndarray, type(x) is type(CAPTURED), type(items) is list,  # noqa: E721
        type(x[0]) is np.float64, type(n) is int, type(len(x)) is int, isinstance(x, type(CAPTURED)),
        isinstance(int, type), type(x) in (list, np.ndarray), type(None) is None.__class__,
    )  # fmt: skip
    return sum(2**k for k, found in enumerate(tests) if found)


@pytest.mark.parametrize("frontend", ["auto", "loops"])
def test_type(frontend: str) -> None:
    for n in (2, 2.0, np.int64(2)):
        assert ml.compile(types, frontend=frontend)(CAPTURED, n) == types(CAPTURED, n)
