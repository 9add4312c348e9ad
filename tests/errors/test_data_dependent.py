"""Arrays whose lengths depend on the data, where their lengths are needed when a function is traced."""

from __future__ import annotations

from typing import Any

import numpy as np

import mlirml as ml
from tests.errors.shown import check_error


def of_a_number(x: Any) -> Any:
    return np.nonzero(x.sum())


def packed(x: Any) -> Any:
    return np.packbits(x[x > 0] > 1)


def different(x: Any) -> Any:
    return x[x > 0] * np.flatnonzero(x > 1)


def interpolated(x: Any) -> Any:
    return np.interp(x, x[x > 0], x[x > 0])


def repeated(x: Any, n: Any) -> Any:
    return np.repeat(x, n)


def unique_rows(x: Any) -> Any:
    return np.unique(x, axis=0)


def far(x: Any) -> Any:
    return x[x > 0][2]


def largest(x: Any) -> Any:
    return np.sort(x[x > 0]).max()


def batch(x: Any) -> Any:
    return ml.vmap(lambda row: np.flatnonzero(row > 0))(x)


def long_condition(x: Any) -> Any:
    return np.compress(x > 0, x[:2])


X = np.array([1.0, 0.5, -1.0])


def test_of_a_number() -> None:
    check_error(
        lambda: ml.compile(of_a_number)(X),
        """
        mlirml.ShapeError: nonzero: needs an array of 1 dimension or more
          --> test_data_dependent.py:14:12 (of_a_number)
            |
         14 |     return np.nonzero(x.sum())
            |            ^^^^^^^^^^^^^^^^^^^
           = help: use `np.atleast_1d(x)`
        """,
    )


def test_packed() -> None:
    check_error(
        lambda: ml.compile(packed)(X),
        """
        mlirml.UnsupportedSyntaxError: the length of a slice is known only at run time, and `np.packbits` would need it
          --> test_data_dependent.py:18:12 (packed)
            |
         18 |     return np.packbits(x[x > 0] > 1)
            |            ^^^^^^^^^^^^^^^^^^^^^^^^^
           = help: write a loop over the elements, or slices of one length, as in `x[i : i + 3]`
        """,
    )


def test_different() -> None:
    check_error(
        lambda: ml.compile(different)(X),
        """
        mlirml.ShapeError: slices of different lengths are combined
          --> test_data_dependent.py:22:12 (different)
            |
         22 |     return x[x > 0] * np.flatnonzero(x > 1)
            |            ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        """,
    )


def test_interpolated() -> None:
    check_error(
        lambda: ml.compile(interpolated)(-X[:2]),
        """
        mlirml.ShapeError: interp: no points to interpolate between
          --> test_data_dependent.py:26:12 (interpolated)
            |
         26 |     return np.interp(x, x[x > 0], x[x > 0])
            |            ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        """,
    )


def test_repeated() -> None:
    check_error(
        lambda: ml.compile(repeated)(X, np.array([1, -2, 3])),
        """
        mlirml.ShapeError: repeat: repeats cannot be negative
          --> test_data_dependent.py:30:12 (repeated)
            |
         30 |     return np.repeat(x, n)
            |            ^^^^^^^^^^^^^^^
        """,
    )


def test_unique_rows() -> None:
    check_error(
        lambda: ml.compile(unique_rows)(np.ones((2, 2))),
        """
        mlirml.UnsupportedSyntaxError: unique: `axis` is not compiled
          --> test_data_dependent.py:34:12 (unique_rows)
            |
         34 |     return np.unique(x, axis=0)
            |            ^^^^^^^^^^^^^^^^^^^^
           = help: compare the rows outside
        """,
    )


def test_far() -> None:
    check_error(
        lambda: ml.compile(far)(X),
        """
        mlirml.IndexOutOfBoundsError: the index is out of bounds for a slice of changing length
          --> test_data_dependent.py:38:12 (far)
            |
         38 |     return x[x > 0][2]
            |            ^^^^^^^^^^^
        """,
    )


def test_largest() -> None:
    check_error(
        lambda: ml.compile(largest)(-np.abs(X)),
        """
        mlirml.ShapeError: np.max: the array is empty, which has no such element
          --> test_data_dependent.py:42:12 (largest)
            |
         42 |     return np.sort(x[x > 0]).max()
            |            ^^^^^^^^^^^^^^^^^^^^^^^
        """,
    )


def test_batch() -> None:
    check_error(
        lambda: ml.compile(batch)(np.ones((2, 3))),
        """
        mlirml.ShapeError: result is a slice whose length is known only at run time
          --> test_data_dependent.py:46:32 (<lambda>)
            |
         46 |     return ml.vmap(lambda row: np.flatnonzero(row > 0))(x)
            |                                ^^^^^^^^^^^^^^^^^^^^^^^
           = help: return the array and the length
        """,
    )


def test_long_condition() -> None:
    check_error(
        lambda: ml.compile(long_condition)(X),
        """
        mlirml.ShapeError: compress: the condition has 3 elements, the array 2 along axis 0
          --> test_data_dependent.py:50:12 (long_condition)
            |
         50 |     return np.compress(x > 0, x[:2])
            |            ^^^^^^^^^^^^^^^^^^^^^^^^^
           = help: shorten the condition
        """,
    )
