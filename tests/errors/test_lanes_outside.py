"""Values of one lane of a batch that a function keeps in what is the same for all lanes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mlirml as ml


def stores(x: Any) -> Any:
    x[0] = 1.0
    return np.sum(x)


def kept_outside(xs: Any) -> Any:
    total, last, found = np.zeros(3), {"x": 0.0}, []

    def stored(x: Any) -> Any:
        total[:] = x + 1
        return np.sum(x)

    def replaced(x: Any) -> Any:
        last["x"] = x[0] * 2
        return np.sum(x)

    def appended(x: Any) -> Any:
        found.append(np.max(x))
        return np.sum(x)

    return {
        "stored": lambda: (ml.vmap(stored)(xs), total),
        "replaced": lambda: (ml.vmap(replaced)(xs), last["x"]),
        "appended": lambda: (ml.vmap(ml.vmap(appended))(xs[None]), found[0]),
        "an argument": lambda: ml.vmap(stores, axis_size=2, in_axes=(None,))(total),
        "shared": lambda: ml.vmap(lambda y, x: stored(x), in_axes=(None, 0))(total, xs),
    }


@pytest.mark.parametrize(("name", "line"), [("stored", "x + 1"), ("replaced", "x[0] * 2"), ("appended", "np.max(x)")])
def test_a_value_of_one_example_that_is_kept_outside(name: str, line: str) -> None:
    with pytest.raises(ml.NoBatchingError, match="is used outside of the function for one example") as caught:
        ml.compile(lambda xs: kept_outside(xs)[name]())(np.ones((2, 3)))
    shown = str(caught.value).splitlines()
    assert shown[1].endswith(f"({name})") and line in shown[3] and "^" * len(line) in shown[4]


def test_what_all_examples_share_is_kept_outside() -> None:
    assert ml.compile(lambda xs: kept_outside(xs)["an argument"]())(np.ones((2, 3))).tolist() == [1.0, 1.0]
    assert ml.compile(lambda xs: kept_outside(xs)["shared"]())(np.ones((2, 3))).tolist() == [3.0, 3.0]


def added(total: Any, x: Any) -> Any:
    total[0] += x[0]
    return np.sum(x) * total[0]


def added_to_an_argument(xs: Any) -> Any:
    return ml.vmap(added, (None, 0))(np.zeros(3), xs)


def added_from_outside(xs: Any) -> Any:
    total = np.zeros(3)
    return ml.vmap(lambda x: added(total, x))(xs)


def added_what_all_share(xs: Any) -> Any:
    total, one = np.zeros(3), np.ones(3)
    ml.vmap(lambda x: added(total, one) + x)(xs)
    return total


def added_in_a_loop(xs: Any) -> Any:
    total = np.zeros(1)

    def lane(x: Any) -> Any:
        for i in range(len(x)):
            total[0] += x[i]
        return total[0]

    return ml.vmap(lane)(xs)


def read_before(xs: Any) -> Any:
    total = np.zeros(3)
    last = total[2:]

    def lane(x: Any) -> Any:
        before = total[2]
        last[0] = x[0]
        return before

    return ml.vmap(lane)(xs)


def stored_by_some(xs: Any) -> Any:
    total = np.zeros(3)

    def lane(x: Any) -> Any:
        if x[0] > 1:
            total[0] = x[0]
        return total[0]

    return ml.vmap(lane)(xs)


def stored_at_an_index(xs: Any) -> Any:
    total = np.zeros(3)

    def lane(x: Any, i: Any) -> Any:
        total[i] = x[0]
        return total[i - 1]

    return ml.vmap(lane)(xs, np.arange(1, 3))


@pytest.mark.parametrize(
    ("function", "line", "name"),
    [
        (added_to_an_argument, "total[0] += x[0]", "added"),
        (added_from_outside, "total[0] += x[0]", "added"),
        (added_what_all_share, "total[0] += x[0]", "added"),
        (added_in_a_loop, "total[0] += x[i]", "lane"),
        (read_before, "last[0] = x[0]", "lane"),
        (stored_by_some, "return total[0]", "lane"),
        (stored_at_an_index, "return total[i - 1]", "lane"),
    ],
)
def test_an_example_does_not_read_what_others_store(function: Callable[[Any], Any], line: str, name: str) -> None:
    message = "the function for one example changes an array from outside of it, and reads what it changes"
    with pytest.raises(ml.NoBatchingError, match=message) as caught:
        ml.compile(function)(np.ones((2, 3)))
    shown = str(caught.value).splitlines()
    assert shown[1].endswith(f"({name})") and line in shown[3]


def test_an_example_reads_what_it_has_stored_itself() -> None:
    @ml.compile
    def f(xs: Any) -> Any:
        room, rest = np.zeros(3), np.ones(2)
        part = rest[1:]

        def lane(x: Any) -> Any:
            room[:] = x
            room[0] += 1
            part[0] = room[1]
            for i in range(3):
                room[i] *= 2
            return np.sum(room) * rest + part[0]

        return ml.vmap(lane)(xs)

    xs = np.arange(6.0).reshape(2, 3)
    np.testing.assert_array_equal(f(xs), [[8 + 1, 8 + 1], [26 + 4, 26 * 4 + 4]])
