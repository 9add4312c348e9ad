"""The user gives `np.linalg` matrices that are not square, right sides that do not fit, and dtypes that it refuses."""

from __future__ import annotations

import numpy as np

import mlirml as ml
from tests.errors.shown import check_error


def solution(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.linalg.solve(a, b)


def test_matrices_that_are_not_square() -> None:
    check_error(
        lambda: ml.compile(solution)(np.ones((3, 2)), np.ones(3)),
        """
        mlirml.MatrixShapeError: solve: needs square matrices in the last two dimensions, not f64[3,2]
          --> test_linear_algebra.py:12:12 (solution)
            |
         12 |     return np.linalg.solve(a, b)
            |            ^^^^^^^^^^^^^^^^^^^^^
           = help: least squares are `np.linalg.lstsq(a, b)`
        """,
    )


def test_right_sides_that_do_not_fit() -> None:
    check_error(
        lambda: ml.compile(solution)(np.ones((3, 3)), np.ones(2)),
        """
        mlirml.ShapeError: solve: 3 equations, but f64[2] on the right side
          --> test_linear_algebra.py:12:12 (solution)
            |
         12 |     return np.linalg.solve(a, b)
            |            ^^^^^^^^^^^^^^^^^^^^^
        """,
    )


def test_half_precision() -> None:
    check_error(
        lambda: ml.compile(solution)(np.ones((3, 3), np.float16), np.ones(3)),
        """
        mlirml.DTypeError: solve: not defined for float16, as in NumPy
          --> test_linear_algebra.py:12:12 (solution)
            |
         12 |     return np.linalg.solve(a, b)
            |            ^^^^^^^^^^^^^^^^^^^^^
           = help: convert with `.astype(np.float32)`
        """,
    )


def test_a_singular_matrix() -> None:
    check_error(
        lambda: ml.compile(solution)(np.ones((3, 3)), np.ones(3)),
        """
        mlirml.LinAlgError: Singular matrix
          --> test_linear_algebra.py:12:12 (solution)
            |
         12 |     return np.linalg.solve(a, b)
            |            ^^^^^^^^^^^^^^^^^^^^^
        """,
    )
