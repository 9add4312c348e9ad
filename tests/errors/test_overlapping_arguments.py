"""An argument that is stored into, and shares memory with another one."""

from __future__ import annotations

from functools import partial
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


LINE = np.arange(4.0)


def test_another_dtype() -> None:
    check_error(
        lambda: ml.compile(shift)(LINE, LINE.view(np.int64)),
        """
        mlirml.LaunchError: argument `x` is stored into, and shares memory with argument `y`
          --> test_overlapping_arguments.py:17:5 (shift)
            |
         17 |     x[0] = y[1]
            |     ^^^^
           = note: one is of f64, the other of i64
           = help: pass a copy of one of them: `x.copy()`
        """,
    )


def test_half_an_element_further() -> None:
    memory = np.zeros(64, np.uint8)
    check_error(
        lambda: ml.compile(shift)(memory[4:44].view(np.float64), memory[:40].view(np.float64)),
        """
        mlirml.LaunchError: argument `x` is stored into, and shares memory with argument `y`
          --> test_overlapping_arguments.py:17:5 (shift)
            |
         17 |     x[0] = y[1]
            |     ^^^^
           = note: their elements are a fraction of an element apart
           = help: pass a copy of one of them: `x.copy()`
        """,
    )


def test_an_array_whose_own_elements_overlap() -> None:
    windows = np.lib.stride_tricks.sliding_window_view(np.arange(6.0), 3, writeable=True)
    for compiled in (ml.compile(shift), ml.compile(shift, "reference")):
        check_error(
            partial(compiled, windows, LINE),
            """
            mlirml.LaunchError: argument `x` is stored into, but its elements share memory
              --> test_overlapping_arguments.py:17:5 (shift)
                |
             17 |     x[0] = y[1]
                |     ^^^^
               = help: pass a copy: `x.copy()`
            """,
        )


def test_a_read_only_view_of_an_array_that_is_stored_into() -> None:
    view = LINE[1:]
    view.flags.writeable = False
    check_error(
        lambda: ml.compile(shift)(view, LINE),
        """
        mlirml.LaunchError: argument `x` is stored into, but it is read-only
          --> test_overlapping_arguments.py:17:5 (shift)
            |
         17 |     x[0] = y[1]
            |     ^^^^
           = help: pass a copy: `x.copy()`
        """,
    )


def test_an_array_that_the_function_reads() -> None:
    check_error(
        lambda: ml.compile(add_table)(TABLE),
        """
        mlirml.LaunchError: argument `x` is stored into, and shares memory with an array from outside the function
          --> test_overlapping_arguments.py:22:5 (add_table)
            |
         22 |     x += TABLE
            |     ^^^^^^^^^^
           = help: pass a copy: `x.copy()`
        """,
    )


def test_views_that_do_not_touch_are_fine() -> None:
    table = np.zeros((3, 2))
    table[:, 1] = 5.0
    ml.compile(shift)(table[:, 0], table[:, 1])
    np.testing.assert_array_equal(table, [[5.0, 5.0], [0.0, 5.0], [0.0, 5.0]])
