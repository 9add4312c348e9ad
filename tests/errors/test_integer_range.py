"""Python integers that do not fit the dtype they meet."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mlirml as ml
from tests.errors.shown import check_error


def add_300(x: Any) -> Any:
    return x + 300


def store_300(x: Any) -> Any:
    x[0] = 300
    return x


def fill_300(x: Any) -> Any:
    return x + np.full(3, 300, np.uint8)


def add_any(x: Any, n: Any) -> Any:
    return x + n


def add_next(x: Any, n: Any) -> Any:
    return x + (n + 1)


def plain(n: Any) -> Any:
    return n + 1


def saturated(x: Any) -> Any:
    try:
        return x + 300
    except OverflowError:
        return x


def test_a_literal() -> None:
    check_error(
        lambda: ml.compile(add_300)(np.ones(3, np.uint8)),
        """
        mlirml.IntegerRangeError: add: Python integer 300 is out of bounds for u8
          --> test_integer_range.py:15:12 (add_300)
            |
         15 |     return x + 300
            |            ^^^^^^^
           = note: u8 holds the integers from 0 to 255
           = help: convert the array to a wider dtype with `x.astype(...)`
        """,
    )


def test_a_store() -> None:
    check_error(
        lambda: ml.compile(store_300)(np.ones(3, np.int8)),
        """
        mlirml.IntegerRangeError: assignment: Python integer 300 is out of bounds for i8
          --> test_integer_range.py:19:5 (store_300)
            |
         19 |     x[0] = 300
            |     ^^^^
           = note: i8 holds the integers from -128 to 127
           = help: convert the array to a wider dtype with `x.astype(...)`
        """,
    )


def test_a_filled_array() -> None:
    check_error(
        lambda: ml.compile(fill_300)(np.ones(3, np.uint8)),
        """
        mlirml.IntegerRangeError: fill: Python integer 300 is out of bounds for u8
          --> test_integer_range.py:24:16 (fill_300)
            |
         24 |     return x + np.full(3, 300, np.uint8)
            |                ^^^^^^^^^^^^^^^^^^^^^^^^^
           = note: u8 holds the integers from 0 to 255
           = help: convert the array to a wider dtype with `x.astype(...)`
        """,
    )


def test_an_argument() -> None:
    check_error(
        lambda: ml.compile(add_any)(np.ones(3, np.uint8), 300),
        """
        mlirml.IntegerRangeError: argument `n`: Python integer 300 is out of bounds for u8
          --> test_integer_range.py:28:12 (add_any)
            |
         28 |     return x + n
            |            ^^^^^
           = note: u8 holds the integers from 0 to 255
           = help: convert the array that it meets to a wider dtype, or pass a float
        """,
    )


def test_a_negative_argument() -> None:
    check_error(
        lambda: ml.compile(add_any, "reference")(np.ones(3, np.uint32), -1),
        """
        mlirml.IntegerRangeError: argument `n`: Python integer -1 is out of bounds for u32
          --> test_integer_range.py:28:12 (add_any)
            |
         28 |     return x + n
            |            ^^^^^
           = note: u32 holds the integers from 0 to 4294967295
           = help: convert the array that it meets to a wider dtype, or pass a float
        """,
    )


def test_a_computed_number() -> None:
    check_error(
        lambda: ml.compile(add_next)(np.ones(3, np.uint8), 5),
        """
        mlirml.DTypeError: a value computed from Python integers is narrowed to u8, and may not fit
          --> test_integer_range.py:32:12 (add_next)
            |
         32 |     return x + (n + 1)
            |            ^^^^^^^^^^^
           = help: convert it, `np.asarray(n).astype(np.uint8)`, or pass the argument as a NumPy scalar
        """,
    )


def test_more_than_64_bits() -> None:
    check_error(
        lambda: ml.compile(plain)(2**70),
        """
        mlirml.IntegerRangeError: argument `n`: Python integer 1180591620717411303424 is out of bounds for i64
          --> test_integer_range.py:35 (plain)
            |
         35 | def plain(n: Any) -> Any:
            | ^^^^^^^^^^^^^^^^^^^^^^^^^
           = note: i64 holds the integers from -9223372036854775808 to 9223372036854775807
           = help: pass a float
        """,
    )


def test_later_calls_are_checked_too() -> None:
    compiled = ml.compile(add_any)
    x = np.ones(3, np.uint8)
    np.testing.assert_array_equal(compiled(x, 254), np.full(3, 255))
    with pytest.raises(ml.IntegerRangeError, match="argument `n`: Python integer 256 is out of bounds for u8"):
        compiled(x, 256)
    np.testing.assert_array_equal(compiled(x, 0), x)


def test_it_is_an_overflow_error_as_in_numpy() -> None:
    x = np.ones(3, np.uint8)
    np.testing.assert_array_equal(ml.compile(saturated)(x), saturated(x))


def hashed(x: Any) -> Any:
    h = 17
    for v in x:
        h = (h * 31 + int(v)) & 0xFFFFFFFFFFFFFFFF
    return h


def test_a_mask_of_64_bits() -> None:
    check_error(
        lambda: ml.compile(hashed)(np.arange(4)),
        """
        mlirml.IntegerRangeError: bitwise_and: Python integer 18446744073709551615 is out of bounds for i64
          --> test_integer_range.py:167:13 (hashed)
             |
         167 |         h = (h * 31 + int(v)) & 0xFFFFFFFFFFFFFFFF
             |             ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
           = note: i64 holds the integers from -9223372036854775808 to 9223372036854775807
           = help: compute with unsigned integers, `np.uint64(...)`, or with a float
        """,
    )
