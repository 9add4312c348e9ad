"""Variables that are None or have a value, depending on data."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mlirml as ml
from tests.fuzz.oracle import TARGETS

X = np.array([3.0, 1.0, -2.0, 5.0, 1.5])
NONE = -np.abs(X) - 10


def first_above(x: Any, t: Any) -> Any:
    found = None
    for i in range(x.shape[0]):
        if x[i] > t:
            found = i
            break
    if found is None:
        return -1
    return found


def last_below(x: Any, t: Any) -> Any:
    value = None
    i = 0
    while i < len(x):
        if x[i] < t:
            value = x[i]
        i += 1
    return 0.5 if value is None else value


def smallest_above(x: Any, t: Any) -> Any:
    best = None
    for v in x:
        if v > t and (best is None or v < best):
            best = v
    return best if best is not None else np.inf


def position_and_value(x: Any, t: Any) -> Any:
    best = None
    for i in range(len(x)):
        if x[i] > t and (best is None or x[i] > best[1]):
            best = (i, x[i])
    if best is None:
        return -1, 0.0
    i, value = best
    return i, value


def bisected(x: Any, t: Any) -> Any:
    ordered = np.sort(x)
    low, high, found = 0, len(ordered) - 1, None
    while low <= high and found is None:
        middle = (low + high) // 2
        if ordered[middle] == t:
            found = middle
        elif ordered[middle] < t:
            low = middle + 1
        else:
            high = middle - 1
    return found if found is not None else -1


def reset(x: Any, t: Any) -> Any:
    previous, total = None, 0.0
    for v in x:
        if v < t:
            previous = None
        elif previous is None:
            previous = v
        else:
            total += v * previous
            previous = v
    return total


def given_at_first(x: Any, t: Any) -> Any:
    current, count = 1.5, 0
    for v in x:
        if current is not None and v > current:
            count += 1
            current = None if v > t else v
    return count if current is None else -count


def row(x: Any, t: Any) -> Any:
    chosen = None
    pairs = x[:4].reshape(2, 2)
    for i in range(2):
        if pairs[i, 0] > t:
            chosen = pairs[i] * 2.0
    if chosen is None:
        chosen = np.zeros(2)
    return chosen


def conditional(x: Any, t: Any) -> Any:
    y = x[0] if x[0] > t else None
    z = None if x[1] > t else 2
    return (0.0 if y is None else y) + (1 if z is None else z)


def equal(x: Any, t: Any) -> Any:
    found = None
    for i in range(len(x)):
        if x[i] > t:
            found = i
    return found == 3, found != 3, found == None, found != None, t == found  # noqa: E711


def in_a_helper(x: Any, t: Any) -> Any:
    def search(row: Any) -> Any:
        found = None
        for i in range(len(row)):
            if found is None and row[i] > t:
                found = i
        return found

    first, second = search(x), search(x[::-1])
    if first is None or second is None:
        return -1
    return first * 10 + second


def used_unchecked(x: Any, t: Any) -> Any:
    found = None
    for v in x:
        if v > t:
            found = v
    some = np.max(x) > t
    return found * 2 + 1 if some else 0.0


def nested(x: Any, t: Any) -> Any:
    pair = None
    for i in range(len(x)):
        for j in range(i + 1, len(x)):
            if x[i] + x[j] > t:
                pair = (i, j)
                break
        if pair is not None:
            break
    return (-1, -1) if pair is None else pair


def after_none(x: Any, t: Any) -> Any:
    a, b = None, None
    for v in x:
        if v > t:
            a, b = v, a
    if a is None:
        return 0.0
    if b is None:
        return a
    return a - b


def value_and_position(x: Any, t: Any) -> Any:
    for i in range(len(x)):
        if x[i] > t:
            return x[i], i
    return None, -1


def pair_of_none(x: Any, t: Any) -> Any:
    if x[0] > t:
        return 1, None
    if x[1] > t:
        return None, 2
    return None, None


def nested_tuples(x: Any, t: Any) -> Any:
    if x[0] > t:
        return (x * 2, None), (1, (None, 3))
    return (x, x.sum()), (2, (x[2], 4))


def two_searches(x: Any, t: Any) -> Any:
    def find(limit: Any) -> Any:
        for i in range(len(x)):
            if x[i] > limit:
                return i, x[i]
        return None, 0.0

    (i, v), (j, u) = find(t), find(t + 1)
    total = v + u
    if i is not None:
        total += i
    if j is not None:
        total += j
    return total, i, j


def limits(x: Any, t: Any) -> Any:
    low, high = (None, None) if x[0] > t else (x.min(), x.max())
    return 0.0 if low is None else low, high


PROGRAMS = [
    first_above, last_below, smallest_above, position_and_value, bisected, reset, given_at_first, row, conditional,
    equal, in_a_helper, used_unchecked, nested, after_none, value_and_position, pair_of_none, nested_tuples,
    two_searches, limits,
]  # fmt: skip


def same(found: Any, expected: Any) -> bool:
    if isinstance(expected, tuple):
        return isinstance(found, tuple) and all(map(same, found, expected))
    if expected is None or found is None:
        return found is expected
    return np.array_equal(found, expected)


@pytest.mark.parametrize("function", PROGRAMS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("target", TARGETS)
def test_programs(function: Callable[..., Any], target: str) -> None:
    for frontend in ("auto", "loops"):
        compiled = ml.compile(function, target, frontend=frontend)
        for x in (X, NONE, X[::-1].copy(), np.sort(X)):
            for t in (0.0, 2.0, 4.0, 1.5, 100.0):
                assert same(compiled(x, t), function(x, t)), (x, t)


def found_or_none(x: Any, t: Any) -> Any:
    for i in range(len(x)):
        if x[i] > t:
            return i, x[i]
    return None


def best(x: Any, t: Any) -> Any:
    best, count = None, 0
    for v in x:
        if v > t and (best is None or v < best):
            best = v
            count += 1
    return {"best": best, "count": count}


def test_results_that_are_none() -> None:
    for t in (0.0, 2.0, 100.0):
        assert same(ml.compile(found_or_none)(X, t), found_or_none(X, t))
        found, expected = ml.compile(best)(X, t), best(X, t)
        assert found["count"] == expected["count"] and same(found["best"], expected["best"])


def unchecked(x: Any, t: Any) -> Any:
    found = None
    for v in x:
        if v > t:
            found = v
    return found * 2


def test_none_used_as_a_number() -> None:
    compiled = ml.compile(unchecked)
    assert compiled(X, 4.0) == 10
    with pytest.raises(ml.DTypeError, match="None is used as a number") as error:
        compiled(X, 100.0)
    assert error.value.location is not None and error.value.location.line == unchecked.__code__.co_firstlineno + 5


def test_derivatives() -> None:
    derivative = ml.compile(ml.grad(smallest_above))
    assert np.array_equal(derivative(X, 0.0), [0, 1, 0, 0, 0]) and np.array_equal(derivative(X, 2.0), [1, 0, 0, 0, 0])


def test_batches() -> None:
    batched = ml.compile(ml.vmap(first_above, in_axes=(None, 0)))
    assert np.array_equal(batched(X, np.array([0.0, 4.0, 100.0])), [0, 3, -1])
    with pytest.raises(ml.MlirmlError, match="None for some examples"):
        ml.compile(ml.vmap(best, in_axes=(None, 0)))(X, np.array([0.0, 100.0]))


def dynamic(n: int, x: Any, t: Any) -> Any:
    found = None
    for i in range(n):
        if x[i] > t:
            found = i
    return -1 if found is None else found


def first_of_dynamic(n: int, x: Any) -> Any:
    previous, total = None, 0.0
    for i in range(n):
        if previous is not None:
            total += abs(x[i] - previous)
        previous = x[i]
    return total


def test_dynamic_trip_counts() -> None:
    for n in (0, 1, 3, 5):
        assert ml.compile(dynamic)(n, X, 2.0) == dynamic(n, X, 2.0)
        assert ml.compile(first_of_dynamic)(n, X) == first_of_dynamic(n, X)
