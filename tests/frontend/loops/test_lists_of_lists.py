"""Lists of lists of dynamic length, at indices that the data decide: buckets, groups and adjacency lists."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mlirml as ml
from tests.frontend.loops.against_python import check

Array = Any
I = np.random.default_rng(1).integers(-9, 9, 12)  # noqa: E741
EDGES = np.array([[0, 1], [1, 2], [3, 4], [5, 6], [4, 5], [0, 2], [2, 6]])


def buckets(a: Array) -> Any:
    b: list[list[Any]] = [[] for _ in range(4)]
    for x in a:
        b[(x + 9) // 5].append(x)
    found = []
    for q in b:
        for x in sorted(q):
            found.append(x)
    return np.array(found)


def distances(edges: Array) -> Array:
    n = 8
    near: list[list[Any]] = [[] for _ in range(n)]
    for k in range(len(edges)):
        u, v = edges[k, 0], edges[k, 1]
        near[u].append(v)
        near[v].append(u)
    far, queue = np.full(n, -1), [0]
    far[0] = 0
    while len(queue) > 0:
        u = queue.pop(0)
        for v in near[u]:
            if far[v] < 0:
                far[v] = far[u] + 1
                queue.append(v)
    return far


def shortest(edges: Array) -> Array:
    near: list[list[Any]] = [[] for _ in range(7)]
    for u, v in edges:
        near[u].append((v, 0.5 * u + 1))
    found = np.full(7, np.inf)
    found[0] = 0
    for _ in range(7):
        for u in range(7):
            for v, w in near[u]:
                if found[u] + w < found[v]:
                    found[v] = found[u] + w
    return found


def radix_sort(a: Array) -> Array:
    x = a + 9
    for d in range(2):
        b: list[list[Any]] = [[] for _ in range(10)]
        for v in x:
            b[(v // 10**d) % 10].append(v)
        k = 0
        for q in b:
            for v in q:
                x[k] = v
                k += 1
    return x


def taken_off(a: Array) -> Any:
    b: list[list[Any]] = [[] for _ in range(4)]
    for x in a:
        b[(x + 9) // 5].append(x)
    total = 0
    for i in range(4):
        while b[i]:
            total = total * 2 + b[i].pop()
    return total


def with_items(a: Array) -> Any:
    b: list[list[Any]] = [[i] for i in range(4)]
    for x in a:
        b[(x + 9) // 5].append(0.5 * x)
    total = 0.0
    for q in b:
        total = total * 0.5 + sum(q) + q[0]
    return total


def in_a_function(a: Array) -> Any:
    def add(q: list[Any], x: Any) -> None:
        q.append(x)
        q.append(x + 1)

    b: list[list[Any]] = [[] for _ in range(4)]
    for x in a:
        add(b[(x + 9) // 5], x)
    return len(b[0]), len(b[1]), b[1][-1], [len(q) for q in b]


def with_a_copy(a: Array) -> Any:
    b: list[list[Any]] = [[] for _ in range(4)]
    q = b[1]
    for x in a:
        b[(x + 9) // 5].append(x)
    r = q[:]
    q.append(1)
    r.append(2)
    return len(q), len(b[1]), len(r)


def many(a: Array) -> Any:
    b: list[list[Any]] = [[] for _ in range(4)]
    for _ in range(100):
        for x in a:
            b[(x + 9) // 5].append(x)
    return [len(q) for q in b]


def in_conditions(a: Array) -> Any:
    b: list[list[Any]] = [[] for _ in range(4)]
    for x in a:
        if x > 0:
            b[(x + 9) // 5].append(x)
        elif len(b[0]) < 3:
            b[0].append(x)
        if x in b[1]:
            b[2].append(x)
    m = 0
    for i in range(4):
        if len(b[i]) > len(b[m]):
            m = i
    return m, b[m][0], sum(b[m]), min(b[m]), np.mean(np.array(b[m]))


def with_stores(a: Array) -> Any:
    b: list[list[Any]] = [[] for _ in range(4)]
    for x in a:
        b[(x + 9) // 5].append(x)
    for i in range(4):
        for k in range(len(b[i])):
            b[i][k] *= i + 1
        if b[i]:
            b[i][0] = -b[i][-1]
            b[i].insert(1, 77)
            b[i].sort()
    return [sum(q) for q in b], 77 in b[2]


@pytest.mark.parametrize(
    "function",
    [in_conditions, with_stores, buckets, radix_sort, taken_off, with_items, in_a_function, with_a_copy, many],
)
def test_function(function: Any) -> None:
    check(function, I)


@pytest.mark.parametrize("function", [distances, shortest])
def test_graph(function: Any) -> None:
    check(function, EDGES)


def two_names(a: Array) -> Any:
    b: list[list[Any]] = [[] for _ in range(4)]
    for x in a:
        b[(x + 9) // 5].append(x)
    b[0] = b[1]
    b[0].append(5)
    return len(b[1])


def replaced(a: Array) -> Any:
    b: list[list[Any]] = [[] for _ in range(4)]
    t = b[0]
    for x in a:
        b[(x + 9) // 5].append(x)
    b[0] = []
    t.append(1)
    return len(t), len(b[0])


def exchanged(a: Array) -> Any:
    b: list[list[Any]] = [[] for _ in range(4)]
    for x in a:
        b[(x + 9) // 5].append(x)
    b[0], b[1] = b[1], b[0]
    b[0].append(1)
    return len(b[0])


def one_list(a: Array) -> Any:
    b: list[list[Any]] = [[]] * 3
    for x in a:
        b[(x + 9) // 7].append(x)
    return len(b[0])


def one_or_another(a: Array) -> Any:
    b: list[list[Any]] = [[] for _ in range(4)]
    for x in a:
        b[(x + 9) // 5].append(x)
    q = b[0] if a[0] > 0 else b[1]
    q.append(7)
    return len(b[0])


def carried(a: Array) -> Any:
    b: list[list[Any]] = [[] for _ in range(4)]
    for x in a:
        b[(x + 9) // 5].append(x)
    q = b[0]
    for i in range(4):
        q.append(7)
        q = b[i]
    return len(b[0])


def appended_twice(a: Array) -> Any:
    b: list[list[Any]] = [[] for _ in range(3)]
    c = [1, 2]
    for x in a:
        b[(x + 9) // 7].append(x)
    b.append(c)
    c.append(4)
    return len(b[3])


def sliced(a: Array) -> Any:
    b: list[list[Any]] = [[] for _ in range(4)]
    for x in a:
        b[(x + 9) // 5].append(x)
    c = b[:2]
    c[0].append(1)
    return len(b[0])


def copied(a: Array) -> Any:
    b: list[list[Any]] = [[] for _ in range(4)]
    for x in a:
        b[(x + 9) // 5].append(x)
    c = [*b, [1]]
    c[0].append(1)
    return len(b[0])


@pytest.mark.parametrize(
    "function", [sliced, copied, two_names, replaced, exchanged, one_list, one_or_another, carried, appended_twice]
)
def test_lists_with_two_names_are_refused(function: Any) -> None:
    with pytest.raises(ml.errors.MlirmlError):
        ml.compile(function, frontend="loops")(I)


def test_gradient() -> None:
    def total(x: Array) -> Any:
        b: list[list[Any]] = [[] for _ in range(3)]
        for i in range(len(x)):
            b[int(x[i] * 3) % 3].append(x[i] * x[i])
        s = 0.0
        for q in b:
            for k in range(len(q)):
                s += q[k] * (k + 1)
        return s

    x = np.random.default_rng(0).random(8)
    step = 1e-6 * np.eye(8)
    expected = [(total(x + d) - total(x - d)) / 2e-6 for d in step]
    np.testing.assert_allclose(ml.grad(total)(x), expected, rtol=1e-6)


def as_result(a: Array) -> Any:
    b: list[list[Any]] = [[] for _ in range(4)]
    pairs: list[list[Any]] = [[] for _ in range(2)]
    for i in range(len(a)):
        b[(a[i] + 9) // 5].append(a[i])
        pairs[i % 2].append((i, a[i] * 0.5))
    return b, pairs, len(b)


def rows_of_a_loop(a: Array) -> Any:
    found: list[Any] = []
    for i in range(len(a)):
        row: list[Any] = []
        for j in range(i):
            if a[j] < a[i]:
                row.append(a[j])
        found.append(row)
    return found


def nested_comprehensions(a: Array) -> Any:
    b: list[list[Any]] = [[] for _ in range(4)]
    for x in a:
        b[(x + 9) // 5].append(x)
    y = a[a > 0]
    return (
        [x * 2 for q in b for x in q],
        [sum(q) for q in b],
        [u * v for u in y for v in a],
        [(i, u) for i in range(2) for u in y],
        sum(u * v for u in y for v in y if u > v),
        [i + j for i in range(3) for j in range(i)],
    )


def greatest_of_lists(a: Array) -> Any:
    first = [1, 2]
    found = [first, [1, 2]]
    first[0], s = 0, 0
    for _ in range(4):
        for _ in range(4):
            new = [0, 0]
            found.append(new)
            new[1] = found[-2][0]
            s += max(found)[0]
        found.append([s, 1])
    return s, found, min(found), sorted(found)


@pytest.mark.parametrize("function", [as_result, rows_of_a_loop, nested_comprehensions, greatest_of_lists])
def test_results(function: Any) -> None:
    check(function, I)
    check(function, np.abs(I))
    check(function, I[:0])


def test_counts_that_the_first_attempt_takes_for_known() -> None:
    """An item whose length the data decide, in a condition that holds an item of the list."""

    def groups(x: Array) -> Any:
        found: list[Any] = []
        for i in range(len(x)):
            if len(found) > 0 and x[i] * found[-1][0] > 0:
                found[-1].append(x[i])
            else:
                found.append([x[i]])
        return found

    with pytest.raises(ml.errors.UnsupportedSyntaxError, match="holds 2 elements in one branch"):
        ml.compile(groups)(I)


def test_many_lists_have_less_room_each_and_grow() -> None:
    def longest(a: Array, n: int) -> Any:
        b: list[list[Any]] = [[] for _ in range(n)]
        for x in a:
            b[x].append(x)
            b[7].append(x)
        return len(b[7]), b[7][-1], max(len(b[i]) for i in range(len(a)))

    a = np.arange(1200) % 1000
    assert ml.compile(longest)(a, 2048) == (1202, 199, 1202)


def filled_table(x: Array, n: int, m: int) -> Any:
    table = [[0] * m for _ in range(n)]
    for i in range(n):
        for j in range(m):
            s = 0
            for k in range(len(x)):
                if i + j * x[k] < 10:
                    s += x[k] / (1 + i)
            table[i][j] = s
    return table


def table_of_data(x: Array) -> Any:
    table = [[0] * x[0] for _ in range(3)]
    for i in range(60):
        table[i % 3][i % x[0]] += i
    return table


def test_rows_as_long_as_an_argument_or_the_data_say() -> None:
    x = np.linspace(0, 5, 30)
    for n, m in ((80, 70), (70, 9)):
        found, expected = ml.compile(filled_table)(x, n, m), filled_table(x, n, m)
        assert [len(row) for row in found] == [len(row) for row in expected]
        np.testing.assert_allclose(found, expected)
    check(table_of_data, np.array([7]))
    check(table_of_data, np.array([13]))


def relaxed(u: Any) -> None:
    for i in range(1, len(u) - 1):
        for j in range(1, len(u[0]) - 1):
            u[i][j] = (u[i + 1][j] + u[i - 1][j]) * 0.5 + (u[i][j + 1] + u[i][j - 1]) * 0.25


def grid_of_a_function(n: int, steps: int) -> Any:
    u = [[0] * n for _ in range(n)]
    u[0] = [1] * n
    for _ in range(steps):
        relaxed(u)
    return u


def test_a_table_that_a_function_changes_in_a_loop_stays_one_loop() -> None:
    compiled = ml.compile(grid_of_a_function)
    np.testing.assert_allclose(compiled(20, 30), grid_of_a_function(20, 30), rtol=1e-12)
    assert "unrolled" not in compiled.explain()
