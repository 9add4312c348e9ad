"""Conditions of `while` loops that change what the loop carries."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from heapq import heapify, heappop
from typing import Any

import numpy as np
import pytest

import mlirml as ml
from tests.frontend.loops.against_python import check

K = np.array([3, 1, 2, 3, 5])


def popped(k: Any) -> Any:
    items, s = [], 0
    for v in k:
        items.append(v)
    while items and items.pop() != 2:
        s += 1
    return len(items), s


def popped_in_a_loop(k: Any) -> Any:
    queue, s, i = deque(), 0, 0
    while i < len(k):
        queue.append(k[i])
        i += 1
        while queue and queue.popleft() != i:
            s += 1
    return len(queue), s


def with_jumps(k: Any) -> Any:
    items, s = [], 0
    for v in k:
        items.append(v)
    while items and (items.pop() < 5 or items.pop() > 2):
        if len(items) == 2:
            continue
        s += 1
        if s > 2:
            break
    else:
        s += 100
    return len(items), s


def from_a_heap(k: Any) -> Any:
    heap, s = [], 0
    for v in k:
        heap.append(v)
    heapify(heap)
    while len(heap) > 1 and heappop(heap) < 3:
        s += heap[0]
    return s, len(heap)


@pytest.mark.parametrize("function", [popped, popped_in_a_loop, with_jumps, from_a_heap])
def test_numbers_are_those_of_python(function: Callable[..., Any]) -> None:
    for k in (K, K[::-1].copy(), np.sort(K)):
        check(function, k)


class Counter:
    def __init__(self) -> None:
        self.count = 0

    def more(self) -> bool:
        self.count += 1
        return self.count < 5


def of_an_object(k: Any) -> Any:
    counter, s = Counter(), 0
    while counter.more() and k[0] < 100:
        s += k[0]
    return s, counter.count


def of_an_array(k: Any) -> Any:
    def bump() -> Any:
        k[0] += 1
        return k[0] < 6

    s = 0
    while bump():
        s += 1
    return s


def in_the_body(k: Any) -> Any:
    counter, s = Counter(), 0
    while True:
        if not (counter.more() and k[0] < 100):
            break
        s += k[0]
    return s, counter.count


@pytest.mark.parametrize("function", [of_an_object, of_an_array])
def test_changes_by_functions_are_refused(function: Callable[..., Any]) -> None:
    with pytest.raises(ml.UnsupportedSyntaxError, match="the condition of a `while` changes") as failure:
        ml.compile(function, frontend="loops")(K.copy())
    assert "while " in str(failure.value)


def test_what_the_error_says_to_write() -> None:
    check(in_the_body, K)
