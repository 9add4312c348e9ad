"""Shapes of another size."""

from __future__ import annotations

from typing import Any

import numpy as np

import mlirml as ml
from tests.errors.shown import check_error


def to_5_by_7(x: Any) -> Any:
    return x.reshape(5, 7)


def to_3_by_any(x: Any) -> Any:
    return np.reshape(x, (3, -1))


def to_any_by_any(x: Any) -> Any:
    return x.reshape(-1, -1)


def to_halves(x: Any) -> Any:
    return x.reshape(len(x) / 2, 2)


def in_memory_order(x: Any) -> Any:
    return x.reshape((8, 4), order="A")


def test_sizes_differ() -> None:
    check_error(
        lambda: ml.compile(to_5_by_7)(np.ones((4, 8), np.float32)),
        """
        mlirml.ShapeError: reshape: shape [4, 8] has 32 elements, [5, 7] has 35
          --> test_reshape.py:14:12 (to_5_by_7)
            |
         14 |     return x.reshape(5, 7)
            |            ^^^^^^^^^^^^^^^
        """,
    )


def test_no_size_fits() -> None:
    check_error(
        lambda: ml.compile(to_3_by_any)(np.ones((4, 8), np.float32)),
        """
        mlirml.ShapeError: reshape: the 32 elements of shape [4, 8] do not divide into [3, -1]
          --> test_reshape.py:18:12 (to_3_by_any)
            |
         18 |     return np.reshape(x, (3, -1))
            |            ^^^^^^^^^^^^^^^^^^^^^^
        """,
    )


def test_two_sizes_are_open() -> None:
    check_error(
        lambda: ml.compile(to_any_by_any)(np.ones((4, 8), np.float32)),
        """
        mlirml.ShapeError: reshape: [-1, -1] is no shape; at most one size may be -1
          --> test_reshape.py:22:12 (to_any_by_any)
            |
         22 |     return x.reshape(-1, -1)
            |            ^^^^^^^^^^^^^^^^^
        """,
    )


def test_a_size_is_a_float() -> None:
    check_error(
        lambda: ml.compile(to_halves)(np.ones((4, 8), np.float32)),
        """
        mlirml.ShapeError: reshape: the shape must be integers, got (2.0, 2)
          --> test_reshape.py:26:12 (to_halves)
            |
         26 |     return x.reshape(len(x) / 2, 2)
            |            ^^^^^^^^^^^^^^^^^^^^^^^^
        """,
    )


def test_the_order_of_elements() -> None:
    check_error(
        lambda: ml.compile(in_memory_order)(np.ones((4, 8), np.float32)),
        """
        mlirml.UnsupportedSyntaxError: reshape: order='A' is not compiled: it depends on how the array lies in memory
          --> test_reshape.py:30:12 (in_memory_order)
            |
         30 |     return x.reshape((8, 4), order="A")
            |            ^^^^^^^^^^^^^^^^^^^^^^^^^^^^
           = help: order='C' goes row by row, order='F' column by column
        """,
    )
