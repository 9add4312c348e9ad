"""Lists, dicts, sets and objects that loops and branches change: they hold what they hold in Python."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import mlirml as ml
from mlirml.errors import CaptureError

from .against_python import check

V = np.array([1.0, -1.0, 2.0, -3.0, 4.0])
LONG = np.resize(V, 500)


class Counter:
    __slots__ = ("count", "total")

    def __init__(self) -> None:
        self.count, self.total = 0, 0.0

    def add(self, value):
        self.count += 1
        self.total += value


def test_elements_of_lists_chosen_by_branches() -> None:
    def common(a, b):
        length = [[0] * (len(b) + 1) for _ in range(len(a) + 1)]
        for i in range(1, len(a) + 1):
            for j in range(1, len(b) + 1):
                if a[i - 1] == b[j - 1]:
                    length[i][j] = length[i - 1][j - 1] + 1
                else:
                    length[i][j] = max(length[i - 1][j], length[i][j - 1])
        return length[len(a)][len(b)]

    assert check(common, np.array([0, 1, 2, 1]), np.array([0, 2, 1])) == 3


def test_items_of_a_dict_count_in_a_loop() -> None:
    def signs(x):
        found = {"low": 0, "high": 0.0}
        for i in range(len(x)):
            if x[i] < 0:
                found["low"] += 1
            else:
                found["high"] += x[i]
        return found["low"], found["high"]

    check(signs, LONG)


def test_attributes_change_in_methods_and_while_loops() -> None:
    def sums(x):
        positive, state, i = Counter(), SimpleNamespace(last=0.0, steps=[0, 0]), 0
        while i < len(x):
            state.last = x[i]
            state.steps[0] += i
            if x[i] > 0:
                positive.add(x[i])
            i += 1
        return positive.count, positive.total, state.last, state.steps[0]

    check(sums, V)


def test_a_closure_changes_its_list() -> None:
    def total(x):
        held = [0.0]

        def add(value):
            held[0] += value

        for i in range(len(x)):
            if x[i] > 0:
                add(x[i])
        return held[0]

    check(total, LONG)


def test_a_list_that_grows_unrolls_its_loop() -> None:
    def doubled(x):
        found, seen = [], set()
        for i in range(len(x)):
            if x[i] > 0:
                found.append(x[i] * 2)
            else:
                found.append(-x[i])
            seen.add(i % 2)
        return found, len(seen)

    check(doubled, V)


def test_elements_exchanged_in_a_branch() -> None:
    def exchanged(x):
        pair = [0.0, 1.0]
        for i in range(len(x)):
            if x[i] > 0:
                pair[0], pair[1] = pair[1], pair[0]
        return pair

    check(exchanged, LONG)


def test_arrays_in_a_list_take_turns() -> None:
    def sweeps(x):
        arrays = [x.copy(), np.zeros_like(x)]
        for _ in range(7):
            for i in range(1, len(x) - 1):
                arrays[1][i] = arrays[0][i - 1] + arrays[0][i + 1]
            arrays[0], arrays[1] = arrays[1], arrays[0]
        return arrays[0][2], arrays[1][2]

    check(sweeps, V)


def test_a_conditional_expression_takes_from_a_list_once() -> None:
    def taken(x):
        items = [1, 2, 3]
        value = items.pop() if x[0] > 0 else items.pop(-1)
        return value, len(items)

    check(taken, V)


def test_a_break_ends_what_a_dict_counts() -> None:
    def until(x):
        state = {"rounds": 0}
        for i in range(len(x)):
            if x[i] < -2:
                break
            state["rounds"] += 1
        return state["rounds"]

    assert check(until, V) == 3


def rebound(x, n):
    a = [0.0, 1.0]
    r = [5.0, 6.0]
    for p in range(n):
        r = a
        x[p] += r[0]
    r[0] = 9.0
    return a[0]


def of_two(x, n):
    a, b = {"v": 0.0}, {"v": 1.0}
    r = a if n > 2 else b
    r["v"] = 9.0
    return a["v"], b["v"]


def changed_after(x, n):
    a, b = [0.0, 1.0], [2.0, 3.0]
    w = a if n > 2 else b
    w[0] = 4.0
    return a[0]


def changed_before_a_read(x, n):
    a, b = [0.0, 1.0], [2.0, 3.0]
    w = a if n > 2 else b
    for p in range(n):
        x[p] += w[0]
        a[0] = 5.0
    return x


def changed_behind_a_loop(x, n):
    a = [0.0, 1.0]
    b = a
    for p in range(n):
        b = [x[p], 2.0]
    a[0] = 5.0
    return x, b


def stored_behind_a_loop(x, n):
    a = [0.0, 1.0]
    b = a
    while n > 2:
        b = [x[n], 2.0]
        n -= 1
    b[0] = 5.0
    return x, a


def row_behind_a_loop(x, n):
    a = [0.0, 1.0]
    t = [[2.0, 3.0], a]
    for p in range(n):
        t[1] = [x[p], 4.0]
    a[0] = 5.0
    return x, t


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (rebound, "another name, and to another one in another iteration"),
        (of_two, "one list or dict or another, and one of them has another name"),
        (changed_after, "a list changes that is one list or another"),
        (changed_before_a_read, "this is one list or another, and one of them has changed since"),
        # Where the loop has no round, the two names are still one list.
        (changed_behind_a_loop, "this is one list or another, and one of them has changed since"),
        (stored_behind_a_loop, "a list changes that is one list or another"),
        (row_behind_a_loop, r"`t\[1\]` refers to a list or dict that has another name"),
    ],
)
def test_a_second_name_for_a_container_that_changes(function: Any, message: str) -> None:
    """A loop or branch gives a new list: a store through it would not be seen by the other name."""
    with pytest.raises(CaptureError, match=message):
        ml.compile(function, frontend="loops")(np.ones(5), np.int64(3))


def test_a_second_name_for_a_list_that_is_read() -> None:
    def chosen(x, n):
        a, b = [0.0, 1.0], [2.0, 3.0]
        w = a if n > 2 else b
        for p in range(n):
            x[p] += w[0] + w[p % 2]
        return x

    def alias(x, n):
        t = [[0, 1], [2, 3]]
        r = t[0]
        for _ in range(3):
            for i in range(2):
                t[-1 - i][i] = 1
                t[0], t[-1 - i] = t[-1 - i], t[0]
        return t, r

    def behind_a_loop(x, n):
        a = [0.0, 1.0]
        b = a
        for p in range(n - 2):
            b = [x[p], 7.0]
        return [a[0] + b[1]], b

    for function in (chosen, alias, behind_a_loop):
        for n in (2, 3):
            found, expected = ml.compile(function, frontend="loops")(np.ones(5), n), function(np.ones(5), n)
            for one, other in zip(found, expected):
                np.testing.assert_array_equal(np.array(one), np.array(other))


def test_lists_that_grow_while_elements_of_others_change() -> None:
    def grows(x):
        r, u = [0, 1, 2, 3], [1]
        for p in range(17):
            for i in range(4):
                r[i] += 1
                u.append(i + p)
        return r, u

    found, expected = ml.compile(grows, frontend="loops")(np.ones(3)), grows(np.ones(3))
    assert [[int(x) for x in one] for one in found] == [*map(list, expected)]


def test_gradients_of_loops_with_break_that_change_elements() -> None:
    """A predicated iteration is a branch with the code of the loop's body; what is known of one is not of the other."""

    def until(a, x):
        s = [a, 0.0]
        for v in x:
            s[0] = s[0] * v
            s[1] += s[0]
            if s[1] > 1.2:
                break
        return s[0] + s[1] ** 2

    for stop, expected in ((0.5, 11.0), (0.3, 0.6 + 2 * 0.3 * 3.6**2)):
        assert ml.grad(until)(stop, np.array([1.0, 2.0, 0.3])) == pytest.approx(expected)


def test_elements_at_known_and_at_unknown_indices_of_one_list() -> None:
    def counts(w):
        key = [1.0, 0.0]
        for i in range(3):
            u = int(w[i])
            if key[1] < key[0]:
                u = 1
            key[u] += 1.0
        return key

    def balance(w):
        load = [0.0] * 3
        for i in range(len(w)):
            best = 0
            for j in range(1, 3):
                if load[j] < load[best]:
                    best = j
            load[best] += w[i]
        return max(load), load

    check(counts, np.array([0.0, 1.0, 0.0]))
    check(balance, np.array([3.0, 1.0, 2.0, 5.0, 1.0]))
