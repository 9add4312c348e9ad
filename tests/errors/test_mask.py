"""Masks choose as many elements as the data decide."""

from __future__ import annotations

from typing import Any

import numpy as np

import mlirml as ml
from tests.errors.shown import check_error


def chosen(x: Any) -> Any:
    return x[x > 0]


def store_array(x: Any, y: Any) -> Any:
    x[x > 0] = y
    return x


def store_with_other_mask(x: Any, mask: Any) -> Any:
    x[mask] = 0
    return x


def part_of_index(x: Any) -> Any:
    return x[0, x[0] > 0]


def test_a_mask_as_index() -> None:
    check_error(
        lambda: ml.compile(chosen)(np.ones((4, 8), np.float32)),
        """
        mlirml.ShapeError: indexing with a mask: the shape of the result would depend on the data
          --> test_mask.py:14:12 (chosen)
            |
         14 |     return x[x > 0]
            |            ^^^^^^^^
           = help: keep the shape with `np.where(mask, x, 0)`; to change elements, `x[mask] = value` for a number, or `x[:] = np.where(mask, new, x)`
        """,  # noqa: E501
    )


def test_an_array_stored_through_a_mask() -> None:
    check_error(
        lambda: ml.compile(store_array)(np.ones(4), np.ones(3)),
        """
        mlirml.ShapeError: storing an array through a mask: the length that it needs would depend on the data
          --> test_mask.py:18:5 (store_array)
            |
         18 |     x[x > 0] = y
            |     ^^^^^^^^
           = help: write `x[...] = np.where(mask, value, x)` with a value of the shape of x
        """,
    )


def test_a_mask_of_another_shape() -> None:
    check_error(
        lambda: ml.compile(store_with_other_mask)(np.ones((4, 8), np.float32), np.ones(3, bool)),
        """
        mlirml.InvalidIndexError: a mask of shape [3] does not fit an array of shape [4, 8]
          --> test_mask.py:23:5 (store_with_other_mask)
            |
         23 |     x[mask] = 0
            |     ^^^^^^^
           = help: a mask has the shape of the array, or that of the dimensions that it stands for
        """,
    )


def test_a_mask_in_a_tuple() -> None:
    check_error(
        lambda: ml.compile(part_of_index)(np.ones((4, 8), np.float32)),
        """
        mlirml.ShapeError: indexing with a mask: the shape of the result would depend on the data
          --> test_mask.py:28:12 (part_of_index)
            |
         28 |     return x[0, x[0] > 0]
            |            ^^^^^^^^^^^^^^
           = help: keep the shape with `np.where(mask, x, 0)`; to change elements, `x[mask] = value` for a number, or `x[:] = np.where(mask, new, x)`
        """,  # noqa: E501
    )
