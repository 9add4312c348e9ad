"""NumPy functions that are not compiled."""

from __future__ import annotations

from typing import Any

import numpy as np

import mlirml as ml
from tests.errors.shown import check_error


def quotient(x: Any) -> Any:
    return np.polydiv(x, x)


def flat_places(x: Any) -> Any:
    return np.ravel_multi_index((x, x), (3, 3))


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


def test_a_similar_name() -> None:
    check_error(
        lambda: ml.compile(flat_places)(np.ones(3, int)),
        """
        mlirml.UnsupportedSyntaxError: `np.ravel_multi_index` is not compiled
          --> test_unsupported_function.py:18:12 (flat_places)
            |
         18 |     return np.ravel_multi_index((x, x), (3, 3))
            |            ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
           = help: call it outside, and pass its result as an argument; compiled functions with a similar name: np.ravel
        """,
    )


def test_a_method() -> None:
    check_error(
        lambda: ml.compile(bits)(np.ones((3, 3))),
        """
        mlirml.UnsupportedSyntaxError: the array attribute `.view` is not compiled
          --> test_unsupported_function.py:22:12 (bits)
            |
         22 |     return x.view(np.int64)
            |            ^^^^^^
           = help: convert with `x.astype(...)`; the bytes of an array cannot be read as another dtype
        """,
    )


def test_accumulate() -> None:
    check_error(
        lambda: ml.compile(accumulated)(np.ones((3, 3))),
        """
        mlirml.UnsupportedSyntaxError: `np.subtract.accumulate` is not compiled
          --> test_unsupported_function.py:26:12 (accumulated)
            |
         26 |     return np.subtract.accumulate(x)
            |            ^^^^^^^^^^^^^^^^^^^^^^^^^
           = help: call it outside, and pass its result as an argument
        """,
    )


def test_at() -> None:
    check_error(
        lambda: ml.compile(added_at)(np.ones((3, 3))),
        """
        mlirml.UnsupportedSyntaxError: `np.negative.at` is not compiled
          --> test_unsupported_function.py:30:5 (added_at)
            |
         30 |     np.negative.at(x, 0)
            |     ^^^^^^^^^^^^^^^^^^^^
           = help: call it outside, and pass its result as an argument
        """,
    )
