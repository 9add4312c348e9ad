"""Variables that are a Python float or an integer of an array, depending on data: they are doubles."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import mlirml as ml
from tests.fuzz.oracle import TARGETS

ARRAYS = [np.array([3, 5, 2, 4]), np.array([0, 5, -2, 4], np.int32), np.array([1, 5, 20, 4], np.uint8)]


def smallest(x: Any) -> Any:
    best = math.inf
    for v in x:
        if v < best:
            best = v
    return best


def largest_and_its_index(x: Any) -> Any:
    best, at, i = -np.inf, -1, 0
    while i < len(x):
        if x[i] > best:
            best, at = x[i], i
        i += 1
    return best, at * 1.0


def closest(x: Any) -> Any:
    best = math.inf
    for i in range(len(x)):
        for j in range(i):
            gap = max(x[i], x[j]) - min(x[i], x[j])
            if gap < best:
                best = gap
    return best


def in_a_list(x: Any) -> Any:
    best = [math.inf, -1.0]
    for i in range(len(x)):
        if x[i] < best[0]:
            best[0], best[1] = x[i], i * 1.0
    return best


def halved(x: Any) -> Any:
    s = 0.0
    for v in x:
        s = v if v > 3 else s / 2
    return s


def without_a_loop(x: Any) -> Any:
    a = x[1] * 0.5 if x[0] > 2 else 1.5
    if x[0] < 1:
        a = x[1]
    return a


def last_of_unknown_count(x: Any) -> Any:
    last, i = 0.5, 0
    while i < x[0]:
        last = x[i]
        i += 1
    for j in range(x[2]):
        last = last + 1 if j else x[j]
    return last


def none_or_either(x: Any) -> Any:
    found = None
    for v in x:
        if v > 3:
            found = v
        elif v < 3:
            found = 0.5
    return 1.5 if found is None else found


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(
    "function",
    [
        smallest,
        largest_and_its_index,
        closest,
        in_a_list,
        halved,
        without_a_loop,
        last_of_unknown_count,
        none_or_either,
    ],
)
def test_doubles(function: Any, target: str) -> None:
    compiled = ml.compile(function, target, frontend="loops")
    for x in ARRAYS:
        if function is last_of_unknown_count and x[2] > len(x):
            x = x[[0, 1, 0, 3]]
        found, expected = np.asarray(compiled(x)), np.asarray(function(x.copy()), np.float64)
        assert found.dtype == np.float64
        np.testing.assert_array_equal(found, expected)


def sums(x: Any) -> Any:
    s, t = 0.0, 0
    for v in x:
        s += v
        t += v
    return s, t


def test_sums_keep_the_dtypes_of_numpy() -> None:
    for x in (*ARRAYS, np.array([1.5, 2.5], np.float32)):
        found, expected = ml.compile(sums, frontend="loops")(x), sums(x)
        assert [np.asarray(one).dtype for one in found] == [np.asarray(one).dtype for one in expected]
        assert [*map(float, found)] == [*map(float, expected)]


def always_an_integer(x: Any) -> Any:
    last = 0.5
    for v in x:
        last = v
    return last


def test_a_float_that_becomes_an_integer_for_certain_is_refused() -> None:
    with pytest.raises(ml.errors.DTypeError, match="`last` changes its dtype in the loop"):
        ml.compile(always_an_integer, frontend="loops")(ARRAYS[0])
