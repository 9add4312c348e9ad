"""Comprehensions and generators with conditions that data decide: they are loops that append to a list."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mlirml as ml

X = np.array([1.0, -2.0, 3.0, -0.5, 2.5, 0.0])
LONG = np.random.default_rng(3).standard_normal(400)


def listed(x: Any) -> Any:
    return [v * 2 for v in x if v > 0], np.array([v for v in x if v < 0])


def indices(x: Any) -> Any:
    return [i for i, v in enumerate(x) if v > 0], [(i, a) for i, (a, b) in enumerate(zip(x, x[2:])) if a < b]


def several_conditions(x: Any) -> Any:
    return [v for v in x if v > 0 if v < 3 and v != 1], [v for v in reversed(x) if not v]


def several_loops(x: Any) -> Any:
    return [a * b for a in x[:6] for b in x[:6] if a < b], [a + i for i in range(3) if x[i] > 0 for a in x[:5] if a > i]


def nested(x: Any) -> Any:
    return [[v for v in row if v > 0] for row in x[:6].reshape(1, 6)], len(
        [v for v in [w for w in x if w > 0] if v < 2]
    )


def folded(x: Any) -> Any:
    return sum(v for v in x if v > 0), sum(1 for v in x if v > 0), max(v for v in x if v < 2), min(v for v in x if v)


def of_none(x: Any) -> Any:
    return (
        max((v for v in x if v > 100), default=7.5),
        min((v for v in x if v > 0), default=0.0),
        sum((v for v in x if v > 9), 0.0),
    )


def truths(x: Any) -> Any:
    return any(v > 2 for v in x if v < 3), all(v < 5 for v in x if v > 0), any(v for v in x if v > 9)


def ordered(x: Any) -> Any:
    kept = [v for v in x if v > 0]
    kept.append(x[0])
    kept.sort()
    return kept, sorted(v for v in x if v > 0), list(v for v in x if v < 0), kept[0], kept[-1]  # noqa: C400


def in_loops(x: Any) -> Any:
    total, rest = 0.0, x
    for i in range(4):
        total += sum(v for v in x if v > x[i])
        if total > 1:
            rest = np.array([v - i for v in x if v > total])
    return total, len(rest)


def in_while(x: Any) -> Any:
    large = [v for v in x if v > 0]
    count = 0
    while len(large) > 1:
        large = [v * 0.5 for v in large if v > 0.7]
        count += 1
    return count


def of_functions(x: Any) -> Any:
    def positive(v: Any) -> Any:
        return [w for w in v if w > 0]

    return sum(positive(x)), len(positive(-x))


FUNCTIONS = [
    listed, indices, several_conditions, several_loops, nested, folded, of_none, truths, ordered, in_loops, in_while,
    of_functions,
]  # fmt: skip


def same(found: Any, expected: Any) -> None:
    assert isinstance(found, type(expected)) or not isinstance(expected, (list, tuple))
    if isinstance(expected, (list, tuple)):
        assert len(found) == len(expected)
        for one, other in zip(found, expected):
            same(one, other)
    else:
        assert np.asarray(found).dtype == np.asarray(expected).dtype
        np.testing.assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.parametrize("target", ["cpu", "reference"])
@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("x", [X, LONG], ids=["short", "long"])
def test_equals_python(function: Callable[..., Any], x: np.ndarray, target: str) -> None:
    same(ml.compile(function, target)(x), function(x))


def test_conditions_that_are_known_are_python() -> None:
    """Their items may be axes, names and other things that no program takes."""

    def function(x: Any) -> Any:
        axes = tuple(axis for axis in range(x.ndim) if axis != 1)
        names = [name for name in ("a", "bb", "ccc") if len(name) > 1]
        total = 0.0
        for v in np.sum(x, axis=axes):
            if v > 0:
                total += v
        return total * len(names)

    x = np.random.default_rng(0).standard_normal((3, 4, 2))
    np.testing.assert_allclose(ml.compile(function)(x), function(x), rtol=1e-12)


def test_derivatives_and_batches() -> None:
    def squares(x: Any) -> Any:
        return sum(v * v for v in x if v > 0)

    np.testing.assert_allclose(ml.grad(squares)(X), 2 * np.maximum(X, 0))
    np.testing.assert_allclose(ml.vmap(squares)(np.stack([X, -X])), [squares(X), squares(-X)])


def test_nothing_is_traced_twice() -> None:
    """Where items were made before data decide, and where conditions change a container, there is no loop."""
    calls = []

    def noted(v: Any) -> Any:
        calls.append(1)
        return v

    with pytest.raises(ml.TracedBoolError):
        ml.compile(lambda x: [noted(v) for i, v in enumerate(x) if i == 0 or v > 0])(X)
    assert len(calls) <= 2  # by each of the front ends once

    def distinct(x: Any) -> Any:
        seen: set[Any] = set()
        return [v for v in x if not (v in seen or seen.add(v))]  # type: ignore[func-returns-value]

    with pytest.raises(ml.CaptureError):
        ml.compile(distinct)(X)


CALLS = {"n": 0}


def counts_globally(v: Any) -> Any:
    CALLS["n"] += 1
    return v > 0


def stores(x: Any) -> Any:
    count = np.zeros(1)

    def positive(v: Any) -> Any:
        count[0] += 1
        return v > 0

    return len([v for v in x if positive(v)]), count


def grows(x: Any) -> Any:
    seen: list[Any] = []

    def positive(v: Any) -> Any:
        seen.append(v)
        return v > 0

    return len([v for v in x if positive(v)]), len(seen)


def counts(x: Any) -> Any:
    count = {"n": 0}

    def positive(v: Any) -> Any:
        count["n"] += 1
        return v > 0

    return sum(v for v in x if positive(v)), count["n"]


def of_globals(x: Any) -> Any:
    return len([v for v in x if counts_globally(v)])


@pytest.mark.parametrize("function", [stores, grows, counts, of_globals])
def test_conditions_that_change_something_are_not_traced_twice(function: Callable[..., Any]) -> None:
    with pytest.raises(ml.TracedBoolError):
        ml.compile(function)(X)
    assert CALLS == {"n": 0}


def test_conditions_may_use_arrays_of_their_own() -> None:
    def function(x: Any) -> Any:
        def positive(v: Any) -> Any:
            return np.sum(np.array([v, v])) > 0

        return [v for v in x if positive(v)]

    same(ml.compile(function)(X), function(X))


def test_the_largest_of_nothing() -> None:
    with pytest.raises(ValueError, match="the array is empty"):
        ml.compile(lambda x: max([v for v in x if v > 100]))(X)


def is_positive(v: Any) -> Any:
    return v > 0


def filters(x: Any) -> Any:
    t, kept = 0.0, list(filter(is_positive, x))
    for i in range(3):
        for v in filter(lambda v: v > i, x):
            if v > 2.5:
                continue
            t += v * i
    kept.append(t)
    return kept, len(kept), sum(filter(is_positive, x)), sorted(filter(lambda i: x[i] > 0, range(len(x))))


def constant_filters(x: Any) -> Any:
    return sum(filter(lambda i: i % 2, range(10))) + x[0], list(filter(None, [1, 0, 2]))


def first_items(x: Any) -> Any:
    first, t = next((v for v in x if v > 2), -1.0), 0
    for k in range(20):
        t += next((i for i in range(len(x)) if x[i] > k * 0.1), 0)
    return (
        first,
        t,
        next((i * j for i in range(6) for j in range(i) if x[i] * j > 1), -1),
        next((i for i in range(len(x)) if x[i] > 1e9), -1),
    )


@pytest.mark.parametrize("function", [filters, constant_filters, first_items])
@pytest.mark.parametrize("x", [X, LONG])
def test_filters_and_first_items(function: Callable[..., Any], x: np.ndarray) -> None:
    same(ml.compile(function, frontend="loops")(x), function(x))


def test_another_filter() -> None:
    def filter(function: Any, items: Any) -> Any:  # the user's
        return [function(item) for item in items]

    def program(x: Any) -> Any:
        return sum(filter(is_positive, x))

    same(ml.compile(program, frontend="loops")(X), program(X))


def halved(x: Any) -> Any:
    k = 0
    while (total := np.sum(x)) > 1.0:
        x = x * 0.5
        k += 1
        if k > 3:
            break
    else:
        k = -k
    return k, total


def inner(x: Any) -> Any:
    s = x[0]
    while (a := s + 1.0) < 10.0:
        while (b := a * 2.0) < 5.0:
            a = b
        s = a
    return s, a


@pytest.mark.parametrize("function", [halved, inner])
@pytest.mark.parametrize("scale", [0.1, 1.0, 100.0])
def test_names_assigned_in_the_condition_of_a_while(function: Callable[..., Any], scale: float) -> None:
    same(ml.compile(function)(X * scale), function(X * scale))
