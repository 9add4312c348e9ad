"""Generator functions of the user's, whose loops call what consumes their items."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mlirml as ml

X = np.array([1.0, -2.0, 3.0, 0.5, 2.5, -1.0])
Y = np.arange(1.0, 5.0)

# Generators of an integer and an array.


def counted(n, x):
    i = 0
    while i < n:
        yield i
        i += 1


def kept(n, x):
    for v in x:
        if v > 0:
            yield v


def ended(n, x):
    for v in x:
        if v > n:
            return
        yield v
        if v < 0:
            return
    yield 7.0


def collatz(n, x):
    while n != 1:
        yield n
        n = n // 2 if n % 2 == 0 else 3 * n + 1
    yield 1


def fibonacci(n, x):
    a, b = 0, 1
    for _ in range(n):
        yield a
        a, b = b, a + b


def delegated(n, x):
    yield from kept(n, x)
    yield from range(3)
    for v in counted(3, x):
        if v == 1:
            continue
        yield v


def tree(n, x, depth=3):
    if depth > 0:
        yield from tree(n, x, depth - 1)
        yield depth + n
        yield from tree(n, x, depth - 1)


GENERATORS = [counted, kept, ended, collatz, fibonacci, delegated, tree]


# Consumers of a generator `g`, which the test sets.

g = counted


def summed(n, x):
    total = 0
    for v in g(n, x):
        total += v * 2
    return total


def stopped(n, x):
    total = 0
    for v in g(n, x):
        if v == 1:
            continue
        if v > 2:
            break
        total += v + 1
    else:
        total = total - 100
    return total


def returned(n, x):
    for v in g(n, x):
        if v > 1.5:
            return v * 3
    return -1.0


def numbered(n, x):
    total = 0
    for i, v in enumerate(g(n, x), start=2):
        if i == 3:
            continue
        total += i * v
    return total


def zipped(n, x):
    total, k = 0.0, -1
    for w, v, i in zip(x, g(n, x), range(4)):
        if i == 1:
            continue
        total += w * v
        k = i
    return total, k


def nested(n, x):
    total = 0
    for v in g(n, x):
        for w in g(n, x):
            if w > v:
                break
            total += v * w
    return total


def in_loop(n, x):
    total = 0.0
    for i in range(4):
        part = 0.0
        for v in g(n, x):
            if v > i:
                break
            part += v
        total += part * x[i]
    return total


def stored(n, x):
    y, k = np.zeros(100), 0
    for v in g(n, x):
        y[k] = v
        k += 1  # noqa: SIM113
    return y


def last(n, x):
    found = None
    for v in g(n, x):
        found = v
    return found


def listed(n, x):
    return [v * 2 for v in g(n, x) if v != 1]


def read(n, x):
    items = sorted(g(n, x))
    return items[0], len(items), sum(g(n, x)), sum(v for v in g(n, x) if v > 0)


def asked(n, x):
    return any(v > 2 for v in g(n, x)), all(v < 2 for v in g(n, x)), next((v for v in g(n, x) if v > 1), -1.0)


def appended(n, x):
    items = []
    for v in g(n, x):
        items.append(v)
    return len(items), items[-1]


CONSUMERS = [
    summed, stopped, returned, numbered, zipped, nested, in_loop, stored, last, listed, read, asked, appended,
]  # fmt: skip


@pytest.mark.parametrize("consumer", CONSUMERS)
@pytest.mark.parametrize("generator", GENERATORS)
def test_consumers(
    monkeypatch: pytest.MonkeyPatch, generator: Callable[..., Any], consumer: Callable[..., Any]
) -> None:
    monkeypatch.setitem(globals(), "g", generator)
    compare(ml.compile(consumer, frontend="loops")(np.int64(6), X.copy()), consumer(6, X))


def compare(found: Any, expected: Any) -> None:
    """Assert that values are the same; a variable that is an int or a float in Python is a float."""
    if isinstance(expected, (tuple, list)):
        assert type(found) is type(expected) and len(found) == len(expected)
        for one, other in zip(found, expected):
            compare(one, other)
    else:
        np.testing.assert_allclose(found, expected, rtol=1e-12)


# What others do with items.


def naturals(start=0):
    while True:
        yield start
        start += 1


def primes():
    for n in naturals(2):
        k = 2
        while k * k <= n:
            if n % k == 0:
                break
            k += 1
        else:
            yield n


def next_prime(n):
    for p in primes():
        if p > n:
            return p


def with_endless(n):
    found = next((p for p in primes() if p > n), 0)
    return found, any(v > n for v in naturals()), [*zip(range(3), [1, 2, 3])]


def table(n):
    out = np.zeros(10)
    for i, p in zip(range(10), primes()):
        out[i] = p + n
    return out


def pairs_with_sum(n):
    for a in naturals(1):
        for b in naturals(a):
            if b > 20:
                break
            if a * a + b * b == n:
                return a, b
        if a > 20:
            return -1, -1


def inner_generator(x):
    def pairs(k):
        for i in range(k):
            for j in range(i):
                yield i, j

    total = 0.0
    for i, j in pairs(len(x)):
        total += x[i] * x[j]
    return total


def shared_buffer(n):
    buffer, total = np.zeros(3), np.zeros(3)

    def filled():
        for i in range(n):
            buffer[i % 3] = i
            yield buffer

    for row in filled():
        total += row
    return total


class Walk:
    def __init__(self):
        self.step, self.total = 2, 0

    def items(self, n):
        for i in range(n):
            yield i * self.step

    def run(self, n):
        for v in self.items(n):
            self.total += v
        return self.total


def method(n):
    return Walk().run(n)


def windows(x, size):
    for i in range(len(x) - size + 1):
        yield x[i : i + size]


def of_windows(x):
    best = -np.inf
    for w in windows(x, 3):
        best = max(best, w.sum())
    return best, max(w.sum() for w in windows(x, 2)), [w.sum() for w in windows(x, 4)]


def chosen(n):
    return sum(collatz(k, None)[0] if False else k for k in range(n)), [sum(counted(k, None)) for k in range(5)]


@pytest.mark.parametrize(
    "function, argument",
    [
        (next_prime, 20), (with_endless, 20), (table, 1), (pairs_with_sum, 25), (pairs_with_sum, 3), (shared_buffer, 5),
        (method, 5), (chosen, 4), (inner_generator, X), (of_windows, X),
    ],
)  # fmt: skip
def test_programs(function: Callable[..., Any], argument: Any) -> None:
    expected = function(copy.deepcopy(argument))
    for frontend in ("auto", "loops"):
        found = ml.compile(function, frontend=frontend)(copy.deepcopy(argument))
        compare(found, expected)


def test_gradients_go_through_a_generator() -> None:
    def loss(x: Any) -> Any:
        total = 0.0
        for v in counted(3, x):
            total = total + x[v] * x[v] * v
        return total

    np.testing.assert_allclose(ml.compile(ml.grad(loss))(X), [0, 2 * X[1], 4 * X[2], 0, 0, 0])


# Errors.


def not_assigned(n):
    for v in counted(n, None):  # noqa: B007
        pass
    return v


def test_a_variable_that_no_iteration_has_assigned() -> None:
    assert ml.compile(not_assigned)(np.int64(3)) == 2
    with pytest.raises(UnboundLocalError, match="'v'"):
        ml.compile(not_assigned)(np.int64(0))


def by_name(x):
    items = kept(0, x)
    return sum(items)


def of_two(x):
    total = 0.0
    for v, w in zip(kept(0, x), kept(0, x)):
        total += v * w
    return total


def with_answers(x):
    total = yield 1
    yield total if x[0] > 0 else 0


def of_answers(x):
    return sum(with_answers(x))


def changing(x):
    k = 1.0

    def scaled():
        for v in x:
            yield v * k

    total = 0.0
    for v in scaled():
        k = v
        total += v
    return total


@pytest.mark.parametrize(
    "function, message",
    [(by_name, "not consumed"), (of_two, "not consumed"), (of_answers, "`yield`"), (changing, "not consumed")],
)
def test_errors(function: Callable[..., Any], message: str) -> None:
    with pytest.raises(ml.UnsupportedSyntaxError, match=message):
        ml.compile(function, frontend="loops")(X)


def own_function(x):
    total = 0
    for i, v in enumerate(kept(0, x)):
        total += i * v
    return total


def test_a_function_with_the_name_of_pythons(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(globals(), "enumerate", lambda items: [(5, item) for item in items])
    with pytest.raises(ml.UnsupportedSyntaxError, match="function of yours"):
        ml.compile(own_function, frontend="loops")(X)


def by_global(x):
    total = 0.0
    for v in g(3, x):
        total += v
    return total


def test_a_name_for_another_function(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = ml.compile(by_global, frontend="loops")
    for function in (kept, counted, lambda n, x: x[:n], kept):
        monkeypatch.setitem(globals(), "g", function)
        np.testing.assert_allclose(compiled(X), by_global(X))
    assert [*itertools.islice(naturals(), 2)] == [0, 1]
