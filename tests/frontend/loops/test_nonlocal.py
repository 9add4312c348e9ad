"""Variables that nested functions assign as `nonlocal`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mlirml as ml
from tests.frontend.loops.against_python import check

Array = Any
A = np.array([5, 1, 7, 3, 9, 2, 8])


def exchanges(a: Array) -> Any:
    count = 0

    def swap(i: Any, j: Any) -> None:
        nonlocal count
        count += 1
        a[i], a[j] = a[j], a[i]

    for i in range(len(a)):
        for j in range(len(a) - 1 - i):
            if a[j] > a[j + 1]:
                swap(j, j + 1)
    return count


def two_of_other_types(a: Array) -> Any:
    total, best = 0, -1

    def visit(x: Any) -> Any:
        nonlocal total, best
        total += 0.5 * x
        if x > best:
            best = x
        return total

    s = 0.0
    for i in range(len(a)):
        s += visit(a[i])
    return s, total, best


def random_numbers(a: Array) -> Any:
    state = 12345

    def rand() -> Any:
        nonlocal state
        state = (state * 1103515245 + 12345) % 2147483648
        return state

    hits = k = 0
    while k < 50:
        if rand() % 3 == a[rand() % len(a)] % 3:
            hits += 1
        k += 1
    return hits, state


def an_array(a: Array) -> Any:
    x = np.zeros(3)

    def step(d: Any) -> None:
        nonlocal x
        x = x + d * np.ones(3)

    for i in range(len(a)):
        step(a[i])
    return x


def with_jumps(a: Array) -> Any:
    steps = 0

    def find(v: Any) -> Any:
        nonlocal steps
        lo, hi = 0, len(a)
        while lo < hi:
            steps += 1
            mid = (lo + hi) // 2
            if a[mid] < v:
                lo = mid + 1
            else:
                hi = mid
        return lo

    r = 0
    for v in range(10):
        r = r * 2 + find(v)
        if steps > 20:
            break
    return r, steps


@pytest.mark.parametrize("function", [exchanges, two_of_other_types, random_numbers, an_array, with_jumps])
def test_function(function: Any) -> None:
    check(function, A)


def test_a_variable_that_is_not_assigned_first_is_refused() -> None:
    def late(a: Array) -> Any:
        def visit(x: Any) -> None:
            nonlocal total
            total += x

        for _ in range(2):
            total = 0
        for x in a:
            visit(x)
        return total

    with pytest.raises(ml.UnsupportedSyntaxError, match="`nonlocal` in a function") as caught:
        ml.compile(late, frontend="loops")(A)
    assert "assign it before" in str(caught.value)
