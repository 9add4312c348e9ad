"""Subscripts that do not fit the operands of `np.einsum`."""

from __future__ import annotations

from typing import Any

import numpy as np

import mlirml as ml
from tests.errors.shown import check_error


def sizes(x: Any, y: Any) -> Any:
    return np.einsum("ij,jk->ik", x, y)


def letters(x: Any, y: Any) -> Any:
    return np.einsum("ij,jkl->ik", x, y)


def output(x: Any, y: Any) -> Any:
    return np.einsum("ij,jk->iz", x, y)


def count(x: Any, y: Any) -> Any:
    return np.einsum("ij->ji", x, y)


def axes(x: Any, y: Any) -> Any:
    return np.tensordot(x, y, axes=1)


def test_sizes() -> None:
    check_error(
        lambda: ml.compile(sizes)(np.ones((4, 8)), np.ones((7, 3))),
        """
        mlirml.ShapeError: einsum: letter 'j' of 'ij,jk->ik' has sizes 8 and 7
          --> test_einsum.py:14:12 (sizes)
            |
         14 |     return np.einsum("ij,jk->ik", x, y)
            |            ^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        """,
    )


def test_letters() -> None:
    check_error(
        lambda: ml.compile(letters)(np.ones((4, 8)), np.ones((7, 3))),
        """
        mlirml.ShapeError: einsum: subscript 'jkl' in 'ij,jkl->ik' does not fit f64[7,3]
          --> test_einsum.py:18:12 (letters)
            |
         18 |     return np.einsum("ij,jkl->ik", x, y)
            |            ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        """,
    )


def test_output() -> None:
    check_error(
        lambda: ml.compile(output)(np.ones((4, 8)), np.ones((7, 3))),
        """
        mlirml.ShapeError: einsum: the output 'iz' of 'ij,jk->iz' names a letter twice or one that no operand has
          --> test_einsum.py:22:12 (output)
            |
         22 |     return np.einsum("ij,jk->iz", x, y)
            |            ^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        """,
    )


def test_count() -> None:
    check_error(
        lambda: ml.compile(count)(np.ones((4, 8)), np.ones((7, 3))),
        """
        mlirml.ShapeError: einsum: 1 subscripts in 'ij->ji' for 2 operand(s)
          --> test_einsum.py:26:12 (count)
            |
         26 |     return np.einsum("ij->ji", x, y)
            |            ^^^^^^^^^^^^^^^^^^^^^^^^^
        """,
    )


def test_axes() -> None:
    check_error(
        lambda: ml.compile(axes)(np.ones((4, 8)), np.ones((7, 3))),
        """
        mlirml.ShapeError: tensordot: sizes differ along the axes 1 of f64[4,8] and 0 of f64[7,3]
          --> test_einsum.py:30:12 (axes)
            |
         30 |     return np.tensordot(x, y, axes=1)
            |            ^^^^^^^^^^^^^^^^^^^^^^^^^^
        """,
    )
