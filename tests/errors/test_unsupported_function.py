"""NumPy functions that are not compiled."""

from __future__ import annotations

from typing import Any

import numpy as np

import mlirml as ml
from tests.errors.shown import check_error


def spectrum(x: Any) -> Any:
    return np.fft.fft(x)


def singular_values(x: Any) -> Any:
    return np.linalg.svd(x)


def length(x: Any) -> Any:
    return np.linalg.norm(x, 2)


def lower_places(x: Any) -> Any:
    return np.tril_indices_from(x)


def bits(x: Any) -> Any:
    return x.view(np.int64)


def accumulated(x: Any) -> Any:
    return np.subtract.accumulate(x)


def added_at(x: Any) -> Any:
    np.negative.at(x, 0)
    return x


def test_fft() -> None:
    check_error(
        lambda: ml.compile(spectrum)(np.ones((3, 3))),
        """
        mlirml.UnsupportedSyntaxError: `np.fft.fft` is not compiled
          --> test_unsupported_function.py:14:12 (spectrum)
            |
         14 |     return np.fft.fft(x)
            |            ^^^^^^^^^^^^^
           = help: call it outside, and pass its result as an argument
        """,
    )


def test_svd() -> None:
    check_error(
        lambda: ml.compile(singular_values)(np.ones((3, 3))),
        """
        mlirml.UnsupportedSyntaxError: `np.linalg.svd` is not compiled
          --> test_unsupported_function.py:18:12 (singular_values)
            |
         18 |     return np.linalg.svd(x)
            |            ^^^^^^^^^^^^^^^^
           = help: call it outside, and pass its result as an argument
        """,
    )


def test_norm() -> None:
    check_error(
        lambda: ml.compile(length)(np.ones((3, 3))),
        """
        mlirml.UnsupportedSyntaxError: norm: ord=2 of a matrix is not compiled
          --> test_unsupported_function.py:22:12 (length)
            |
         22 |     return np.linalg.norm(x, 2)
            |            ^^^^^^^^^^^^^^^^^^^^
           = help: the singular values of a matrix are not compiled; use ord='fro', 1 or np.inf
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
