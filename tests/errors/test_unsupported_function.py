"""NumPy functions that are not compiled."""

from __future__ import annotations

from typing import Any

import numpy as np

import mlirml as ml
from tests.errors.shown import check_error


def quotient(x: Any) -> Any:
    return np.polydiv(x, x)


def slopes(x: Any) -> Any:
    return np.polyder(x)


def product(x: Any) -> Any:
    return np.polymul(x, x)


def lower_places(x: Any) -> Any:
    return np.tril_indices_from(x)


def bits(x: Any) -> Any:
    return x.view(np.int64)


def accumulated(x: Any) -> Any:
    return np.subtract.accumulate(x)


def added_at(x: Any) -> Any:
    np.negative.at(x, 0)
    return x


def test_a_quotient_of_polynomials() -> None:
    check_error(
        lambda: ml.compile(quotient)(np.ones(3)),
        """
        mlirml.UnsupportedSyntaxError: `np.polydiv` is not compiled
          --> test_unsupported_function.py:14:12 (quotient)
            |
         14 |     return np.polydiv(x, x)
            |            ^^^^^^^^^^^^^^^^
           = help: call it outside, and pass its result as an argument; compiled functions with a similar name: np.poly
        """,
    )


def test_a_derivative_of_a_polynomial() -> None:
    check_error(
        lambda: ml.compile(slopes)(np.ones(3)),
        """
        mlirml.UnsupportedSyntaxError: `np.polyder` is not compiled
          --> test_unsupported_function.py:18:12 (slopes)
            |
         18 |     return np.polyder(x)
            |            ^^^^^^^^^^^^^
           = help: call it outside, and pass its result as an argument; compiled functions with a similar name: np.poly
        """,
    )


def test_a_product_of_polynomials() -> None:
    check_error(
        lambda: ml.compile(product)(np.ones(3)),
        """
        mlirml.UnsupportedSyntaxError: `np.polymul` is not compiled
          --> test_unsupported_function.py:22:12 (product)
            |
         22 |     return np.polymul(x, x)
            |            ^^^^^^^^^^^^^^^^
           = help: call it outside, and pass its result as an argument; compiled functions with a similar name: np.poly
        """,
    )


def test_a_similar_name() -> None:
    check_error(
        lambda: ml.compile(lower_places)(np.ones((3, 3))),
        """
        mlirml.UnsupportedSyntaxError: `np.tril_indices_from` is not compiled
          --> test_unsupported_function.py:26:12 (lower_places)
            |
         26 |     return np.tril_indices_from(x)
            |            ^^^^^^^^^^^^^^^^^^^^^^^
           = help: call it outside, and pass its result as an argument; compiled functions with a similar name: np.tril
        """,
    )


def test_a_method() -> None:
    check_error(
        lambda: ml.compile(bits)(np.ones((3, 3))),
        """
        mlirml.UnsupportedSyntaxError: the array attribute `.view` is not compiled
          --> test_unsupported_function.py:30:12 (bits)
            |
         30 |     return x.view(np.int64)
            |            ^^^^^^
           = help: convert with `x.astype(...)`; the bytes of an array cannot be read as another dtype
        """,
    )


def test_accumulate() -> None:
    check_error(
        lambda: ml.compile(accumulated)(np.ones((3, 3))),
        """
        mlirml.UnsupportedSyntaxError: `np.subtract.accumulate` is not compiled
          --> test_unsupported_function.py:34:12 (accumulated)
            |
         34 |     return np.subtract.accumulate(x)
            |            ^^^^^^^^^^^^^^^^^^^^^^^^^
           = help: call it outside, and pass its result as an argument
        """,
    )


def test_at() -> None:
    check_error(
        lambda: ml.compile(added_at)(np.ones((3, 3))),
        """
        mlirml.UnsupportedSyntaxError: `np.negative.at` is not compiled
          --> test_unsupported_function.py:38:5 (added_at)
            |
         38 |     np.negative.at(x, 0)
            |     ^^^^^^^^^^^^^^^^^^^^
           = help: call it outside, and pass its result as an argument
        """,
    )
