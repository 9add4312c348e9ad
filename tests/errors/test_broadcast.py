"""Operands whose shapes do not broadcast."""

from __future__ import annotations

from typing import Any

import numpy as np

import mlirml as ml
from tests.errors.shown import check_error


def add(x: Any, y: Any) -> Any:
    z = 2 * x
    return z + y


def select(x: Any, y: Any) -> Any:
    return np.where(x > 0, x, y)


def add_in_place(x: Any, y: Any) -> Any:
    x += y
    return x


def test_operands_that_do_not_broadcast() -> None:
    check_error(
        lambda: ml.compile(add)(np.ones((4, 8), np.float32), np.ones(7, np.float32)),
        """
        mlirml.ShapeError: add: shapes do not broadcast, f32[4,8] and f32[7]
          --> test_broadcast.py:15:12 (add)
            |
         15 |     return z + y
            |            ^^^^^
           = help: sizes must be equal or 1, counted from the last dimension; add axes with `x[:, None]`
        """,
    )


def test_an_axis_is_missing() -> None:
    check_error(
        lambda: ml.compile(add)(np.ones((4, 8), np.float32), np.ones(4, np.float32)),
        """
        mlirml.ShapeError: add: shapes do not broadcast, f32[4,8] and f32[4]
          --> test_broadcast.py:15:12 (add)
            |
         15 |     return z + y
            |            ^^^^^
           = help: did you mean `y[..., None]`?
        """,
    )


def test_three_operands() -> None:
    check_error(
        lambda: ml.compile(select)(np.ones((4, 8), np.float32), np.ones((7, 3), np.float32)),
        """
        mlirml.ShapeError: where: shapes do not broadcast, bool[4,8] and f32[4,8] and f32[7,3]
          --> test_broadcast.py:19:12 (select)
            |
         19 |     return np.where(x > 0, x, y)
            |            ^^^^^^^^^^^^^^^^^^^^^
           = help: sizes must be equal or 1, counted from the last dimension; add axes with `x[:, None]`
        """,
    )


def test_in_place() -> None:
    check_error(
        lambda: ml.compile(add_in_place)(np.ones(3), np.ones((2, 3))),
        """
        mlirml.ShapeError: assignment: f64[2,3] does not broadcast to f64[3]
          --> test_broadcast.py:23:5 (add_in_place)
            |
         23 |     x += y
            |     ^^^^^^
           = help: sizes must be equal or 1, counted from the last dimension; add axes with `x[:, None]`
        """,
    )
