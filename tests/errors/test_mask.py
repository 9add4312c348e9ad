"""Masks choose as many elements as the data decide."""

from __future__ import annotations

from typing import Any

import numpy as np

import mlirml as ml
from tests.errors.shown import check_error


def store_array(x: Any, y: Any) -> Any:
    x[x > 0] = y
    return x


def store_with_other_mask(x: Any, mask: Any) -> Any:
    x[mask] = 0
    return x


def test_an_array_stored_through_a_mask() -> None:
    check_error(
        lambda: ml.compile(store_array)(np.ones(4), np.ones(3)),
        """
        mlirml.ShapeError: assignment: the mask picks another number of elements than there are in f64[3]
          --> test_mask.py:14:5 (store_array)
            |
         14 |     x[x > 0] = y
            |     ^^^^^^^^
           = help: `x[...] = np.where(mask, value, x)` takes a value of the shape of x
        """,
    )


def test_a_mask_of_another_shape() -> None:
    check_error(
        lambda: ml.compile(store_with_other_mask)(np.ones((4, 8), np.float32), np.ones(3, bool)),
        """
        mlirml.InvalidIndexError: a mask of shape [3] does not fit an array of shape [4, 8]
          --> test_mask.py:19:5 (store_with_other_mask)
            |
         19 |     x[mask] = 0
            |     ^^^^^^^
           = help: a mask has the shape of the array, or that of the dimensions that it indexes
        """,
    )


def largest_of_none(x: Any) -> Any:
    return x[x > 9].max()


def between_masks(x: Any) -> Any:
    x[x > 0] = x[x > 1]
    return x


def with_an_array(x: Any, y: Any) -> Any:
    return np.sum(x[x > 0] + y)


def test_the_largest_of_no_elements() -> None:
    check_error(
        lambda: ml.compile(largest_of_none)(np.ones(4)),
        """
        mlirml.ShapeError: max: the mask picks no element
          --> test_mask.py:52:12 (largest_of_none)
            |
         52 |     return x[x > 9].max()
            |            ^^^^^^^^^^^^^^
           = help: give `initial=...`
        """,
    )


def test_what_masks_that_differ_pick() -> None:
    check_error(
        lambda: ml.compile(between_masks)(np.ones(4)),
        """
        mlirml.ShapeError: what one mask picks is combined with what another one picks, and the masks differ
          --> test_mask.py:56:5 (between_masks)
            |
         56 |     x[x > 0] = x[x > 1]
            |     ^^^^^^^^
           = help: compute the mask once, `mask = x > 0`, and use it for all of them
        """,
    )


def test_an_array_beside_what_a_mask_picks() -> None:
    check_error(
        lambda: ml.compile(with_an_array)(np.ones(4), np.ones(2)),
        """
        mlirml.ShapeError: slices of different lengths are combined
          --> test_mask.py:61:19 (with_an_array)
            |
         61 |     return np.sum(x[x > 0] + y)
            |                   ^^^^^^^^^^^^
        """,
    )
