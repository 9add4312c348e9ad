"""Matrix products whose sizes do not fit."""

from __future__ import annotations

from typing import Any

import numpy as np

import mlirml as ml
from tests.errors.shown import check_error


def product(x: Any, w: Any) -> Any:
    return x @ w


def dot(x: Any, w: Any) -> Any:
    return np.dot(x, w)


class Layer:
    def __init__(self, weights: np.ndarray) -> None:
        self.weights = weights


def layer(x: Any, parameters: Any) -> Any:
    return np.tanh(x) @ parameters["w"]


def test_inner_dimensions() -> None:
    check_error(
        lambda: ml.compile(product)(np.ones((4, 8), np.float32), np.ones((7, 3), np.float32)),
        """
        mlirml.ShapeError: matmul: inner dimensions differ, f32[4,8] @ f32[7,3]
          --> test_matmul.py:14:12 (product)
            |
         14 |     return x @ w
            |            ^^^^^
        """,
    )


def test_the_second_operand_is_transposed() -> None:
    check_error(
        lambda: ml.compile(product)(np.ones((4, 8), np.float32), np.ones((3, 8), np.float32)),
        """
        mlirml.ShapeError: matmul: inner dimensions differ, f32[4,8] @ f32[3,8]
          --> test_matmul.py:14:12 (product)
            |
         14 |     return x @ w
            |            ^^^^^
           = help: did you mean `x @ w.T`?
        """,
    )


def test_the_first_operand_is_transposed() -> None:
    check_error(
        lambda: ml.compile(product)(np.ones((4, 8)), np.ones(4)),
        """
        mlirml.ShapeError: matmul: inner dimensions differ, f64[4,8] @ f64[4]
          --> test_matmul.py:14:12 (product)
            |
         14 |     return x @ w
            |            ^^^^^
           = help: did you mean `x.T @ w`?
        """,
    )


def test_the_operands_are_swapped() -> None:
    check_error(
        lambda: ml.compile(product)(np.ones((4, 8)), np.ones((5, 4))),
        """
        mlirml.ShapeError: matmul: inner dimensions differ, f64[4,8] @ f64[5,4]
          --> test_matmul.py:14:12 (product)
            |
         14 |     return x @ w
            |            ^^^^^
           = help: did you mean `w @ x`?
        """,
    )


def test_operands_are_expressions() -> None:
    check_error(
        lambda: ml.compile(layer)(np.ones((4, 8)), {"w": np.ones((3, 8))}),
        """
        mlirml.ShapeError: matmul: inner dimensions differ, f64[4,8] @ f64[3,8]
          --> test_matmul.py:27:12 (layer)
            |
         27 |     return np.tanh(x) @ parameters["w"]
            |            ^^^^^^^^^^^^^^^^^^^^^^^^^^^^
           = help: did you mean `np.tanh(x) @ parameters['w'].T`?
        """,
    )


def test_stacks_of_matrices() -> None:
    check_error(
        lambda: ml.compile(product)(np.ones((2, 4, 8)), np.ones((2, 5, 8))),
        """
        mlirml.ShapeError: matmul: inner dimensions differ, f64[2,4,8] @ f64[2,5,8]
          --> test_matmul.py:14:12 (product)
            |
         14 |     return x @ w
            |            ^^^^^
           = help: did you mean `x @ w.mT`?
        """,
    )


def test_batches() -> None:
    check_error(
        lambda: ml.compile(product)(np.ones((3, 4, 8)), np.ones((2, 8, 5))),
        """
        mlirml.ShapeError: matmul: batch dimensions do not broadcast, f64[3,4,8] @ f64[2,8,5]
          --> test_matmul.py:14:12 (product)
            |
         14 |     return x @ w
            |            ^^^^^
        """,
    )


def test_a_scalar() -> None:
    check_error(
        lambda: ml.compile(product)(np.ones((4, 8)), 2.0),
        """
        mlirml.ShapeError: matmul: a scalar has no matrix product, f64[4,8] @ f64[]
          --> test_matmul.py:14:12 (product)
            |
         14 |     return x @ w
            |            ^^^^^
           = help: use `*` to scale an array
        """,
    )


def test_dot() -> None:
    check_error(
        lambda: ml.compile(dot)(np.ones((4, 8)), np.ones((3, 8))),
        """
        mlirml.ShapeError: dot: inner dimensions differ, f64[4,8] and f64[3,8]
          --> test_matmul.py:18:12 (dot)
            |
         18 |     return np.dot(x, w)
            |            ^^^^^^^^^^^^
           = help: did you mean `x @ w.T`?
        """,
    )
