"""Lists, dicts and objects that are items of lists which loops append to: rows of arrays have copies of them.

What changes after it was appended is stored again. What Python would change through one of its names is refused where
the other would not see it.
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
        items.append(row)
        row[1] = 5.0
    return total(items, 1)


def changed_in_a_branch(x: Any) -> Any:
    items = []
    for i in range(200):
        row = [x[i % 5], 0.0]
        items.append(row)
        if x[i % 5] > 0:
            row[1] = 5.0
    return total(items, 1)


def filled_after_append(x: Any) -> Any:
    table = []
    for i in range(100):
        row = [0.0] * 5
        table.append(row)
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


def filled_in_turn(x: Any) -> Any:
    table = []
    for i in range(100):
        row = []
        table.append(row)
        for j in range(90):
            row.append(x[j % 5] * i)
    return table[3], len(table), table


def filled_from_others(x: Any) -> Any:
    table = []
    for i in range(100):
        row = [0.0] * 5
        table.append(row)
        for j in range(5):
            row[j] = x[j] + (table[i - 1][j] if i > 0 else 0.0)
    return table


def keys_added(x: Any) -> Any:
    items = []
    for i in range(100):
        item = {}
        items.append(item)
        item["a"] = x[i % 5]
        item["b"] = item["a"] * i
    return total(items, "a"), total(items, "b")


def arrays_filled(x: Any) -> Any:
    frames = []
    for i in range(100):
        frame = np.zeros(5)
        frames.append(frame)
        for j in range(5):
            frame[j] = x[j] + i
        frame += 1
    return np.array(frames)


def of_three_dimensions(x: Any) -> Any:
    cube = []
    for i in range(70):
        plane = []
        cube.append(plane)
        for j in range(3):
            row = []
            plane.append(row)
            for k in range(4):
                row.append(x[k] * i + j)
    return cube


class Point:
    def __init__(self, x: Any) -> None:
        self.x, self.y = x, 0.0


def objects(x: Any) -> Any:
    items, t = [], 0.0
    for i in range(200):
        point = Point(x[i % 5])
        items.append(point)
        point.y = point.x * 2
    for point in items:
        t += point.y
    return t


def twice(x: Any) -> Any:
    items = []
    for i in range(200):
        row = [x[i % 5], 0.0]
        items.append(row)
        items.append(row)
        row[1] = 5.0
    return total(items, 1)


def first_of_many(x: Any) -> Any:
    row = [1.0, 2.0]
    items = [row]
    for i in range(200):
        items.append([x[i % 5], 0.0])
        row[0] += 1
    row[1] = 50.0
    return total(items, 0), total(items, 1)


def on_a_stack(x: Any) -> Any:
    stack, t, i = [], 0.0, 0
    while i < 200:
        row = [x[i % 5], 0.0]
        if x[i % 5] > 0:
            stack.append(row)
            row[1] = i
        i += 1
    while stack:
        a, b = stack.pop()
        t += a + b
    return t


def rows_on_a_stack(x: Any) -> Any:
    stack, t, i = [], 0.0, 0
    while i < 30:
        row = [0.0] * 100
        if x[i % 5] > 0:
            stack.append(row)
            for j in range(100):
                row[j] = x[i % 5] * j
        i += 1
    while stack:
        row = stack.pop()
        t += row[7] + row[9]
    return t


def in_a_queue(x: Any) -> Any:
    queue, t = [], 0.0
    for i in range(100):
        item = {"k": i}
        queue.append(item)
        item["v"] = x[i % 5]
        if len(queue) > 3:
            item = queue.pop(0)
            t += item["v"] * item["k"]
    return t, len(queue)


def another_name(x: Any) -> Any:
    items, s = [], 0.0
    for i in range(200):
        row = [x[i % 5], 0.0]
        items.append(row)  # here
        last = items[-1]
        row[1] = 5.0
        s += last[1]
    return s


def another_name_in_a_branch(x: Any) -> Any:
    items, s = [], 0.0
    for i in range(300):
        row = [x[i % 5], 0.0]
        items.append(row)  # here
        if x[i % 5] > 0:
            row[1] = 3.0
            s += items[-1][1]
        row[0] = 1.0
    return s, items


def item_before_the_loop(x: Any) -> Any:
    row = [1.0, 2.0]
    items = [row]
    for i in range(200):  # here
        items.append([x[i % 5], 0.0])
    other = items[0]
    row[0] = 50.0
    return other[0], total(items, 0)


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
            items.append(row)
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


STORED_AGAIN = [
    changed_after_append, changed_in_a_branch, filled_after_append, filled_in_turn, filled_from_others, keys_added,
    arrays_filled, of_three_dimensions, objects, twice, first_of_many, on_a_stack, rows_on_a_stack, in_a_queue,
    as_often_as_the_data_say,
]  # fmt: skip
REFUSED = [
    another_name, another_name_in_a_branch, item_before_the_loop, changed_after_the_loop, of_many_names,
    item_of_a_loop, item_by_index, item_in_a_tuple, carried_by_a_loop, one_of_two,
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


@pytest.mark.parametrize("function", STORED_AGAIN)
def test_what_changes_after_it_was_appended_is_stored_again(function: Callable[..., Any]) -> None:
    found, expected = ml.compile(function, frontend="loops")(X), function(X)
    assert len(flat(found)) == len(flat(expected))
    np.testing.assert_allclose(flat(found), flat(expected), rtol=1e-12)


def flat(x: Any) -> list[Any]:
    """The numbers in lists and arrays."""
    return [y for item in x for y in flat(item)] if isinstance(x, (list, tuple)) else [*np.ravel(x)]


@pytest.mark.parametrize("function", [new_rows, copies, one_row, taken_out, put_back, rows_of_slices])
def test_what_python_does_is_done(function: Callable[..., Any]) -> None:
    found, expected = ml.compile(function, frontend="loops")(X), function(X)
    np.testing.assert_allclose(np.asarray(found), np.asarray(expected), rtol=1e-12)
