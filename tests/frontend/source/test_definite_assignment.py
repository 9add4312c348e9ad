"""Variables that have a value wherever they are read, though not behind each way through a branch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mlirml as ml


def goes_on(x: Any) -> float:
    total = 0.0
    for i in range(len(x)):
        if x[i] > 0.7:
            s = 1.0
        elif x[i] > 0.3:
            s = 2.0
        else:
            continue
        total += s * x[i]
    return total


def one_in_the_other(x: Any) -> float:
    total = 0.0
    for i in range(len(x)):
        if x[i] > 0.7:
            s = 1.0
        elif x[i] > 0.5:
            s = 2.0
        elif x[i] > 0.02:
            if x[i] > 0.4:
                continue
            s = 3.0
            q = s + 1
            total += q
        else:
            break
        r = s * 2
        if r > 3:
            u = r
        elif r > 2:
            continue
        else:
            u = 1.0
        total += s * x[i] + u
    return total


def read_behind_the_loop(x: Any) -> float:
    s = 7.0
    for i in range(len(x)):
        if x[i] > 0.7:
            s = 1.0
        elif x[i] > 0.3:
            s = 2.0
        else:
            continue
        s = s * x[i]
    return s


def in_a_while(x: Any) -> float:
    i, total = 0, 0.0
    while i < len(x):
        i += 1
        if x[i - 1] > 0.7:
            s, t = 1.0, 2
        elif x[i - 1] > 0.1:
            t, s = 3, 4.0
        else:
            continue
        total += s * t
    return total


def returned(x: Any) -> float:
    for i in range(len(x)):
        if x[i] > 0.9:
            s = x[i]
        elif x[i] > 0.05:
            s = x[i] * 2
        else:
            return -x[i]
        if s > 1.9:
            return s
    return 0.0


FUNCTIONS: list[Callable[[Any], float]] = [goes_on, one_in_the_other, read_behind_the_loop, in_a_while, returned]


@pytest.mark.parametrize("frontend", ["auto", "loops"])
@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_as_in_python(function: Any, frontend: str) -> None:
    compiled = ml.compile(function, frontend=frontend)
    for seed in range(5):
        x = np.random.default_rng(seed).random(40)
        assert compiled(x) == pytest.approx(function(x), rel=1e-13)


def read_in_the_next_round(x: Any) -> float:
    total = 0.0
    for i in range(len(x)):
        if x[i] > 0.7:
            s = 1.0
        elif x[i] > 0.3:
            s = 2.0
        else:
            total += s
            continue
        total += s
    return total


def read_after(x: Any) -> float:
    for i in range(len(x)):
        if x[i] > 0.7:
            s = 1.0
        elif x[i] > 0.3:
            s = 2.0
        else:
            continue
        s = s * x[i]
    return s


def by_another_name(x: Any) -> float:
    total = 0.0
    for i in range(len(x)):
        if x[i] > 0.7:
            s = 1.0
        elif x[i] > 0.3:
            t = 2.0
            total += t
        else:
            continue
        total += s
    return total


def last_one(x: Any) -> Any:
    for i in range(len(x)):
        if x[i] > 0.7:
            best = i
        if x[i] > 0.9 and best > 1:
            best -= 1
    return best, {"best": best * 2}


def in_a_nested_loop(x: Any) -> float:
    total = 0.0
    for i in range(3):
        for j in range(len(x)):
            if x[j] > 0.3 * i + 0.2:
                low, where = x[j] * i, j
        total += low + where
    return total


def an_array(x: Any) -> Any:
    steps = 0
    while x[0] < 100:
        if x[1] > 0.5:
            pair = np.array([x[0], 1.0])
        x = x * 2
        if x[0] > 1:
            x = x + pair[0]
        steps += 1
    return x, pair, steps


def is_none(x: Any) -> int:
    count = 0
    for i in range(len(x)):
        if x[i] > 0.5:
            found = x[i]
        if found is None:
            count += 1
        if found:
            count += 2
    return count


def by_another_variable(x: Any) -> Any:
    total = 0.0
    for i in range(len(x)):
        if x[i] > 0.7:
            found = x[i]
    total = found
    if x[0] > 0.5:
        total = total + 1
    return total, x[0]


def after_a_loop_without_iterations(x: Any) -> Any:
    last = 0.0
    for i in range(len(x) - 1):
        if x[i] > 0.5:
            for _ in range(3, 1):
                if x[i] > 0.2:
                    found = x[i]
        if x[0] > 0.7:
            found = x[i]
        last = found
    return last


def where_it_has_no_value(x: Any) -> Any:
    if x[0] > 0.7:
        last = found  # noqa: F821  # on purpose
    else:
        found = x[1]
        last = 1.0
    return last, found


MAYBE = [
    after_a_loop_without_iterations,
    where_it_has_no_value,
    read_in_the_next_round,
    by_another_variable,
    read_after,
    by_another_name,
    last_one,
    in_a_nested_loop,
    an_array,
    is_none,
]


@pytest.mark.parametrize("function", MAYBE, ids=lambda f: f.__name__)
def test_a_variable_has_a_value_or_none_depending_on_data(function: Any) -> None:
    compiled = ml.compile(function)
    rng, raised = np.random.default_rng(0), set()
    for size in (1, 2, 3, 3, 3, 4, 6, 9):
        x = rng.random(max(size, 2))
        try:
            expected = function(x)
        except UnboundLocalError:
            raised.add(True)
            with pytest.raises(
                ml.UnassignedNameError, match=r"has no value here: a branch assigns it|used before it is assigned"
            ):
                compiled(x)
            continue
        raised.add(False)
        np.testing.assert_equal(compiled(x), expected)
    assert raised == {True, False}
