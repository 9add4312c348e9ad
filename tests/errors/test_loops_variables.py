"""Variables of loops that have no value, or change what they are."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mlirml as ml
from tests.errors.shown import check_error

V = np.arange(5.0)


def last(x: Any, n: Any) -> Any:
    for i in range(n):
        t = x[i]
    return t


def one_branch(x: Any) -> Any:
    for i in range(3):
        if x[i] > 1:
            t = 3
        x[i] = t


def no_start(x: Any) -> Any:
    for i in range(3):
        s += x[i]  # noqa: F821
    return s


def widened(x: Any) -> Any:
    s = np.float32(0)
    for i in range(3):
        s = s + x[i]
    return s


def reshaped(x: Any) -> Any:
    s = 0
    for i in range(3):
        s = s + x[i] * x
    return s


def found(x: Any) -> Any:
    for i in range(4):
        if x[i] > 0:
            return {"i": i}


def mixed(x: Any) -> Any:
    for i in range(4):
        if x[i] > 7:
            return x
    return 2.0


def test_after_a_loop_that_may_have_no_rounds() -> None:
    check_error(
        lambda: ml.compile(last, frontend="loops")(V, 0),
        """
        mlirml.UnassignedNameError: `t` may have no value: the `for` loop has no iterations
          --> test_loops_variables.py:17:5 (last)
            |
         17 |     for i in range(n):
            |     ^^^^^^^^^^^^^^^^^
           = help: give `t` a value before the `for` loop
        """,
    )


def test_assigned_in_one_branch() -> None:
    check_error(
        lambda: ml.compile(one_branch)(V),
        """
        mlirml.UnassignedNameError: `t` has no value here: a branch assigns it, but not in this case
          --> test_loops_variables.py:26:9 (one_branch)
            |
         26 |         x[i] = t
            |         ^^^^
           = help: give `t` a value before
        """,
    )


def test_never_started() -> None:
    check_error(
        lambda: ml.compile(no_start)(V),
        """
        mlirml.UnassignedNameError: `s` is used before it is assigned
          --> test_loops_variables.py:31:9 (no_start)
            |
         31 |         s += x[i]  # noqa: F821
            |         ^
           = help: give `s` a value first
        """,
    )


def test_another_dtype_after_a_round() -> None:
    check_error(
        lambda: ml.compile(widened)(V),
        """
        mlirml.DTypeError: `s` changes its dtype in the loop: f32[] before an iteration, f64[] after it
          --> test_loops_variables.py:37:5 (widened)
            |
         37 |     for i in range(3):
            |     ^^^^^^^^^^^^^^^^^
           = help: start with `np.float64(...)`, or convert the new value, `x.astype(np.float32)`
        """,
    )


def test_another_shape_after_a_round() -> None:
    check_error(
        lambda: ml.compile(reshaped, frontend="loops")(V),
        """
        mlirml.ShapeError: `s` changes its shape in the loop: a Python int before an iteration, f64[5] after it
          --> test_loops_variables.py:44:5 (reshaped)
            |
         44 |     for i in range(3):
            |     ^^^^^^^^^^^^^^^^^
           = help: use another name for the new array, or store into an array of the right shape
        """,
    )


def test_results_that_differ() -> None:
    check_error(
        lambda: ml.compile(found)(V),
        """
        mlirml.UnsupportedSyntaxError: the function returns None in one branch and a dict in the other, and which one is known only at run time
          --> test_loops_variables.py:50:5 (found)
            |
         50 |     for i in range(4):
            |     ^^^^^^^^^^^^^^^^^^
           = help: beside None only a number, an array, or a tuple of them can be chosen by data
        """,  # noqa: E501
    )
    check_error(
        lambda: ml.compile(mixed)(V),
        """
        mlirml.DTypeError: the function returns a Python float in one branch and f64[5] in the other
          --> test_loops_variables.py:56:5 (mixed)
            |
         56 |     for i in range(4):
            |     ^^^^^^^^^^^^^^^^^^
           = help: convert one of them, so that shape and dtype are the same
        """,
    )


def turned(a: Any, b: Any) -> Any:
    for i in range(3):
        while a[i] > 0.5:
            b[i] = a[i] * 0.5
            a, b = b, a
    return a


def test_arrays_exchanged_in_a_loop_of_a_loop() -> None:
    check_error(
        lambda: ml.compile(turned)(V.copy(), V.copy()),
        """
        mlirml.CaptureError: a store into `b`, which is another array in the next iteration of the loop: compiled code cannot tell whose elements change
          --> test_loops_variables.py:160:13 (turned)
             |
         160 |             b[i] = a[i] * 0.5
             |             ^^^^
           = help: take a `.copy()` first, and store into that
        """,  # noqa: E501
    )


def test_none_in_one_branch() -> None:
    def best(x: Any) -> Any:
        most = None
        for i in range(len(x)):
            if x[i] > 3:
                break
            if most is None or x[i] > most[0]:
                most = [x[i]]
        return most

    check_error(
        lambda: ml.compile(best)(V),
        """
        mlirml.UnsupportedSyntaxError: `most` is None in one branch and a list in the other, and which one is known only at run time
          --> test_loops_variables.py:183:16 (best)
             |
         183 |             if x[i] > 3:
             |                ^^^^^^^^
           = help: beside None only a number, an array, or a tuple of them can be chosen by data
        """,  # noqa: E501
    )


def pair(x: Any) -> Any:
    for i in range(len(x)):
        if x[i] > 2:
            return [i, 1]
    return []


def test_lists_of_other_lengths() -> None:
    check_error(
        lambda: ml.compile(pair)(V),
        """
        mlirml.UnsupportedSyntaxError: the function returns a list of 0 items in one branch and a list of 2 items in the other, and which one is known only at run time
          --> test_loops_variables.py:203:5 (pair)
             |
         203 |     for i in range(len(x)):
             |     ^^^^^^^^^^^^^^^^^^^^^^^
           = help: take tuples of one length, an array of that length, or None beside a tuple
        """,  # noqa: E501
    )


def multiples(n: Any) -> Any:
    found = [1]
    for i in range(2, n):
        if n % i == 0:
            found.append(i)
    return [[0 for _ in range(n)] for _ in range(len(found))]


def test_the_error_that_is_left_with_room_in_lists_comes_first() -> None:
    with pytest.raises(ml.UnsupportedSyntaxError, match="a range whose bounds are known only at run time") as failure:
        ml.compile(multiples)(np.int64(12))
    assert "note: without room for any number of items in lists: line 226: `found` holds 2" in str(failure.value)
