"""Operands that are no arrays, and dtypes that an operation does not know."""

from __future__ import annotations

from typing import Any

import numpy as np

import mlirml as ml
from tests.errors.shown import check_error


def add_text(x: Any) -> Any:
    return x + "a"


def add_nothing(x: Any) -> Any:
    return x + None


def add_masked(x: Any) -> Any:
    return x + np.ma.masked_array([1.0, 2.0, 3.0])


def and_floats(x: Any) -> Any:
    return (x > 0) & x


def negate(x: Any) -> Any:
    return -x


def to_unknown(x: Any) -> Any:
    return x.astype("float33")


def to_text(x: Any) -> Any:
    return x.astype("U5")


def mean_as_integers(x: Any) -> Any:
    return x.mean(dtype=int)


def test_a_string() -> None:
    check_error(
        lambda: ml.compile(add_text)(np.ones(3)),
        """
        mlirml.DTypeError: a str is no array or number: 'a'
          --> test_operand_types.py:14:12 (add_text)
            |
         14 |     return x + "a"
            |            ^^^^^^^
        """,
    )


def test_none() -> None:
    check_error(
        lambda: ml.compile(add_nothing)(np.ones(3)),
        """
        mlirml.DTypeError: a NoneType is no array or number: None
          --> test_operand_types.py:18:12 (add_nothing)
            |
         18 |     return x + None
            |            ^^^^^^^^
        """,
    )


def test_a_masked_array() -> None:
    check_error(
        lambda: ml.compile(add_masked)(np.ones(3)),
        """
        mlirml.DTypeError: a MaskedArray has an arithmetic of its own, which is not compiled
          --> test_operand_types.py:22:12 (add_masked)
            |
         22 |     return x + np.ma.masked_array([1.0, 2.0, 3.0])
            |            ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
           = help: use `np.asarray(x)`
        """,
    )


def test_bits_of_floats() -> None:
    check_error(
        lambda: ml.compile(and_floats)(np.ones(3)),
        """
        mlirml.DTypeError: bitwise_and: not defined for bool and f64, as in NumPy
          --> test_operand_types.py:26:12 (and_floats)
            |
         26 |     return (x > 0) & x
            |            ^^^^^^^^^^^
           = help: put comparisons in brackets, `(x > 0) & (y > 0)`, or convert with `.astype(int)`
        """,
    )


def test_the_negative_of_truth_values() -> None:
    check_error(
        lambda: ml.compile(negate)(np.ones(3, bool)),
        """
        mlirml.DTypeError: negative: not defined for bool, as in NumPy
          --> test_operand_types.py:30:12 (negate)
            |
         30 |     return -x
            |            ^^
           = help: negate truth values with `~x`
        """,
    )


def test_an_unknown_dtype() -> None:
    check_error(
        lambda: ml.compile(to_unknown)(np.ones(3)),
        """
        mlirml.DTypeError: 'float33' is no dtype
          --> test_operand_types.py:34:12 (to_unknown)
            |
         34 |     return x.astype("float33")
            |            ^^^^^^^^^^^^^^^^^^^
           = help: use one such as `np.float32`, or its name
        """,
    )


def test_a_dtype_that_is_not_compiled() -> None:
    check_error(
        lambda: ml.compile(to_text)(np.ones(3)),
        """
        mlirml.DTypeError: astype: dtype <U5 is not supported
          --> test_operand_types.py:38:12 (to_text)
            |
         38 |     return x.astype("U5")
            |            ^^^^^^^^^^^^^^
        """,
    )


def test_an_integer_mean() -> None:
    check_error(
        lambda: ml.compile(mean_as_integers)(np.ones(3)),
        """
        mlirml.DTypeError: mean: the result must be a float, not i64
          --> test_operand_types.py:42:12 (mean_as_integers)
            |
         42 |     return x.mean(dtype=int)
            |            ^^^^^^^^^^^^^^^^^
        """,
    )
