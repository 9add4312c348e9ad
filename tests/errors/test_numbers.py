"""Conversions to Python numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

import mlirml as ml
from tests.errors.shown import check_error


def to_float(x: Any) -> Any:
    return float(x)


def to_int(x: Any) -> Any:
    return int(x[0])


def rounded(x: Any) -> Any:
    return round(x)


def item(x: Any) -> Any:
    return x.item()


def to_list(x: Any) -> Any:
    return x.tolist()


def numpy_scalar(x: Any) -> Any:
    return np.float32(x)


def test_float() -> None:
    check_error(
        lambda: ml.compile(to_float, frontend="trace")(2.0),
        """
        mlirml.TracedValueError: `float()` needs the value of f64[], known only at run time
          --> test_numbers.py:14:12 (to_float)
            |
         14 |     return float(x)
            |            ^^^^^^^^
           = help: compute with the array itself, or convert it with `x.astype(float)`
        """,
    )


def test_int() -> None:
    check_error(
        lambda: ml.compile(to_int, frontend="trace")(np.ones(3)),
        """
        mlirml.TracedValueError: `int()` needs the value of f64[], known only at run time
          --> test_numbers.py:18:12 (to_int)
            |
         18 |     return int(x[0])
            |            ^^^^^^^^^
           = help: compute with the array itself, or convert it with `x.astype(int)`
        """,
    )


def test_round() -> None:
    check_error(
        lambda: ml.compile(rounded, frontend="trace")(2.5),
        """
        mlirml.TracedValueError: `round()` needs the value of f64[], known only at run time
          --> test_numbers.py:22:12 (rounded)
            |
         22 |     return round(x)
            |            ^^^^^^^^
           = help: use `np.rint(x)`
        """,
    )


def test_item() -> None:
    check_error(
        lambda: ml.compile(item)(np.ones(1, np.uint64)),
        """
        mlirml.TracedValueError: `.item()` needs the value of u64[1], known only at run time
          --> test_numbers.py:26:12 (item)
            |
         26 |     return x.item()
            |            ^^^^^^
           = help: compute with the array itself; return it to see its value
        """,
    )


def test_tolist() -> None:
    check_error(
        lambda: ml.compile(to_list)(np.ones(300)),
        """
        mlirml.TracedValueError: `.tolist()` needs the value of f64[300], known only at run time
          --> test_numbers.py:30:12 (to_list)
            |
         30 |     return x.tolist()
            |            ^^^^^^^^
           = help: compute with the array itself; return it to see its value
        """,
    )


def test_item_of_several() -> None:
    check_error(
        lambda: ml.compile(item)(np.ones(2)),
        """
        mlirml.ShapeError: can only convert an array of size 1 to a Python scalar
          --> test_numbers.py:26:12 (item)
            |
         26 |     return x.item()
            |            ^^^^^^^^
        """,
    )


def test_a_numpy_scalar() -> None:
    check_error(
        lambda: ml.compile(numpy_scalar, frontend="trace")(np.ones(3)),
        """
        mlirml.TracedValueError: `np.float32()` needs the value of f64[3], known only at run time
          --> test_numbers.py:34:12 (numpy_scalar)
            |
         34 |     return np.float32(x)
            |            ^^^^^^^^^^^^^
           = help: convert with `x.astype(np.float32)`
        """,
    )
