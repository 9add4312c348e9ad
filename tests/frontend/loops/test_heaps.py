"""The functions of `heapq` and `bisect` of lists of data, and methods that are called by their classes."""

from __future__ import annotations

import bisect
import heapq
from collections import deque
from heapq import heappop, heappush
from typing import Any

import numpy as np
import pytest

import mlirml as ml

from .against_python import check

RNG = np.random.default_rng(0)
X = np.array([3.0, 1.5, 2.5, 7.0, 0.5, 2.5, 9.0, 4.0])
LONG = RNG.random(100) * 10
WEIGHTS = np.where(RNG.random((8, 8)) < 0.4, RNG.random((8, 8)) * 9 + 1, 0)


def dijkstra(w: Any, s: Any) -> Any:
    n = len(w)
    dist = np.full(n, np.inf)
    dist[s] = 0
    h = [(0.0, s)]
    while h:
        d, u = heapq.heappop(h)
        if d > dist[u]:
            continue
        for v in range(n):
            if w[u, v] > 0 and d + w[u, v] < dist[v]:
                dist[v] = d + w[u, v]
                heapq.heappush(h, (dist[v], v))
    return dist


def heap(x: Any) -> Any:
    h = []
    for v in x:
        heappush(h, v)
    return h


def largest(x: Any, k: Any) -> Any:
    h = []
    for v in x:
        if len(h) < k:
            heapq.heappush(h, v)
        else:
            heapq.heappushpop(h, v)
    return sorted(h)


def replaced(x: Any) -> Any:
    h = []
    for v in x:
        if len(h) < 3:
            heapq.heappush(h, v)
        elif v > h[0]:
            heapq.heapreplace(h, v)
    return h


def inserted(x: Any) -> Any:
    h = []
    for v in x:
        bisect.insort(h, v)
    return h


def without_equals(x: Any) -> Any:
    h = []
    for v in x:
        if v > 1:
            i = bisect.bisect_left(h, v)
            if i == len(h) or h[i] != v:
                h.insert(i, v)
    return h


def increasing(x: Any) -> Any:
    t = []
    for v in x:
        i = bisect.bisect_left(t, v)
        if i == len(t):
            t.append(v)
        else:
            t[i] = v
    return len(t)


def between(x: Any) -> Any:
    y = np.sort(x)
    out = np.zeros(len(x), int)
    for i in range(len(x)):
        out[i] = bisect.bisect_right(y, x[i]) - bisect.bisect(y, x[i] - 1, 0, 3)
    return out


def first_items(x: Any) -> Any:
    return heapq.nsmallest(3, x), heapq.nlargest(2, x)


def of_deque(x: Any) -> Any:
    q = deque()
    deque.append(q, x[0])
    for v in x:
        if v > 2:
            deque.appendleft(q, v)
    return deque.popleft(q), len(q)


def of_list(x: Any) -> Any:
    items = [1.0]
    for v in x:
        if v > 2:
            list.append(items, v)
    list.sort(items)
    return items, list.index(items, 1.0)


def counted(x: Any) -> Any:
    h, total = [(x[0], 0)], 0
    for i in range(1, len(x)):
        heapq.heappush(h, (x[i], i))
    while len(h) > 1:
        v, i = heappop(h)
        w, j = heapq.heappop(h)
        total += i - j
        heappush(h, (v + w, i + j))
    return h[0][0], total


def without_loops(x: Any) -> Any:
    h = []
    heappush(h, x[0])
    heappush(h, x[1])
    heappush(h, x[2])
    return heappop(h), h


def test_shortest_paths() -> None:
    for start in (0, 3):
        check(dijkstra, WEIGHTS, start)


def of_array(x: Any) -> Any:
    h = list(x)
    heapq.heapify(h)
    return h


@pytest.mark.parametrize(
    "function",
    [
        of_array,
        heap,
        replaced,
        inserted,
        without_equals,
        increasing,
        first_items,
        of_deque,
        of_list,
        counted,
        without_loops,
    ],
)
@pytest.mark.parametrize("x", [X, LONG])
def test_ordered_lists(function: Any, x: Any) -> None:
    check(function, x)


def test_arguments() -> None:
    check(largest, X, 3)
    check(largest, LONG, 5)
    check(between, X)


def empty(x: Any) -> Any:
    h = []
    for v in x:
        if v > 100:
            heapq.heappush(h, v)
    return heapq.heappop(h)


def merged(x: Any) -> Any:
    return list(heapq.merge(x, x))


def test_errors() -> None:
    with pytest.raises(IndexError, match="pop from empty list"):
        ml.compile(empty)(X)


def numbers(x: Any) -> Any:
    return np.einsum("i,i", [x[0], 1], [1, 2]), np.einsum("i,i", x[:2], [1, 2]), np.einsum(x, [0], x, [0])


def by_class(x: Any) -> Any:
    return np.ndarray.sum(x), np.ndarray.reshape(x, -1, 1), np.ndarray.max(x, axis=0)


def whole(x: Any) -> Any:
    return [v.is_integer() for v in (x[0], x[1], x[0] * np.inf)]


def test_functions_of_arrays() -> None:
    for function in (numbers, by_class, whole):
        found, expected = ml.compile(function)(X), function(X)
        for one, other in zip(found, expected):
            np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("name", ["hex", "as_integer_ratio"])
def test_methods_of_numbers_that_are_not_compiled(name: str) -> None:
    with pytest.raises(ml.errors.UnsupportedSyntaxError, match=f"the method `.{name}` of a number is not compiled"):
        ml.compile(lambda x: getattr(x[0], name)())(X)


def of_many_items(x: Any) -> Any:
    heap, found = [(0.0, 0, 0, 0)], []
    while heap and len(found) < 40:
        d, i, j, k = heapq.heappop(heap)
        found.append(d + i - j + k)
        for step in (1, 2, 3):
            heapq.heappush(heap, (d + x[(i + step) % len(x)], (i + step) % 7, j + 1, step))
    return found, max((v, i, -i) for i, v in enumerate(x))


def test_items_of_tuples_are_compared_without_branches() -> None:
    compiled = ml.compile(of_many_items)
    found, expected = compiled(np.abs(X)), of_many_items(np.abs(X))
    np.testing.assert_allclose(found[0], expected[0])
    np.testing.assert_allclose(np.array(found[1]), np.array(expected[1]))
    assert str(compiled.ir("capture", np.abs(X))).count("scf.if") < 30
