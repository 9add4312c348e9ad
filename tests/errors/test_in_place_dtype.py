"""Results that an array cannot hold in place."""

from __future__ import annotations

from typing import Any

import numpy as np

import mlirml as ml
from tests.errors.shown import check_error


def add_half(x: Any) -> Any:
    x += 0.5
    return x


def add_into(x: Any) -> Any:
    y = np.zeros(3, np.int32)
    return np.add(x, 1.5, out=y)


def test_an_augmented_assignment() -> None:
    check_error(
        lambda: ml.compile(add_half)(np.ones(3, np.int64)),
        """
        mlirml.DTypeError: cannot store f64[3] in place into i64[3]
          --> test_in_place_dtype.py:14:5 (add_half)
            |
         14 |     x += 0.5
            |     ^^^^^^^^
           = help: make a new array, `x = x + y`, or convert the result with `.astype(np.int64)`
        """,
    )


def test_out() -> None:
    check_error(
        lambda: ml.compile(add_into)(np.ones(3)),
        """
        mlirml.DTypeError: cannot store f64[3] in place into i32[3]
          --> test_in_place_dtype.py:20:12 (add_into)
            |
         20 |     return np.add(x, 1.5, out=y)
            |            ^^^^^^^^^^^^^^^^^^^^^
           = help: make a new array, `x = x + y`, or convert the result with `.astype(np.int32)`
        """,
    )
