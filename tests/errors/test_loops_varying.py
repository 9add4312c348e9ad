"""Slices whose length is known only at run time, where that is in the way."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mlirml as ml
from tests.errors.shown import check_error

V = np.arange(300.0)


def transformed(x: Any) -> None:
    for i in range(1, len(x)):
        x[i] = np.average(np.fft.fft(x[:i]).real)


def longer(x: Any) -> None:
    for i in range(len(x) - 1):
        x[:i] = x[: i + 1]


def halves(x: Any) -> None:
    for i in range(len(x)):
        x[:i] /= 2


def either(x: Any) -> None:
    for i in range(len(x)):
        part = x[:i] if x[i] > 0 else x[i:, None]
        x[i] = np.sum(part)


def combined(x: Any, y: Any) -> None:
    for i in range(len(x)):
        y[i : i + 3] = x[:i]


def test_a_function_that_has_no_loop() -> None:
    check_error(
        lambda: ml.compile(transformed)(V),
        """
        mlirml.UnsupportedSyntaxError: the length of a slice is known only at run time, and `np.fft.fft` would need it
          --> test_loops_varying.py:18:27 (transformed)
            |
         18 |         x[i] = np.average(np.fft.fft(x[:i]).real)
            |                           ^^^^^^^^^^^^^^^^^
           = note: it differs between iterations of a loop with 299 iterations; up to 256 would be unrolled
           = help: write a loop over the elements, or slices of one length, as in `x[i : i + 3]`
        """,
    )
    x, expected = V[:20].copy(), V[:20].copy()
    ml.compile(transformed)(x)
    transformed(expected)
    np.testing.assert_allclose(x, expected)


def test_other_lengths() -> None:
    check_error(
        lambda: ml.compile(longer)(V),
        """
        mlirml.ShapeError: slices of different lengths are combined: f64[?], f64[?], one always longer by 1
          --> test_loops_varying.py:23:9 (longer)
            |
         23 |         x[:i] = x[: i + 1]
            |         ^^^^^
           = help: compare the bounds of the slices
        """,
    )


def test_in_place_of_another_dtype() -> None:
    check_error(
        lambda: ml.compile(halves)(np.arange(9)),
        """
        mlirml.DTypeError: cannot store f64[?] in place into i64[?]
          --> test_loops_varying.py:28:9 (halves)
            |
         28 |         x[:i] /= 2
            |         ^^^^^^^^^^
           = help: make a new array, `x = x + y`, or convert the result with `.astype(np.int64)`
        """,
    )


def test_one_or_another() -> None:
    check_error(
        lambda: ml.compile(either)(V),
        """
        mlirml.UnsupportedSyntaxError: an expression is a slice of changing length in one branch and a slice of changing length in the other, and which one is known only at run time
          --> test_loops_varying.py:33:16 (either)
            |
         33 |         part = x[:i] if x[i] > 0 else x[i:, None]
            |                ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
           = help: assign numbers or arrays of one shape and dtype in both branches
        """,  # noqa: E501
    )


@pytest.mark.parametrize("target", ["cpu", "reference"])
def test_lengths_that_are_compared_when_run(target: str) -> None:
    with ml.config.override(checks=True):
        check_error(
            lambda: ml.compile(combined, target)(np.ones(15), np.ones(18)),
            """
            mlirml.ShapeError: slices of different lengths are combined
              --> test_loops_varying.py:39:9 (combined)
                |
             39 |         y[i : i + 3] = x[:i]
                |         ^^^^^^^^^^^^
            """,
        )
