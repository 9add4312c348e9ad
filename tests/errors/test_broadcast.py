"""Operands whose shapes do not broadcast."""

from __future__ import annotations

from typing import Any

import numpy as np

import mlirml as ml
from tests.errors.shown import check_error


def f(x: Any, y: Any) -> Any:
    z = 2 * x
    return z + y


def test_operands_that_do_not_broadcast() -> None:
    check_error(
        lambda: ml.compile(f)(np.ones((4, 8), np.float32), np.ones(7, np.float32)),
        """
        mlirml.ShapeError: add: shapes do not broadcast, f32[4,8] and f32[7]
          --> test_broadcast.py:15:12 (f)
            |
         15 |     return z + y
            |            ^^^^^
           = help: sizes must be equal or 1, counted from the last dimension; add axes with `x[:, None]`
        """,
    )
