"""A function that calls itself without a known end is an error at its line, and nothing is left behind."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest

import mlirml as ml
from mlirml.frontend.current import current_trace
from tests.errors.shown import check_error


def endless(x: Any) -> Any:
    return endless(x + 1)


def countdown(x: Any, steps: int) -> Any:
    return x if steps == 0 else countdown(2 * x, steps - 1)


def factorial(n: Any) -> Any:
    return 1 if n <= 1 else n * factorial(n - 1)


def sort(x: Any, low: Any, high: Any) -> None:
    if low < high:
        middle = low
        for j in range(low, high):
            if x[j] < x[high]:
                x[middle], x[j] = x[j], x[middle]
                middle += 1
        x[middle], x[high] = x[high], x[middle]
        sort(x, low, middle - 1)
        sort(x, middle + 1, high)


HELP = (
    "write a `while` loop that keeps what is left to do in an array, its stack; recursion is compiled where shapes or"
    " static arguments (`static_argnums`) end it"
)


@pytest.mark.parametrize("frontend", ["auto", "loops", "trace"])
def test_recursion_without_end(frontend: str) -> None:
    check_error(
        lambda: ml.compile(endless, frontend=frontend)(np.ones(3)),
        f"""
        mlirml.UnboundedRecursionError: `endless` calls itself without an end that is known when it is traced
          --> test_recursion.py:17:12 (endless)
            |
         17 |     return endless(x + 1)
            |            ^^^^^^^^^^^^^^
           = help: {HELP}
        """,
    )
    assert current_trace() is None
    np.testing.assert_array_equal(ml.compile(countdown, static_argnums=1)(np.ones(3), 0), np.ones(3))


def test_a_condition_on_data() -> None:
    check_error(
        lambda: ml.compile(factorial, frontend="trace")(np.int64(5)),
        f"""
        mlirml.TracedBoolError: a branch needs the value of bool[], known only at run time
          --> test_recursion.py:25:17 (factorial)
            |
         25 |     return 1 if n <= 1 else n * factorial(n - 1)
            |                 ^^^^^^
           = note: `factorial` calls itself, and how often depends on the data
           = help: {HELP}
        """,
    )


def test_a_sort_in_the_loop_front_end() -> None:
    check_error(
        lambda: ml.compile(sort)(np.array([3.0, 1.0, 2.0]), 0, 2),
        f"""
        mlirml.UnboundedRecursionError: `sort` calls itself without an end that is known when it is traced
          --> test_recursion.py:29:8 (sort)
            |
         29 |     if low < high:
            |        ^^^^^^^^^^
           = help: {HELP}
        """,
    )


def test_a_higher_limit_of_python_does_no_harm() -> None:
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(20_000)
    try:
        with pytest.raises(ml.UnboundedRecursionError):
            ml.compile(sort)(np.array([3.0, 1.0, 2.0]), 0, 2)
        assert ml.compile(factorial, frontend="loops")(5) == 120  # with the integer as a static one
    finally:
        sys.setrecursionlimit(limit)


def test_recursion_that_ends() -> None:
    np.testing.assert_array_equal(ml.compile(countdown, static_argnums=1)(np.ones(3), 50), np.full(3, 2.0**50))
