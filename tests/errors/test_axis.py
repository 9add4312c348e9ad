"""Axes that are not there, or that are no axes."""

from __future__ import annotations

from typing import Any

import numpy as np

import mlirml as ml
from tests.errors.shown import check_error


def sum_over_axis_2(x: Any) -> Any:
    return np.sum(x, axis=2)


def mean_over_axis_0_twice(x: Any) -> Any:
    return x.mean(axis=(0, -2))


def max_over_a_float(x: Any) -> Any:
    return x.max(axis=1.0)


def transpose_twice(x: Any) -> Any:
    return x.transpose(0, 0)


def squeeze_rows(x: Any) -> Any:
    return np.squeeze(x, 0)


def test_out_of_bounds() -> None:
    check_error(
        lambda: ml.compile(sum_over_axis_2)(np.ones((4, 8), np.float32)),
        """
        mlirml.IndexOutOfBoundsError: sum: axis 2 is out of bounds for an array of shape [4, 8]
          --> test_axis.py:14:12 (sum_over_axis_2)
            |
         14 |     return np.sum(x, axis=2)
            |            ^^^^^^^^^^^^^^^^^
           = help: an axis lies between -2 and 1
        """,
    )


def test_an_array_without_axes() -> None:
    check_error(
        lambda: ml.compile(sum_over_axis_2)(np.array(1.0)),
        """
        mlirml.IndexOutOfBoundsError: sum: axis 2 is out of bounds for an array of shape []
          --> test_axis.py:14:12 (sum_over_axis_2)
            |
         14 |     return np.sum(x, axis=2)
            |            ^^^^^^^^^^^^^^^^^
           = help: the array has no axes
        """,
    )


def test_named_twice() -> None:
    check_error(
        lambda: ml.compile(mean_over_axis_0_twice)(np.ones((4, 8), np.float32)),
        """
        mlirml.ShapeError: mean: axis (0, -2) names a dimension twice
          --> test_axis.py:18:12 (mean_over_axis_0_twice)
            |
         18 |     return x.mean(axis=(0, -2))
            |            ^^^^^^^^^^^^^^^^^^^^
        """,
    )


def test_not_an_integer() -> None:
    check_error(
        lambda: ml.compile(max_over_a_float)(np.ones((4, 8), np.float32)),
        """
        mlirml.ShapeError: max: an axis must be an integer, got 1.0
          --> test_axis.py:22:12 (max_over_a_float)
            |
         22 |     return x.max(axis=1.0)
            |            ^^^^^^^^^^^^^^^
        """,
    )


def test_no_permutation() -> None:
    check_error(
        lambda: ml.compile(transpose_twice)(np.ones((4, 8), np.float32)),
        """
        mlirml.ShapeError: transpose: axes [0, 0] are no permutation of 2 dimension(s)
          --> test_axis.py:26:12 (transpose_twice)
            |
         26 |     return x.transpose(0, 0)
            |            ^^^^^^^^^^^^^^^^^
        """,
    )


def test_an_axis_that_cannot_be_dropped() -> None:
    check_error(
        lambda: ml.compile(squeeze_rows)(np.ones((4, 8), np.float32)),
        """
        mlirml.ShapeError: squeeze: dimension 0 has size 4, not 1
          --> test_axis.py:30:12 (squeeze_rows)
            |
         30 |     return np.squeeze(x, 0)
            |            ^^^^^^^^^^^^^^^^
        """,
    )
