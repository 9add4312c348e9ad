"""Arrays that cannot be joined along an axis they have."""

from __future__ import annotations

from typing import Any

import numpy as np

import mlirml as ml
from tests.errors.shown import check_error


def join(*arrays: Any) -> Any:
    return np.concatenate(arrays)


def join_columns(x: Any, y: Any) -> Any:
    return np.hstack([x, y])


def join_along_axis_2(x: Any, y: Any) -> Any:
    return np.concatenate([x, y], axis=2)


def test_sizes_differ() -> None:
    check_error(
        lambda: ml.compile(join)(np.ones((4, 8), np.float32), np.ones((7, 3), np.float32)),
        """
        mlirml.ShapeError: concatenate: sizes differ outside of axis 0, f32[4,8], f32[7,3]
          --> test_concatenate.py:14:12 (join)
            |
         14 |     return np.concatenate(arrays)
            |            ^^^^^^^^^^^^^^^^^^^^^^
        """,
    )


def test_numbers_of_dimensions_differ() -> None:
    check_error(
        lambda: ml.compile(join)(np.ones((4, 8), np.float32), np.ones(8, np.float32)),
        """
        mlirml.ShapeError: concatenate: numbers of dimensions differ, f32[4,8], f32[8]
          --> test_concatenate.py:14:12 (join)
            |
         14 |     return np.concatenate(arrays)
            |            ^^^^^^^^^^^^^^^^^^^^^^
           = help: add an axis with `x[None]`
        """,
    )


def test_arrays_without_dimensions() -> None:
    check_error(
        lambda: ml.compile(join)(np.array(1.0), np.array(2.0)),
        """
        mlirml.ShapeError: concatenate: 0-d arrays cannot be joined
          --> test_concatenate.py:14:12 (join)
            |
         14 |     return np.concatenate(arrays)
            |            ^^^^^^^^^^^^^^^^^^^^^^
           = help: use `np.stack`
        """,
    )


def test_columns_of_other_lengths() -> None:
    check_error(
        lambda: ml.compile(join_columns)(np.ones((4, 8), np.float32), np.ones((5, 8), np.float32)),
        """
        mlirml.ShapeError: hstack: sizes differ outside of axis 1, f32[4,8], f32[5,8]
          --> test_concatenate.py:18:12 (join_columns)
            |
         18 |     return np.hstack([x, y])
            |            ^^^^^^^^^^^^^^^^^
        """,
    )


def test_an_axis_that_is_not_there() -> None:
    check_error(
        lambda: ml.compile(join_along_axis_2)(np.ones((4, 8), np.float32), np.ones((4, 8), np.float32)),
        """
        mlirml.IndexOutOfBoundsError: concatenate: axis 2 is out of bounds for an array of shape [4, 8]
          --> test_concatenate.py:22:12 (join_along_axis_2)
            |
         22 |     return np.concatenate([x, y], axis=2)
            |            ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
           = help: an axis lies between -2 and 1
        """,
    )
