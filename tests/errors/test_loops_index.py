"""Indices in loops that are out of bounds, or no integers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mlirml as ml
from tests.errors.shown import check_error

V = np.arange(5.0)


def shift(x: Any) -> None:
    for i in range(len(x)):
        x[i] = x[i + 1]


def guarded(x: Any) -> None:
    for i in range(len(x)):
        if i + 1 < len(x):
            x[i] = x[i + 1]


def halves(x: Any) -> None:
    for i in range(3):
        x[i * 0.5] = 1


def narrow(a: Any) -> None:
    for i in range(3):
        a[i, :] = np.zeros(2)


def put(x: Any, where: Any) -> None:
    for i in range(len(where)):
        x[where[i]] = i


def test_known_when_compiled() -> None:
    check_error(
        lambda: ml.compile(shift)(V),
        """
        mlirml.IndexOutOfBoundsError: index 5 is out of bounds for axis 0 with size 5
          --> test_loops_index.py:18:16 (shift)
            |
         18 |         x[i] = x[i + 1]
            |                ^^^^^^^^
           = help: an index lies between -5 and 4
        """,
    )


def test_a_guard_is_understood() -> None:
    ml.compile(guarded)(x := V.copy())
    assert x.tolist() == [1, 2, 3, 4, 4]


def test_not_an_integer() -> None:
    check_error(
        lambda: ml.compile(halves)(V),
        """
        mlirml.InvalidIndexError: an index must be an integer, a slice, `...`, None or an array of those, got a number of float64
          --> test_loops_index.py:29:9 (halves)
            |
         29 |         x[i * 0.5] = 1
            |         ^^^^^^^^^^
           = help: divide with `//`, or convert it: with `int(...)` in loops, `.astype(np.int64)` elsewhere
        """,  # noqa: E501
    )


def test_a_slice_of_another_shape() -> None:
    check_error(
        lambda: ml.compile(narrow)(np.zeros((4, 3))),
        """
        mlirml.ShapeError: assignment: f64[2] does not broadcast to f64[3]
          --> test_loops_index.py:34:9 (narrow)
            |
         34 |         a[i, :] = np.zeros(2)
            |         ^^^^^^^
           = help: sizes must be equal or 1, counted from the last dimension; add axes with `x[:, None]`
        """,
    )


@pytest.mark.parametrize("target", ["cpu", "reference"])
def test_checked_when_run(target: str) -> None:
    with ml.config.override(checks=True):
        compiled = ml.compile(put, target)
        compiled(V.copy(), np.array([1, -5, 4]))
        check_error(
            lambda: compiled(V.copy(), np.array([1, 7, 2])),
            """
            mlirml.IndexOutOfBoundsError: index 7 is out of bounds for axis 0 with size 5
              --> test_loops_index.py:39:9 (put)
                |
             39 |         x[where[i]] = i
                |         ^^^^^^^^^^^
               = help: an index lies between -5 and 4; `np.take` can clip or wrap what lies outside
            """,
        )


def test_unchecked_loops_have_no_assertions() -> None:
    with ml.config.override(checks=False):
        assert "cf.assert" not in ml.compile(put).trace(V, np.array([1])).as_text()


# New functions stand at the end, since the tests above name their lines.


def first_zero(a: Any, b: Any) -> None:
    i = 0
    while a[i] > 0:
        b[i] = 1.0
        i += 1


def later(a: Any, where: Any) -> Any:
    for i in range(len(where)):
        a[where[i]] = 0.0
    total = 0.0
    while total < 10:
        total += a[0]
    return total


@pytest.mark.parametrize("target", ["cpu", "reference"])
def test_a_failed_check_ends_a_while(target: str) -> None:
    with ml.config.override(checks=True):
        compiled = ml.compile(first_zero, target)
        compiled(np.array([2.0, 1.0, 0.0, 1.0]), b := np.zeros(4))
        assert b.tolist() == [1, 1, 0, 0]
        check_error(
            lambda: compiled(np.ones(4), np.zeros(4)),
            """
            mlirml.IndexOutOfBoundsError: index 4 is out of bounds for axis 0 with size 4
              --> test_loops_index.py:117:11 (first_zero)
                 |
             117 |     while a[i] > 0:
                 |           ^^^^
               = help: an index lies between -4 and 3; `np.take` can clip or wrap what lies outside
            """,
        )


@pytest.mark.parametrize("target", ["cpu", "reference"])
def test_a_failed_check_ends_a_later_while(target: str) -> None:
    with ml.config.override(checks=True), pytest.raises(ml.IndexOutOfBoundsError):
        ml.compile(later, target)(np.ones(3), np.array([-7]))
