"""NumPy functions that are not compiled."""

from __future__ import annotations

from typing import Any

import numpy as np

import mlirml as ml
from tests.errors.shown import check_error


def bytes_of(x: Any) -> Any:
    return np.unpackbits(x)


def real_parts(x: Any) -> Any:
    return np.real_if_close(x)


def dumped(x: Any) -> Any:
    return x.dumps()


def accumulated(x: Any) -> Any:
    return np.subtract.accumulate(x)


def added_at(x: Any) -> Any:
    np.negative.at(x, 0)
    return x


def test_a_function() -> None:
    check_error(
        lambda: ml.compile(bytes_of)(np.ones(3, np.uint8)),
        """
        mlirml.UnsupportedSyntaxError: `np.unpackbits` is not compiled
          --> test_unsupported_function.py:14:12 (bytes_of)
            |
         14 |     return np.unpackbits(x)
            |            ^^^^^^^^^^^^^^^^
           = help: call it outside, and pass its result as an argument
        """,
    )


def test_a_similar_name() -> None:
    check_error(
        lambda: ml.compile(real_parts)(np.ones(3)),
        """
        mlirml.UnsupportedSyntaxError: `np.real_if_close` is not compiled
          --> test_unsupported_function.py:18:12 (real_parts)
            |
         18 |     return np.real_if_close(x)
            |            ^^^^^^^^^^^^^^^^^^^
           = help: call it outside, and pass its result as an argument
        """,
    )


def test_a_method() -> None:
    check_error(
        lambda: ml.compile(dumped)(np.ones((3, 3))),
        """
        mlirml.UnsupportedSyntaxError: the array attribute `.dumps` is not compiled
          --> test_unsupported_function.py:22:12 (dumped)
            |
         22 |     return x.dumps()
            |            ^^^^^^^
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
