"""Lists that the data make longer and shorter: stacks and queues, in `while` loops and in branches, as in Python."""

from __future__ import annotations

import collections
from collections import deque
from typing import Any

import numpy as np
import pytest

import mlirml as ml
from mlirml.core import rooms

from .against_python import check, same

X = np.array([3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5])
GRAPH = np.random.default_rng(1).random((9, 9)) < 0.25
IMAGE = np.random.default_rng(2).integers(0, 2, (7, 6))


def next_greater(a: Any) -> Any:
    found, stack = np.full(len(a), -1), []
    for i in range(len(a)):
        while stack and a[stack[-1]] < a[i]:
            found[stack.pop()] = a[i]
        stack.append(i)
    return found, stack


def breadth_first(adjacent: Any, start: Any) -> Any:
    n = len(adjacent)
    distance, queue = [-1] * n, [start]
    distance[start] = 0
    while queue:
        u = queue.pop(0)
        for v in range(n):
            if adjacent[u][v] and distance[v] == -1:
                distance[v] = distance[u] + 1
                queue.append(v)
    return distance


def nearest_first(adjacent: Any, start: Any) -> Any:
    """Edges of even columns cost nothing, others one."""
    distance, queue = np.full(len(adjacent), 99), collections.deque([start])
    order = deque()
    distance[start] = 0
    while queue:
        u = queue.popleft()
        order.appendleft(u)
        for v in range(len(adjacent)):
            if adjacent[u, v] and distance[u] + v % 2 < distance[v]:
                distance[v] = distance[u] + v % 2
                if v % 2:
                    queue.append(v)
                else:
                    queue.appendleft(v)
    return distance, list(order)


def largest_in_windows(x: Any, size: Any) -> Any:
    queue, found = deque(), []
    for i in range(len(x)):
        while queue and x[queue[-1]] <= x[i]:
            queue.pop()
        queue.append(i)
        if queue[0] <= i - size:
            queue.popleft()
        if i >= size - 1:
            found.append(x[queue[0]])
    return found


def copied(x: Any) -> Any:
    w = []
    i = 0
    while i < len(x):
        if x[i] > 2:
            w.append(x[i])
        i += 1
    one, other = list(w), w.copy()
    if x[0] > 0:
        one.append(7)
        w.append(8)
    other.extend([1, 2])
    return one, other, w, list(one)


def copied_each_time(x: Any, n: Any) -> Any:
    w, q = [], []
    for i in range(n + 2):
        w = list(q)
        if x[i] < 0:
            break
        q.append(x[i])
        while w and w[-1] > 3:
            w.pop()
    return w, q


def cut(x: Any) -> Any:
    q, w = [], []
    for i in range(3):
        w = q[:]
        q.append(2)
        if x[i] > 100:
            q.pop()
        while w and w[-1] > 2:
            w.pop()
    return w


def matching(codes: Any) -> Any:
    """`or` with an operand that changes the list."""
    stack = []
    for c in codes:
        if c == 1 or c == 3:
            stack.append(c)
        elif c == 2:
            if not stack or stack.pop() != 1:
                return False
        elif c == 4 and (not stack or stack.pop() != 3):
            return False
    return len(stack) == 0


def levels(adjacent: Any, start: Any) -> Any:
    seen, level, order = np.zeros(len(adjacent), bool), [start], []
    seen[start] = True
    while level:
        following = []
        for u in level:
            order.append(u)
            for v in range(len(adjacent)):
                if adjacent[u, v] and not seen[v]:
                    seen[v] = True
                    following.append(v)
        level = following
    return order


def flood(image: Any, row: Any, column: Any) -> Any:
    old, stack = image[row, column], [(row, column)]
    while stack:
        y, x = stack.pop()
        if 0 <= y < image.shape[0] and 0 <= x < image.shape[1] and image[y, x] == old:
            image[y, x] = 7
            stack.append((y + 1, x))
            stack.append((y - 1, x))
            stack.append((y, x + 1))
            stack.append((y, x - 1))
    return image


def sorted_by_insertion(a: Any) -> Any:
    out: list[Any] = []
    for v in a:
        i = 0
        while i < len(out) and out[i] < v:
            i += 1
        out.insert(i, v)
    return out


def runs(a: Any) -> Any:
    out, previous, count = [], a[0], 0
    for v in a:
        if v == previous:
            count += 1
        else:
            out.append((previous, count))
            previous = v
            count = 1
    out.append((previous, count))
    return out


def balanced(a: Any) -> Any:
    stack = []
    for v in a:
        if v > 0:
            stack.append(v)
        else:
            if not stack or stack[-1] != -v:
                return False
            stack.pop()
    return len(stack) == 0


def changed(a: Any) -> Any:
    out = []
    i = 0
    while i < len(a):
        if a[i] > 2:
            out.append(a[i])
        i += 1
    out[0] = 100
    out[-1] += 5
    del out[1]
    out.extend([1, 2])
    out.remove(9)
    out.reverse()
    return out, out[1:], out[::-1], out[-2], sum(out), max(out), sorted(out), 6 in out, out.index(6), np.array(out)


def of_arrays(a: Any) -> Any:
    kept, sums = [], np.zeros(3)
    i = 0
    while i < len(a):
        sums = sums + a[i]
        if a[i] > 2:
            kept.append(sums.copy())
        i += 1
    return kept[-1], len(kept), kept


def shared(a: Any) -> Any:
    one = []
    other = one
    for v in a:
        if v > 2:
            one.append(v)
        elif one:
            other.pop()
    return one, other


@pytest.mark.parametrize("function", [next_greater, sorted_by_insertion, runs, changed, of_arrays, shared])
def test_lists_of_arrays(function: Any) -> None:
    check(function, X)


def test_stacks_and_queues() -> None:
    check(breadth_first, GRAPH, 0)
    check(nearest_first, GRAPH, 0)
    check(largest_in_windows, X, 3)
    check(copied, X)
    check(copied_each_time, X, 4)
    check(cut, X)
    for codes in ([1, 3, 4, 2], [1, 3, 2, 4], [2], [1, 0, 1]):
        check(matching, np.array(codes))
    check(levels, GRAPH, 0)
    check(flood, IMAGE, 2, 2)
    for a in ([1, 2, -2, -1, 3, -3], [1, 2, -1], [1], [-1]):
        check(balanced, np.array(a))


def taken(a: Any) -> Any:
    stack = []
    a[0] = 77
    for v in a:
        if 5 < v < 50:
            stack.append(v)
        else:
            stack.pop()
    return stack


def beyond(a: Any) -> Any:
    out = []
    i = 0
    while i < len(a):
        if a[i] > 2:
            out.append(a[i])
        i += 1
    return out[i]


@pytest.mark.parametrize("target", ["cpu", "reference"])
@pytest.mark.parametrize(("function", "message"), [(taken, "pop from empty list"), (beyond, "list index out of range")])
def test_items_that_are_not_there(function: Any, message: str, target: str) -> None:
    x = X.copy()
    with pytest.raises(IndexError, match=message):
        ml.compile(function, target)(x)
    assert np.array_equal(x, X)


def many(a: Any, n: Any) -> Any:
    out = []
    i = 0
    a[0] += 1
    while i < n:
        out.append(i * i)
        i += 1 + i % 3
    return len(out), sum(out), out[-1]


@pytest.mark.parametrize("target", ["cpu", "reference"])
def test_a_list_that_outgrows_its_room(target: str) -> None:
    """The call is repeated, with arguments as they were."""
    compiled = ml.compile(many, target)
    for n in (10, 5000, 100):
        x, y = X.copy(), X.copy()
        same(compiled(x, n), many(y, n), True, "the result")
        assert np.array_equal(x, y)


def endless(a: Any) -> Any:
    out = []
    while len(out) >= 0:
        out.append(a[0])
    return out


def test_a_list_that_grows_without_end(monkeypatch: Any) -> None:
    monkeypatch.setattr(rooms, "_MOST", 1 << 14)
    with pytest.raises(ml.errors.OutgrownListError, match="has more than 16384 items"):
        ml.compile(endless)(X)


def without_a_copy(a: Any) -> Any:
    kept, h = [], np.zeros(3)
    i = 0
    while i < len(a):
        h += a[i]
        if a[i] > 2:
            kept.append(h)
        i += 1
    return kept


def test_an_array_that_changes_after_it_was_appended() -> None:
    with pytest.raises(ml.UnsupportedSyntaxError, match="is an item of a list"):
        ml.compile(without_a_copy)(X)


def merged(x):
    """An index into a list from which items are removed: it cannot be an array of one length."""
    nodes, cost = list(x), 0
    while len(nodes) > 1:
        a = nodes.pop(0)
        i = 0
        while i < len(nodes) and nodes[i] < a:
            i += 1
        cost = cost * 2 + i
        if i > 1:
            nodes.insert(i, a + 1)
            del nodes[0]
    return cost, nodes


def of_new_items(x):
    nodes, cost = [], 0
    for v in x:
        nodes.append(v)
    while len(nodes) > 1:
        a = nodes.pop(0)
        i = 0
        while i < len(nodes) and nodes[i] < a:
            i += 1
        cost = cost * 2 + i
    return cost, nodes


def selected(x):
    left, out = list(x), []
    while left:
        best = 0
        for i in range(1, len(left)):
            if left[i] < left[best]:
                best = i
        out.append(left.pop(best))
    return out


def inserted(x):
    items = [3, 1, 2]
    for v in x:
        i = 0
        while i < len(items) and items[i] < v:
            i += 1
        items.insert(i, int(v))
    return items


def appended_and_indexed(x):
    items, total = list(x), 0
    for i in range(len(x)):
        total += items[int(x[i])]
    items.append(total)
    if len(x) > 0:
        items[int(x[0])] = 7
    return items


@pytest.mark.parametrize("dtype", [np.int64, np.float64])
@pytest.mark.parametrize("function", [merged, of_new_items, selected, inserted, appended_and_indexed])
def test_indices_into_lists_whose_lengths_change(function: Any, dtype: Any) -> None:
    for numbers in ([5, 9], [3, 1, 2, 4, 0, 5], [2, 0, 1], []):
        x = np.array(numbers, dtype)
        if function is not appended_and_indexed or x.max(initial=0) < len(x):
            found, expected = ml.compile(function, frontend="loops")(x), function(x)
            for one, other in zip(*([r] if type(r) is list else r for r in (found, expected)), strict=True):
                np.testing.assert_array_equal(np.array(one), np.array(other))


def descending(x: Any) -> Any:
    kept, total = [], 0.0
    for v in x:
        kept.append(v * 2)
        while len(kept) > 1 and kept[-1] > kept[-2]:
            total += kept.pop() ** 2
    return total


def test_condition_reads_two_items_where_it_is_differentiated() -> None:
    x = np.array([0.5, 1.5, -1.0, 0.25])
    check(descending, x)
    np.testing.assert_allclose(ml.grad(descending)(x), [0, 8 * 1.5, 0, 8 * 0.25])


def moved_to_front(x):
    order, found = list(range(10)), []
    for v in x:
        place = order.index(abs(int(v)))
        found.append(place)
        order.pop(place)
        order.insert(0, abs(int(v)))
    return found, order


def mixed(x):
    order = [i for i in range(7)]  # noqa: C416
    for i in range(7):
        place = order.index(i)
        order.pop(place)
        order.insert((place + int(x[i % len(x)])) % 6, i)
    return order


def marbles(x):
    circle, score = deque([0]), 0
    for i in range(1, 60):
        if i % 7 == 0:
            circle.rotate(3)
            score += i + circle.pop()
            circle.rotate(-int(x[i % len(x)]))
        else:
            circle.rotate(-1)
            circle.append(i)
    return score, len(circle), circle[0]


def turned(x):
    circle = deque([1, 2, 3, 4])
    circle.rotate(3)
    circle.rotate()
    circle.rotate(int(x[0]))
    empty = deque()
    empty.rotate(2)
    return list(circle), len(empty)


@pytest.mark.parametrize("function", [moved_to_front, mixed, marbles, turned])
def test_positions_of_items(function: Any) -> None:
    compiled = ml.compile(function)
    for numbers in ([5, 9], [3, 1, -2, 4, 0, 5], [2, 0, 1]):
        x = np.array(numbers)
        found, expected = compiled(x), function(x)
        for one, other in zip(*([r] if type(r) is list else r for r in (found, expected)), strict=True):
            np.testing.assert_array_equal(np.array(one), np.array(other))


def test_an_item_that_is_not_there() -> None:
    with pytest.raises(ValueError, match="is not in the list"):
        ml.compile(moved_to_front)(np.array([5, 11]))
