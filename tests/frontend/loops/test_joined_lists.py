"""Lists of dynamic length that are joined, extended and written into other lists."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mlirml as ml
from tests.frontend.loops.against_python import check

Array = Any
A = np.array([5, 1, 7, 3, 9, 2, 8])


def split_at(a: Array, limit: Any) -> tuple[Any, Any]:
    low, high = [], []
    for i in range(len(a)):
        if a[i] < limit:
            low.append(a[i])
        else:
            high.append(a[i])
    return low, high


def starred(a: Array) -> Any:
    low, high = split_at(a, 4)
    items = [*low]
    items.append(1)
    more = [0, *high, 3, 4]
    return len(items), len(low), np.array(more), np.array([*low, *high])


def starred_others(a: Array) -> Any:
    one, two = (a[0], a[1]), [a[2]]
    total = 0
    for x in [*one, *two, *a[3:]]:
        total = 2 * total + x
    return total


def added(a: Array) -> Any:
    low, high = split_at(a, 4)
    total = 0
    for x in low + high:
        total = 2 * total + x
    return total, np.array([1, 2] + low + [7]), len(high + [1])  # noqa: RUF005


def extended(a: Array) -> Any:
    low, high = split_at(a, 4)
    low.extend(high)
    low += high
    low += [1, 2]
    return len(low), np.array(low)


def of_tuples(a: Array) -> Any:
    low, high = [], []
    for i in range(len(a)):
        if a[i] > 4:
            low.append((i, 0.5 * a[i]))
        else:
            high.append((i, 2.0 * a[i]))
    total = 0.0
    for i, x in high + low + [(1, 2.0)]:
        total = 2 * total + i * x
    return total


def extended_in_a_loop(a: Array) -> Any:
    found: list[Any] = []
    for k in range(3):
        some = []
        for i in range(len(a)):
            if a[i] % 3 == k:
                some.append(a[i])
        found.extend(some)
        found.append(-1)
    return len(found), np.array(found)


def partitions(a: Array) -> Any:
    low = [x for x in a if x < 5]
    high = [x for x in a if x > 5]
    return np.array(low + [5] + high)  # noqa: RUF005


def merged(a: Array) -> Any:
    one, other = np.sort(a[:4]), np.sort(a[4:])
    out, i, j = [], 0, 0
    while i < len(one) and j < len(other):
        if one[i] <= other[j]:
            out.append(one[i])
            i += 1
        else:
            out.append(other[j])
            j += 1
    return np.array(out + list(one[i:]) + list(other[j:])), len(out)


def lists_of_slices(a: Array) -> Any:
    k = 0
    while a[k] != 9:
        k += 1
    first, large = list(a[:k]), list(a[a > 4])
    first.append(a[0])
    first[0] = 11
    large.sort()
    return np.array(first), np.array(large), a, len(large)


def beside_a_variable_of_that_name(a: Array) -> Any:
    list = 3
    total = 0
    for x in [*a, list]:
        total = 2 * total + x
    return total


def extended_by_slices(a: Array) -> Any:
    found: list[Any] = []
    for k in range(3):
        found.extend(a[a > 3 * k])
        found += list(a[:k])
    return np.array(found)


def replaced_by_a_sum(a: Array) -> Any:
    found, first = [1], []
    for x in a:
        if x > 4:
            found = found + [x]  # noqa: RUF005
        elif x > 1:
            first = [x] + first  # noqa: RUF005
    return found, first, len(found)


def replaced_by_a_sum_of_lists(a: Array) -> Any:
    sums = [0]
    old = sums
    for x in a:
        new = []
        for s in sums:
            if s + x <= 20 and s + x not in sums:
                new.append(s + x)
        sums = sums + new
    return sorted(sums), old


def extended_outside_of_loops(a: Array) -> Any:
    found = [1]
    found.extend(a[a > 4])
    found.extend(a[: np.argmax(a)])
    found += list(a[a < 3])
    return found, len(found), sum(found)


def appended_in_a_branch(a: Array) -> Any:
    found = [1]
    if a[0] > 4:
        found.append(2)
        found += [3, 4]
    return found, len(found)


@pytest.mark.parametrize(
    "function",
    [
        replaced_by_a_sum, replaced_by_a_sum_of_lists, extended_outside_of_loops, appended_in_a_branch,
        starred, starred_others, added, extended, of_tuples, extended_in_a_loop, partitions, merged, lists_of_slices,
        extended_by_slices, beside_a_variable_of_that_name,
    ],
)  # fmt: skip
def test_function(function: Any) -> None:
    check(function, A)
    check(function, A[::-1].copy())


def test_items_of_two_types_are_refused() -> None:
    def mixed(a: Array) -> Any:
        low, _ = split_at(a, 4)
        return len(low + [0.5])  # noqa: RUF005

    with pytest.raises(ml.errors.MlirmlError, match="items of several types"):
        ml.compile(mixed)(A)
