"""Arrays of several shapes cannot be stacked."""

from __future__ import annotations

from typing import Any

import numpy as np

import mlirml as ml
from tests.errors.shown import check_error


def stack(x: Any, y: Any) -> Any:
    return np.stack([x, y])


def nested_lists(x: Any) -> Any:
    return np.array([[x[0], x[1]], [x[2]]])


def test_shapes_differ() -> None:
    check_error(
        lambda: ml.compile(stack)(np.ones((4, 8), np.float32), np.ones(8, np.float32)),
        """
        mlirml.ShapeError: stack: shapes differ, f32[4,8], f32[8]
          --> test_stack.py:14:12 (stack)
            |
         14 |     return np.stack([x, y])
            |            ^^^^^^^^^^^^^^^^
        """,
    )


def test_ragged_lists() -> None:
    check_error(
        lambda: ml.compile(nested_lists)(np.ones(3)),
        """
        mlirml.ShapeError: stack: shapes differ, f64[2], f64[1]
          --> test_stack.py:18:12 (nested_lists)
            |
         18 |     return np.array([[x[0], x[1]], [x[2]]])
            |            ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        """,
    )
