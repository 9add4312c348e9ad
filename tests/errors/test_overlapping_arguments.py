"""An argument that is stored into, and shares memory with another one."""

from __future__ import annotations

from typing import Any

import numpy as np

import mlirml as ml
from tests.errors.shown import check_error

TABLE = np.arange(300.0)


def shift(x: Any, y: Any) -> Any:
    x[0] = y[1]
    return x


def add_table(x: Any) -> Any:
    x += TABLE
    return x


SAME = np.arange(4.0)


def test_the_same_array_twice() -> None:
    check_error(
        lambda: ml.compile(shift)(SAME, SAME),
        """
        mlirml.LaunchError: argument `x` is stored into, and shares memory with argument `y`
          --> test_overlapping_arguments.py:16:5 (shift)
            |
         16 |     x[0] = y[1]
            |     ^^^^
           = help: pass a copy of one of them: `x.copy()`
        """,
    )


def test_two_views() -> None:
    check_error(
        lambda: ml.compile(shift)(SAME[:3], SAME[1:]),
        """
        mlirml.LaunchError: argument `x` is stored into, and shares memory with argument `y`
          --> test_overlapping_arguments.py:16:5 (shift)
            |
         16 |     x[0] = y[1]
            |     ^^^^
           = help: pass a copy of one of them: `x.copy()`
        """,
    )


def test_an_array_that_the_function_reads() -> None:
    check_error(
        lambda: ml.compile(add_table)(TABLE),
        """
        mlirml.LaunchError: argument `x` is stored into, and shares memory with an array from outside the function
          --> test_overlapping_arguments.py:21:5 (add_table)
            |
         21 |     x += TABLE
            |     ^^^^^^^^^^
           = help: pass a copy: `x.copy()`
        """,
    )


def test_views_that_do_not_touch_are_fine() -> None:
    table = np.zeros((3, 2))
    table[:, 1] = 5.0
    ml.compile(shift)(table[:, 0], table[:, 1])
    np.testing.assert_array_equal(table, [[5.0, 5.0], [0.0, 5.0], [0.0, 5.0]])
