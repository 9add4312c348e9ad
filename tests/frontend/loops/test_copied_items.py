"""Lists, dicts and objects that are items of lists which loops append to: rows of arrays have copies of them.

What Python would change through one of its names is refused where the other would not see it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mlirml as ml

X = np.array([1.0, -2.0, 3.0, -0.5, 2.5])


def total(items: Any, key: Any) -> Any:
    t = 0.0
    for v in items:
        t += v[key]
    return t


def changed_after_append(x: Any) -> Any:
    items = []
    for i in range(200):
        row = [x[i % 5], 0.0]
        items.append(row)  # here
        row[1] = 5.0
    return total(items, 1)


def changed_in_a_branch(x: Any) -> Any:
    items = []
    for i in range(200):
        row = [x[i % 5], 0.0]
        items.append(row)  # here
        if x[i % 5] > 0:
            row[1] = 5.0
    return total(items, 1)


def filled_after_append(x: Any) -> Any:
    table = []
    for i in range(100):
        row = [0.0] * 5
        table.append(row)  # here
        for j in range(5):
            row[j] = x[j] * i
    return table[3], len(table)


def changed_after_the_loop(x: Any) -> Any:
    items = []
    for i in range(200):
        row = [x[i % 5], 0.0]
        items.append(row)  # here
    row[1] = 5.0
    return total(items, 1)


def of_many_names(x: Any) -> Any:
    row, items = {"a": 0.0}, []
    for i in range(200):
        row["a"] = x[i % 5]
        items.append(row)  # here
    return total(items, "a")


def as_often_as_the_data_say(x: Any) -> Any:
    items = []
    for v in x:
        if v > 0:
            row = {"a": v, "b": 0.0}
            items.append(row)  # here
            row["b"] = 5.0
    return total(items, "b")


def item_of_a_loop(x: Any) -> Any:
    items = []
    for i in range(200):
        items.append({"a": x[i % 5]})
    for item in items:  # here
        item["a"] = 9.0
    return total(items, "a")


def item_by_index(x: Any) -> Any:
    items = []
    for i in range(200):
        items.append([x[i % 5], 1.0])
    for i in range(200):
        items[i][1] = i  # here
    return total(items, 1)


def item_in_a_tuple(x: Any) -> Any:
    items = []
    for i in range(200):
        items.append(([x[i % 5]], 1))
    items[3][0][0] = 7.0  # here
    return total(items, 1)


def carried_by_a_loop(x: Any) -> Any:
    items = []
    for i in range(200):
        items.append([x[i % 5], 0.0])
    item = items[0]
    for i in range(1, 200):
        item[1] = 1.0
        item = items[i]  # here
    return total(items, 1)


def one_of_two(x: Any) -> Any:
    items = []
    for i in range(200):
        items.append([x[i % 5], 0.0])
    item = [0.0, 0.0]
    for i in range(1, 200):
        if x[i % 5] > 0:
            item = items[i]  # here
        item[1] = 1.0
    return total(items, 1)


REFUSED = [
    changed_after_append, changed_in_a_branch, filled_after_append, changed_after_the_loop, of_many_names,
    as_often_as_the_data_say, item_of_a_loop, item_by_index, item_in_a_tuple, carried_by_a_loop, one_of_two,
]  # fmt: skip


@pytest.mark.parametrize("function", REFUSED)
def test_changes_that_would_be_lost_are_refused(function: Callable[..., Any]) -> None:
    message = "what is appended here is changed later|an item of a list is changed"
    with pytest.raises(ml.CaptureError, match=message) as e:
        ml.compile(function, frontend="loops")(X)
    assert e.value.location is not None
    with open(__file__, encoding="utf-8") as file:
        assert file.readlines()[e.value.location.line - 1].rstrip().endswith("# here")


def new_rows(x: Any) -> Any:
    items, point = [], [0.0, 0.0]
    for i in range(200):
        row = [x[i % 5], 0.0]
        row[1] = 2.0
        point = [point[0] + row[0], point[1] + 1]
        items.append(row)
        items.append(point)
    return total(items, 0), items[-1][1]


def copies(x: Any) -> Any:
    items, point = [], [0.0, 1.0]
    for i in range(200):
        point[0] += x[i % 5]
        items.append(list(point))
    other = list(items[3])
    other[0] = 100.0
    return total(items, 0), other[0]


def one_row(x: Any) -> Any:
    items, row = [], [x[0], 1.0]
    for _ in range(200):
        items.append(row)
    return total(items, 0)


def taken_out(x: Any) -> Any:
    stack, t = [], 0.0
    for v in x:
        if v > 0:
            stack.append({"a": v})
    while stack:
        item = stack.pop()
        item["a"] = item["a"] * 2
        t += item["a"]
    return t


def put_back(x: Any) -> Any:
    items = []
    for i in range(100):
        items.append([x[i % 5], 1.0])
    for i in range(100):
        items[i] = [items[i][0] * 2, 3.0]
    return total(items, 0), total(items, 1)


def rows_of_slices(x: Any) -> Any:
    table = [[i + j for j in range(4)] for i in range(4)]
    table = [row[:] for row in table]
    for _ in range(3):
        for v in x[:4]:
            row = table[int(v) % 4]
            row[0] += 1
    return table


@pytest.mark.parametrize("function", [new_rows, copies, one_row, taken_out, put_back, rows_of_slices])
def test_what_python_does_is_done(function: Callable[..., Any]) -> None:
    found, expected = ml.compile(function, frontend="loops")(X), function(X)
    np.testing.assert_allclose(np.asarray(found), np.asarray(expected), rtol=1e-12)
