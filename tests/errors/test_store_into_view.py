"""Views that cannot be stored into."""

from __future__ import annotations

from typing import Any

import numpy as np

import mlirml as ml
from tests.errors.shown import check_error


def into_broadcast(x: Any) -> Any:
    y = np.broadcast_to(x, (2, 3))
    y[0] = 1
    return y


def into_reshaped(x: Any) -> Any:
    y = (x.T + 1).reshape(9)
    y[0] = 1
    return y


def test_a_broadcast_array() -> None:
    check_error(
        lambda: ml.compile(into_broadcast)(np.ones(3)),
        """
        mlirml.ShapeError: assignment destination is read-only: a broadcast view
          --> test_store_into_view.py:15:5 (into_broadcast)
            |
         15 |     y[0] = 1
            |     ^^^^
           = help: take a `.copy()` first
        """,
    )


def test_a_reshaped_array_that_may_be_a_copy() -> None:
    check_error(
        lambda: ml.compile(into_reshaped)(np.ones((3, 3))),
        """
        mlirml.CaptureError: a store meets a reshaped array of which NumPy may or may not have made a copy
          --> test_store_into_view.py:21:5 (into_reshaped)
            |
         21 |     y[0] = 1
            |     ^^^^
           = help: take a `.copy()` before storing, or store into the array before reshaping it
        """,
    )
