"""Results whose shape would depend on the data."""

from __future__ import annotations

from typing import Any

import numpy as np

import mlirml as ml
from tests.errors.shown import check_error


def nonzero(x: Any) -> Any:
    return np.nonzero(x)


def nonzero_method(x: Any) -> Any:
    return x.nonzero()


def unique(x: Any) -> Any:
    return np.unique(x)


def where(x: Any) -> Any:
    return np.where(x > 0)


def positions(x: Any) -> Any:
    return np.argwhere(x)


def extracted(x: Any) -> Any:
    return np.extract(x > 0, x)


def test_nonzero() -> None:
    check_error(
        lambda: ml.compile(nonzero)(np.ones(3)),
        """
        mlirml.ShapeError: `np.nonzero`: the shape of the result would depend on the data
          --> test_data_dependent.py:14:12 (nonzero)
            |
         14 |     return np.nonzero(x)
            |            ^^^^^^^^^^^^^
           = help: use the condition itself: `np.where(condition, a, b)`, or count with `np.count_nonzero(x)`
        """,
    )


def test_the_method_nonzero() -> None:
    check_error(
        lambda: ml.compile(nonzero_method)(np.ones(3)),
        """
        mlirml.ShapeError: `np.nonzero`: the shape of the result would depend on the data
          --> test_data_dependent.py:18:12 (nonzero_method)
            |
         18 |     return x.nonzero()
            |            ^^^^^^^^^^^
           = help: use the condition itself: `np.where(condition, a, b)`, or count with `np.count_nonzero(x)`
        """,
    )


def test_unique() -> None:
    check_error(
        lambda: ml.compile(unique)(np.ones(3)),
        """
        mlirml.ShapeError: `np.unique`: the shape of the result would depend on the data
          --> test_data_dependent.py:22:12 (unique)
            |
         22 |     return np.unique(x)
            |            ^^^^^^^^^^^^
           = help: call it outside, and pass its result as an argument
        """,
    )


def test_where_with_a_condition_only() -> None:
    check_error(
        lambda: ml.compile(where)(np.ones(3)),
        """
        mlirml.ShapeError: where: with a condition only, the shape of the result would depend on the data
          --> test_data_dependent.py:26:12 (where)
            |
         26 |     return np.where(x > 0)
            |            ^^^^^^^^^^^^^^^
           = help: give both values: `np.where(condition, x, y)`
        """,
    )


def test_argwhere() -> None:
    check_error(
        lambda: ml.compile(positions)(np.ones(3)),
        """
        mlirml.ShapeError: `np.argwhere`: the shape of the result would depend on the data
          --> test_data_dependent.py:30:12 (positions)
            |
         30 |     return np.argwhere(x)
            |            ^^^^^^^^^^^^^^
           = help: use the condition itself: `np.where(condition, a, b)`, or count with `np.count_nonzero(x)`
        """,
    )


def test_extract() -> None:
    check_error(
        lambda: ml.compile(extracted)(np.ones(3)),
        """
        mlirml.ShapeError: `np.extract`: the shape of the result would depend on the data
          --> test_data_dependent.py:34:12 (extracted)
            |
         34 |     return np.extract(x > 0, x)
            |            ^^^^^^^^^^^^^^^^^^^^
           = help: keep the shape: `np.where(condition, x, 0)`
        """,
    )
