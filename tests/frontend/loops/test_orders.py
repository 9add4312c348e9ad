"""`max`, `min`, `sorted` and `list.sort` with keys, and of tuples, whose order the data decide, against Python."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mlirml as ml
from tests.frontend.loops.test_copied_items import flat

X = np.array([(i * 7919) % 101 - 50.0 for i in range(100)])
TIES = np.array([1.0, -2.0, 2.0, -1.0, 2.0, 0.0])


def greatest_of_points(x: Any) -> Any:
    points = [(v, v * v - i) for i, v in enumerate(x)]
    return max(points, key=lambda p: p[1]), min(points, key=lambda p: (p[1] - 1) ** 2)


def of_tuples(x: Any) -> Any:
    return max([(v, i) for i, v in enumerate(x)]), min((v, -i) for i, v in enumerate(x))


def positions(x: Any) -> Any:
    first = min(range(len(x)), key=lambda i: (abs(x[i]), -i))
    return first, max(range(len(x)), key=lambda i: x[i]), min(enumerate(x), key=lambda p: p[1])[0]


def in_a_loop(x: Any) -> Any:
    best = 0.0
    for k in range(5):
        j = max(range(len(x)), key=lambda i: x[i] * (k + 1) - i)
        best += x[j] + j
    return best


def of_some(x: Any) -> Any:
    some = []
    for i in range(len(x)):
        if x[i] > 0:
            some.append((x[i], i))
    none = [v for v in x if v > 1e9]
    return max(some, key=lambda p: -p[0]), max(none, key=abs, default=7.0), max((v for v in x if v < 0), key=abs)


def of_arguments(x: Any) -> Any:
    low, high = sorted((x[0], x[1]))
    return max(x[0], x[1], x[2], key=lambda v: -v), low, high, max((x[0], 1), (x[1], 2))


def orders(x: Any) -> Any:
    order = sorted(range(len(x)), key=lambda i: (abs(x[i]), -i))
    return (
        order,
        sorted(x, key=abs),
        sorted(x, key=lambda v: v % 2, reverse=True),
        sorted(range(len(x)), key=lambda i: x[i]),
    )


def sorted_points(x: Any) -> Any:
    points, grown, xs = [[v, i] for i, v in enumerate(x)], [], list(x)
    points.sort(key=lambda p: p[0] % 3)
    for i in range(len(x)):
        grown.append((x[i], i))
    grown.sort()
    named = [{"x": v, "i": i} for i, v in enumerate(x)]
    xs.sort(key=abs, reverse=True)
    return points, grown[2], xs, [p["i"] for p in sorted(named, key=lambda p: p["x"])]


def of_words(x: Any) -> Any:
    words = ["aa", "b", "cccc"]
    return len(max(words, key=len)) + sorted(words, key=len).index("b") + len(min(words)), x[0]


@pytest.mark.parametrize("x", [X, TIES])
@pytest.mark.parametrize(
    "function",
    [
        greatest_of_points, of_tuples, positions, in_a_loop, of_some, of_arguments, orders, sorted_points, of_words,
    ],
)  # fmt: skip
def test_orders(function: Callable[..., Any], x: np.ndarray) -> None:
    found, expected = ml.compile(function, frontend="loops")(x), function(x)
    assert len(flat(found)) == len(flat(expected))
    np.testing.assert_array_equal(flat(found), flat(expected))


def test_no_items() -> None:
    def greatest(x: Any) -> Any:
        return max([v for v in x if v > 0], key=abs)

    compiled = ml.compile(greatest, frontend="loops")
    assert compiled(X) == 50.0
    with pytest.raises(ValueError, match="max\\(\\) arg is an empty sequence"):
        compiled(-np.ones(100))


def test_as_many_as_the_data_say() -> None:
    def in_order(x: Any) -> Any:
        return sorted([v for v in x if v > 0], key=abs)

    with pytest.raises(ml.CaptureError, match="of as many items as the data say"):
        ml.compile(in_order, frontend="loops")(X)


def changed_result(x: Any) -> Any:
    items = []
    for v in x:
        items.append([v, v * v])
    best = max(items, key=lambda f: f[1] - f[0])
    best[1] = 77.0
    return best, items


def changed_item(x: Any) -> Any:
    items = []
    for v in x:
        items.append([v, v * v])
    best = max(items, key=lambda f: f[1] - f[0])
    items[1][1] = 77.0
    return best, items


def changed_row(x: Any) -> Any:
    rows = [[i + j for j in range(4)] for i in range(4)]
    least = sorted(rows, key=lambda row: row[0] * x[0])[0]
    least[0] = 9
    return least, rows


def changed_after_sorting(x: Any) -> Any:
    rows = [[i + j for j in range(4)] for i in range(4)]
    least = sorted(rows, key=lambda row: row[0] * x[0])[0]
    rows[3][0] = 9
    return least, rows


def changed_stored_row(x: Any) -> Any:
    rows = [[i + j for j in range(4)] for i in range(4)]
    for i in range(17):
        rows[i % 4][i % 3] += x[i % 4]
    in_order = sorted(rows, key=sum)
    in_order[0][1] = 77
    return in_order, rows


@pytest.mark.parametrize("few", [4, 40])
@pytest.mark.parametrize(
    "function", [changed_result, changed_item, changed_row, changed_after_sorting, changed_stored_row]
)
def test_changes_of_chosen_items(function: Callable[..., Any], few: int) -> None:
    """What was chosen is one of the items in Python: a change of either is right, or refused."""
    x = np.sin(np.arange(float(few)) + 1)
    try:
        found = ml.compile(function, frontend="loops")(x)
    except ml.CaptureError:
        return
    assert flat(found) == flat(function(x))


def of_iterators(x: list[float], y: list[float]) -> Any:
    pairs = sorted(zip(x, y), key=lambda p: p[0] / p[1], reverse=True)
    places = sorted(enumerate(x), key=lambda p: -p[1])
    total = 0.0
    for i, (a, b) in enumerate(sorted(zip(y, x))):
        total = total * 3 + a * b * i
    return (
        pairs,
        [i for i, _ in places],
        sorted((v * 2 for v in x), key=lambda v: -v),
        sorted(map(abs, y), key=abs),
        total,
    )


def test_iterators_are_sorted() -> None:
    x, y = [60.0, 100.0, 120.0], [10.0, -20.0, 7.0]
    assert flat(ml.compile(of_iterators)(x, y)) == flat(of_iterators(x, y))
