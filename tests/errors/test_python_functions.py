"""Python's own functions that ask for truth values."""

from __future__ import annotations

from typing import Any

import numpy as np

import mlirml as ml
from tests.errors.shown import check_error


def larger(x: Any) -> Any:
    return max(x[0], x[1])


def every(x: Any) -> Any:
    return all(x > 0)


def contains(x: Any) -> Any:
    return 1.0 in x


def checked(x: Any) -> Any:
    assert np.all(x > 0)
    return np.log(x)


def test_max() -> None:
    check_error(
        lambda: ml.compile(larger, frontend="trace")(np.ones(3)),
        """
        mlirml.TracedBoolError: `max()` needs the value of bool[], known only at run time
          --> test_python_functions.py:14:12 (larger)
            |
         14 |     return max(x[0], x[1])
            |            ^^^^^^^^^^^^^^^
           = help: use `np.maximum(a, b)`, or `np.max(x)` for all elements
        """,
    )


def test_all() -> None:
    check_error(
        lambda: ml.compile(every, frontend="trace")(np.ones(3)),
        """
        mlirml.TracedBoolError: `all()` needs the value of bool[], known only at run time
          --> test_python_functions.py:18:12 (every)
            |
         18 |     return all(x > 0)
            |            ^^^^^^^^^^
           = help: use `np.all(x)`
        """,
    )


def test_in() -> None:
    check_error(
        lambda: ml.compile(contains, frontend="trace")(np.ones(3)),
        """
        mlirml.TracedBoolError: `in` needs the value of bool[], known only at run time
          --> test_python_functions.py:22:12 (contains)
            |
         22 |     return 1.0 in x
            |            ^^^^^^^^
           = help: look for a value with `np.any(x == value)`
        """,
    )


def test_assert() -> None:
    check_error(
        lambda: ml.compile(checked)(-np.ones(3)),
        """
        mlirml.FailedAssertionError: `np.all(x > 0)` does not hold
          --> test_python_functions.py:26:5 (checked)
            |
         26 |     assert np.all(x > 0)
            |     ^^^^^^^^^^^^^^^^^^^^
        """,
    )
