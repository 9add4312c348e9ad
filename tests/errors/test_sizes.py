"""Sizes and counts that come from an argument."""

from __future__ import annotations

from typing import Any

import numpy as np

import mlirml as ml
from tests.errors.shown import check_error


def repeat(x: Any, n: Any) -> Any:
    for _ in range(n):
        x = x * 2
    return x


def zeros(n: Any) -> Any:
    return np.zeros(n)


def numbers(n: Any) -> Any:
    return np.arange(n)


def float_size(x: Any) -> Any:
    return np.zeros(len(x) / 2)


def negative_size(x: Any) -> Any:
    return np.zeros((2, len(x) - 10))


def test_range() -> None:
    check_error(
        lambda: ml.compile(repeat, frontend="trace")(np.ones(3), np.int64(4)),
        """
        mlirml.TracedValueError: `range()` needs the value of i64[], known only at run time
          --> test_sizes.py:14:14 (repeat)
            |
         14 |     for _ in range(n):
            |              ^^^^^^^^
           = help: loop with `ml.fori_loop`, or make the argument static (`static_argnums`)
        """,
    )


def test_zeros() -> None:
    check_error(
        lambda: ml.compile(zeros, frontend="trace")(np.int64(3)),
        """
        mlirml.ShapeError: an array whose length depends on the data
          --> test_sizes.py:20:12 (zeros)
            |
         20 |     return np.zeros(n)
            |            ^^^^^^^^^^^
           = help: this needs the source of the function and `frontend="auto"` or "loops"; or keep the shape: `np.where(condition, a, b)`
        """,  # noqa: E501
    )


def test_arange() -> None:
    check_error(
        lambda: ml.compile(numbers, frontend="trace")(np.int64(3)),
        """
        mlirml.ShapeError: an array whose length depends on the data
          --> test_sizes.py:24:12 (numbers)
            |
         24 |     return np.arange(n)
            |            ^^^^^^^^^^^^
           = help: this needs the source of the function and `frontend="auto"` or "loops"; or keep the shape: `np.where(condition, a, b)`
        """,  # noqa: E501
    )


def test_a_float() -> None:
    check_error(
        lambda: ml.compile(float_size)(np.ones(4)),
        """
        mlirml.ShapeError: shape: sizes must be integers, got (2.0,)
          --> test_sizes.py:28:12 (float_size)
            |
         28 |     return np.zeros(len(x) / 2)
            |            ^^^^^^^^^^^^^^^^^^^^
        """,
    )


def test_a_negative_size() -> None:
    check_error(
        lambda: ml.compile(negative_size)(np.ones(4)),
        """
        mlirml.ShapeError: shape: sizes cannot be negative, got [2, -6]
          --> test_sizes.py:32:12 (negative_size)
            |
         32 |     return np.zeros((2, len(x) - 10))
            |            ^^^^^^^^^^^^^^^^^^^^^^^^^^
        """,
    )
