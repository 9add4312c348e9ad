"""Indices that do not fit the array."""

from __future__ import annotations

from typing import Any

import numpy as np

import mlirml as ml
from tests.errors.shown import check_error


def load(x: Any) -> Any:
    return x[0, -9]


def store(x: Any) -> None:
    x[5, 0] = 1.0


def empty(x: Any) -> Any:
    return x[:0][0]


def too_many(x: Any) -> Any:
    return x[0, 1, 2]


def by_a_float(x: Any) -> Any:
    return x[1.0]


def by_a_slice_of_floats(x: Any) -> Any:
    return x[: len(x) / 2]


def step_of_zero(x: Any) -> Any:
    return x[::0]


def two_ellipses(x: Any) -> Any:
    return x[..., ...]


def by_an_array_of_floats(x: Any) -> Any:
    return x[np.ones(2)]


def by_arrays_of_other_shapes(x: Any, i: Any) -> Any:
    return x[i, [0, 1]]


def by_a_list(x: Any) -> Any:
    return x[:, [0, 8]]


def of_a_known_array(x: Any) -> Any:
    return np.arange(3)[[0, 3]] + x


def first_or_last(x: Any) -> Any:
    try:
        return x[10]
    except IndexError:
        return x[-1]


def test_out_of_bounds() -> None:
    check_error(
        lambda: ml.compile(load)(np.ones((4, 8), np.float32)),
        """
        mlirml.IndexOutOfBoundsError: index -9 is out of bounds for axis 1 with size 8
          --> test_index.py:14:12 (load)
            |
         14 |     return x[0, -9]
            |            ^^^^^^^^
           = help: an index lies between -8 and 7
        """,
    )


def test_out_of_bounds_of_a_store() -> None:
    check_error(
        lambda: ml.compile(store)(np.ones((4, 8), np.float32)),
        """
        mlirml.IndexOutOfBoundsError: index 5 is out of bounds for axis 0 with size 4
          --> test_index.py:18:5 (store)
            |
         18 |     x[5, 0] = 1.0
            |     ^^^^^^^
           = help: an index lies between -4 and 3
        """,
    )


def test_an_empty_axis() -> None:
    check_error(
        lambda: ml.compile(empty)(np.ones((4, 8), np.float32)),
        """
        mlirml.IndexOutOfBoundsError: index 0 is out of bounds for axis 0 with size 0
          --> test_index.py:22:12 (empty)
            |
         22 |     return x[:0][0]
            |            ^^^^^^^^
           = help: the axis is empty
        """,
    )


def test_too_many_indices() -> None:
    check_error(
        lambda: ml.compile(too_many)(np.ones((4, 8), np.float32)),
        """
        mlirml.IndexOutOfBoundsError: too many indices: 3 for an array of 2 dimensions, shape [4, 8]
          --> test_index.py:26:12 (too_many)
            |
         26 |     return x[0, 1, 2]
            |            ^^^^^^^^^^
        """,
    )


def test_a_float() -> None:
    check_error(
        lambda: ml.compile(by_a_float)(np.ones((4, 8), np.float32)),
        """
        mlirml.InvalidIndexError: an index must be an integer, a slice, `...`, None or an array of those, got 1.0
          --> test_index.py:30:12 (by_a_float)
            |
         30 |     return x[1.0]
            |            ^^^^^^
        """,
    )


def test_a_slice_of_floats() -> None:
    check_error(
        lambda: ml.compile(by_a_slice_of_floats)(np.ones((4, 8), np.float32)),
        """
        mlirml.InvalidIndexError: slice bounds must be integers or None, got 2.0
          --> test_index.py:34:12 (by_a_slice_of_floats)
            |
         34 |     return x[: len(x) / 2]
            |            ^^^^^^^^^^^^^^^
        """,
    )


def test_a_step_of_zero() -> None:
    check_error(
        lambda: ml.compile(step_of_zero)(np.ones((4, 8), np.float32)),
        """
        mlirml.ShapeError: slice step cannot be zero
          --> test_index.py:38:12 (step_of_zero)
            |
         38 |     return x[::0]
            |            ^^^^^^
        """,
    )


def test_two_ellipses() -> None:
    check_error(
        lambda: ml.compile(two_ellipses)(np.ones((4, 8), np.float32)),
        """
        mlirml.InvalidIndexError: an index can have only one ellipsis (`...`)
          --> test_index.py:42:12 (two_ellipses)
            |
         42 |     return x[..., ...]
            |            ^^^^^^^^^^^
        """,
    )


def test_an_array_of_floats() -> None:
    check_error(
        lambda: ml.compile(by_an_array_of_floats)(np.ones((4, 8), np.float32)),
        """
        mlirml.InvalidIndexError: an index must be an integer, a slice, `...`, None or an array of those, got an array of float64
          --> test_index.py:46:12 (by_an_array_of_floats)
            |
         46 |     return x[np.ones(2)]
            |            ^^^^^^^^^^^^^
           = help: convert it with `.astype(np.int64)`
        """,  # noqa: E501
    )


def test_arrays_of_other_shapes() -> None:
    check_error(
        lambda: ml.compile(by_arrays_of_other_shapes)(np.ones((4, 8), np.float32), np.zeros(3, int)),
        """
        mlirml.InvalidIndexError: index arrays of shapes [3], [2] do not broadcast together
          --> test_index.py:50:12 (by_arrays_of_other_shapes)
            |
         50 |     return x[i, [0, 1]]
            |            ^^^^^^^^^^^^
           = help: one array for each axis picks single elements; for rows and columns use `x[np.ix_(rows, columns)]`
        """,
    )


def test_a_list_with_a_number_out_of_bounds() -> None:
    check_error(
        lambda: ml.compile(by_a_list)(np.ones((4, 8), np.float32)),
        """
        mlirml.IndexOutOfBoundsError: index 8 is out of bounds for axis 1 with size 8
          --> test_index.py:54:12 (by_a_list)
            |
         54 |     return x[:, [0, 8]]
            |            ^^^^^^^^^^^^
           = help: an index lies between -8 and 7
        """,
    )


def test_a_known_array() -> None:
    check_error(
        lambda: ml.compile(of_a_known_array)(np.ones(2)),
        """
        mlirml.IndexOutOfBoundsError: index 3 is out of bounds for axis 0 with size 3
          --> test_index.py:58:12 (of_a_known_array)
            |
         58 |     return np.arange(3)[[0, 3]] + x
            |            ^^^^^^^^^^^^^^^^^^^^
           = help: an index lies between -3 and 2
        """,
    )


def test_the_function_itself_may_catch_an_index_error() -> None:
    assert ml.compile(first_or_last)(np.arange(3.0)) == 2.0
