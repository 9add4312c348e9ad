"""Positions for `take`, `put`, `np.add.at` and their kin that do not fit."""

from __future__ import annotations

from typing import Any

import numpy as np

import mlirml as ml
from tests.errors.shown import check_error

X = np.ones((4, 8), np.float32)
TABLE = np.zeros(4)


def taken(x: Any, i: Any) -> Any:
    return np.take(x, i, axis=1)


def taken_at_floats(x: Any, i: Any) -> Any:
    return np.take(x, i / 2)


def taken_in_an_unknown_mode(x: Any, i: Any) -> Any:
    return np.take(x, i, mode="nearest")


def taken_along(x: Any, i: Any) -> Any:
    return np.take_along_axis(x, i, axis=1)


def counted(x: Any, i: Any) -> Any:
    np.add.at(x, i, np.ones(5))
    return x


def stored_rows(x: Any, i: Any) -> None:
    x[i] = np.zeros((3, 8))


def put_into_a_real_array(i: Any) -> None:
    np.put(TABLE, i, 1.0)


def updated(x: Any, i: Any) -> Any:
    return x.at[0, i].add(1)


def test_take_out_of_bounds() -> None:
    check_error(
        lambda: ml.compile(taken)(X, np.array([0, 8])),
        """
        mlirml.IndexOutOfBoundsError: index 8 is out of bounds for axis 1 with size 8
          --> test_positions.py:17:12 (taken)
            |
         17 |     return np.take(x, i, axis=1)
            |            ^^^^^^^^^^^^^^^^^^^^^
           = help: an index lies between -8 and 7; `np.take` can clip or wrap what lies outside
        """,
    )


def test_take_at_floats() -> None:
    check_error(
        lambda: ml.compile(taken_at_floats)(X, np.array([0, 8])),
        """
        mlirml.DTypeError: take: indices of float64, which NumPy does not convert to int64
          --> test_positions.py:21:12 (taken_at_floats)
            |
         21 |     return np.take(x, i / 2)
            |            ^^^^^^^^^^^^^^^^^
           = help: convert them with `.astype(np.int64)`
        """,
    )


def test_an_unknown_mode() -> None:
    check_error(
        lambda: ml.compile(taken_in_an_unknown_mode)(X, np.array([0, 8])),
        """
        mlirml.UnsupportedSyntaxError: take: mode is 'nearest', not one of 'raise', 'wrap' and 'clip'
          --> test_positions.py:25:12 (taken_in_an_unknown_mode)
            |
         25 |     return np.take(x, i, mode="nearest")
            |            ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        """,
    )


def test_take_along_axis_of_another_rank() -> None:
    check_error(
        lambda: ml.compile(taken_along)(X, np.array([0, 1])),
        """
        mlirml.ShapeError: take_along_axis: i64[2] has not as many dimensions as the array, f32[4,8]
          --> test_positions.py:29:12 (taken_along)
            |
         29 |     return np.take_along_axis(x, i, axis=1)
            |            ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
           = help: add an axis to the indices, `np.expand_dims(indices, axis)`
        """,
    )


def test_adding_too_many_values() -> None:
    check_error(
        lambda: ml.compile(counted)(np.zeros(3, int), np.array([0, 1])),
        """
        mlirml.ShapeError: assignment: f64[5] does not broadcast to the elements at the index, of shape [2]
          --> test_positions.py:33:5 (counted)
            |
         33 |     np.add.at(x, i, np.ones(5))
            |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^
           = help: sizes must be equal or 1, counted from the last dimension; add axes with `x[:, None]`
        """,
    )


def test_values_of_another_shape() -> None:
    check_error(
        lambda: ml.compile(stored_rows)(X, np.array([0, 1])),
        """
        mlirml.ShapeError: assignment: f64[3,8] does not broadcast to the elements at the index, of shape [2, 8]
          --> test_positions.py:38:5 (stored_rows)
            |
         38 |     x[i] = np.zeros((3, 8))
            |     ^^^^
           = help: sizes must be equal or 1, counted from the last dimension; add axes with `x[:, None]`
        """,
    )


def test_put_into_a_real_array() -> None:
    check_error(
        lambda: ml.compile(put_into_a_real_array)(np.array([0, 1])),
        """
        mlirml.CaptureError: the array to store into is a real NumPy array, which compiled code cannot fill
          --> test_positions.py:42:5 (put_into_a_real_array)
            |
         42 |     np.put(TABLE, i, 1.0)
            |     ^^^^^^^^^^^^^^^^^^^^^
           = help: make the array inside the function with `np.zeros` or its like, or pass it as an argument
        """,
    )


def test_an_update_out_of_bounds() -> None:
    check_error(
        lambda: ml.compile(updated)(X, np.array([0, -9])),
        """
        mlirml.IndexOutOfBoundsError: index -9 is out of bounds for axis 1 with size 8
          --> test_positions.py:46:12 (updated)
            |
         46 |     return x.at[0, i].add(1)
            |            ^^^^^^^^^^^^^^^^^
           = help: an index lies between -8 and 7; `np.take` can clip or wrap what lies outside
        """,
    )
