"""Arrays for results that do not fit the results."""

from __future__ import annotations

from typing import Any

import numpy as np

import mlirml as ml
from tests.errors.shown import check_error


def both(x: Any) -> Any:
    return x + 1, {"twice": 2 * x}


def plus_one(x: Any) -> Any:
    return x + 1


READ_ONLY = np.broadcast_to(0.0, 3)
SAME = np.zeros(3)


def test_another_structure() -> None:
    check_error(
        lambda: ml.compile(both)(np.ones(3), out=np.zeros(3)),
        """
        mlirml.ArgumentError: `out` is f64[3], but the result is (f64[3], {'twice': f64[3]})
          --> test_out.py:13 (both)
            |
         13 | def both(x: Any) -> Any:
            | ^^^^^^^^^^^^^^^^^^^^^^^^
        """,
    )


def test_another_shape() -> None:
    check_error(
        lambda: ml.compile(plus_one)(np.ones(3), out=np.zeros(4)),
        """
        mlirml.ArgumentError: `out` is f64[4], but the result is f64[3]
          --> test_out.py:17 (plus_one)
            |
         17 | def plus_one(x: Any) -> Any:
            | ^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        """,
    )


def test_another_dtype() -> None:
    check_error(
        lambda: ml.compile(plus_one)(np.ones(3), out=np.zeros(3, np.float32)),
        """
        mlirml.ArgumentError: `out` is f32[3], but the result is f64[3]
          --> test_out.py:17 (plus_one)
            |
         17 | def plus_one(x: Any) -> Any:
            | ^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        """,
    )


def test_no_array() -> None:
    check_error(
        lambda: ml.compile(plus_one)(np.ones(3), out=[0.0, 0.0, 0.0]),
        """
        mlirml.ArgumentError: `out` is [a float, a float, a float], but the result is f64[3]
          --> test_out.py:17 (plus_one)
            |
         17 | def plus_one(x: Any) -> Any:
            | ^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        """,
    )


def test_read_only() -> None:
    check_error(
        lambda: ml.compile(plus_one)(np.ones(3), out=READ_ONLY),
        """
        mlirml.LaunchError: `out`: the array for result 0 is read-only
        """,
    )


def test_one_array_for_two_results() -> None:
    check_error(
        lambda: ml.compile(both)(np.ones(3), out=(SAME, {"twice": SAME})),
        """
        mlirml.LaunchError: `out`: the array for result 1 shares memory with that of another result
        """,
    )
