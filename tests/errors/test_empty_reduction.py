"""Extrema of nothing."""

from __future__ import annotations

from typing import Any

import numpy as np

import mlirml as ml
from tests.errors.shown import check_error


def maximum(x: Any) -> Any:
    return np.max(x, axis=0)


def position(x: Any) -> Any:
    return x.argmin()


def test_max() -> None:
    check_error(
        lambda: ml.compile(maximum)(np.ones((0, 3))),
        """
        mlirml.ShapeError: max: no elements to choose from, f64[0,3] is empty along the axis
          --> test_empty_reduction.py:14:12 (maximum)
            |
         14 |     return np.max(x, axis=0)
            |            ^^^^^^^^^^^^^^^^^
           = help: give the value for this case: `initial=...`
        """,
    )


def test_argmin() -> None:
    check_error(
        lambda: ml.compile(position)(np.ones((0, 3))),
        """
        mlirml.ShapeError: argmin: no elements to choose from, f64[0] is empty along the axis
          --> test_empty_reduction.py:18:12 (position)
            |
         18 |     return x.argmin()
            |            ^^^^^^^^^^
        """,
    )
