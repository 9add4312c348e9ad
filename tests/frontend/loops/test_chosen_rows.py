"""A name that is one row of a table or another behind a loop: the program does what NumPy does, or is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mlirml as ml

REFUSED = ("one of them was stored into since then", "refers to an array that the loop stores into", "has appended to")


def read_before(k: Any, x: Any) -> Any:
    table = np.arange(16.0).reshape(4, 4)
    r = table[0]
    for _ in range(17):
        for i in range(4):
            r = table[k[i]]
    total = r.sum()
    table[:] = 7
    return table + 1, total


def under_a_branch(k: Any, x: Any) -> Any:
    table = np.arange(16.0).reshape(4, 4)
    r = table[0]
    for i in range(70):
        if x[i % 4] > 0:
            r = table[k[i % 4]]
    table[:] = 7
    return r


def loop_under_a_branch(k: Any, x: Any) -> Any:
    table = np.arange(16.0).reshape(4, 4)
    r = table[0]
    if x[0] > 0:
        for i in range(70):
            r = table[k[i % 4]]
    table[:] = 7
    return r


def three_deep(k: Any, x: Any) -> Any:
    table = np.arange(16.0).reshape(4, 4)
    r = table[0]
    for _ in range(3):
        for _ in range(70):
            for i in range(4):
                r = table[k[i]]
    table[:] = 7
    return r


def until(k: Any, x: Any) -> Any:
    table = np.arange(16.0).reshape(4, 4)
    r, i = table[0], 0
    while i < x[0] * 10:
        r = table[k[i % 4]]
        i += 1
    table[:] = 7
    return r


def appended(k: Any, x: Any) -> Any:
    table = np.arange(16.0).reshape(4, 4)
    rows = []
    for i in range(70):
        rows.append(table[k[i % 4]])
    table[:] = 7
    return np.stack(rows)


def stored_in_the_outer_loop(k: Any, x: Any) -> Any:
    table = np.arange(16.0).reshape(4, 4)
    r = table[0]
    for p in range(70):
        for i in range(4):
            r = table[k[i]]
        table[p % 4] += 1
    return r


def read_after_the_store(k: Any, x: Any) -> Any:
    table = np.arange(16.0).reshape(4, 4)
    r, total = table[0], 0.0
    for p in range(70):
        for i in range(4):
            r = table[k[i]]
        table[p % 4] += 1
        total += r[0]
    return total


def one_or_the_other(k: Any, x: Any) -> Any:
    table = np.arange(16.0).reshape(4, 4)
    r, total = table[0], 0.0
    for p in range(70):
        r = table[k[p % 4]] if x[p % 4] > 0 else table[0]
        table[p % 4] += 1
        total += r[0]
    return total


PROGRAMS = [
    read_before,
    under_a_branch,
    loop_under_a_branch,
    three_deep,
    until,
    appended,
    stored_in_the_outer_loop,
    read_after_the_store,
    one_or_the_other,
]


@pytest.mark.parametrize("frontend", ["auto", "loops"])
@pytest.mark.parametrize("function", PROGRAMS)
def test_stores_behind(function: Callable[..., Any], frontend: Any) -> None:
    k, x = np.array([1, 2, 3, 0]), np.array([1.0, -1.0, 2.0, 0.0])
    try:
        result = ml.compile(function, frontend=frontend)(k, x)
    except ml.CaptureError as error:
        assert any(text in error.message for text in REFUSED)
        assert function is not read_before
        return
    for given, right in zip(result, function(k, x)) if function is read_before else [(result, function(k, x))]:
        np.testing.assert_array_equal(given, right)
