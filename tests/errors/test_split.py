"""Parts that an array does not divide into."""

from __future__ import annotations

from typing import Any

import numpy as np

import mlirml as ml
from tests.errors.shown import check_error


def thirds(x: Any) -> Any:
    return np.split(x, 3)


def stretch(x: Any) -> Any:
    return np.broadcast_to(x, (3, 8))


def test_unequal_parts() -> None:
    check_error(
        lambda: ml.compile(thirds)(np.ones((4, 8), np.float32)),
        """
        mlirml.ShapeError: split: 4 elements along axis 0 do not divide into 3 equal parts
          --> test_split.py:14:12 (thirds)
            |
         14 |     return np.split(x, 3)
            |            ^^^^^^^^^^^^^^
        """,
    )


def test_a_shape_that_does_not_stretch() -> None:
    check_error(
        lambda: ml.compile(stretch)(np.ones((4, 8), np.float32)),
        """
        mlirml.ShapeError: broadcast_to: shape [4, 8] does not stretch to [3, 8]
          --> test_split.py:18:12 (stretch)
            |
         18 |     return np.broadcast_to(x, (3, 8))
            |            ^^^^^^^^^^^^^^^^^^^^^^^^^^
        """,
    )
