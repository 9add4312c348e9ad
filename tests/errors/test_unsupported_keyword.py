"""Arguments of NumPy functions that are not compiled."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mlirml as ml
from tests.errors.shown import check_error


def add_where(x: Any) -> Any:
    return np.add(x, 1, where=x > 0)


def add_in_order(x: Any) -> Any:
    return np.add(x, 1, order="F")


def sums_where(x: Any) -> Any:
    return np.add(x, x, where=x > 0)


def unknown(x: Any) -> Any:
    return x.sum(0, axes=1)


def misspelt(x: Any) -> Any:
    return np.sum(x, axes=0)


def test_where() -> None:
    check_error(
        lambda: ml.compile(add_where)(np.ones(3)),
        """
        mlirml.UnsupportedSyntaxError: `np.add`: with `where` and without `out` elements are left without a value
          --> test_unsupported_keyword.py:15:12 (add_where)
            |
         15 |     return np.add(x, 1, where=x > 0)
            |            ^^^^^^^^^^^^^^^^^^^^^^^^^
           = help: give `out=np.zeros_like(x)`, or select with `np.where`
        """,
    )


def test_order() -> None:
    check_error(
        lambda: ml.compile(add_in_order)(np.ones(3)),
        """
        mlirml.UnsupportedSyntaxError: `np.add`: the argument `order` is not compiled
          --> test_unsupported_keyword.py:19:12 (add_in_order)
            |
         19 |     return np.add(x, 1, order="F")
            |            ^^^^^^^^^^^^^^^^^^^^^^^
           = help: results are in C order
        """,
    )


def test_where_of_a_ufunc() -> None:
    check_error(
        lambda: ml.compile(sums_where)(np.ones(3)),
        """
        mlirml.UnsupportedSyntaxError: `np.add`: with `where` and without `out` elements are left without a value
          --> test_unsupported_keyword.py:23:12 (sums_where)
            |
         23 |     return np.add(x, x, where=x > 0)
            |            ^^^^^^^^^^^^^^^^^^^^^^^^^
           = help: give `out=np.zeros_like(x)`, or select with `np.where`
        """,
    )


def test_an_unknown_argument() -> None:
    check_error(
        lambda: ml.compile(unknown)(np.ones(3)),
        """
        mlirml.UnsupportedSyntaxError: `np.sum`: got an unexpected keyword argument 'axes'
          --> test_unsupported_keyword.py:27:12 (unknown)
            |
         27 |     return x.sum(0, axes=1)
            |            ^^^^^^^^^^^^^^^^
           = help: compiled are a, axis, dtype, keepdims, initial, where
        """,
    )


def test_what_numpy_itself_refuses_is_left_to_numpy() -> None:
    with pytest.raises(TypeError, match="unexpected keyword argument 'axes'"):
        ml.compile(misspelt)(np.ones(3))
