"""Mistakes in loop functions beyond those of the other files: each is said at its line, and the process goes on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mlirml as ml
from tests.errors.shown import check_error


def below(a: Any) -> None:
    for i in range(3):
        a[i - 6] = 1.0


def backwards(a: Any) -> None:
    for i in range(a.shape[0], 0, -1):
        a[i] = a[i - 1]


def exchanged(m: Any) -> None:
    for i in range(m.shape[0]):
        for j in range(m.shape[1]):
            m[j, i] = 0.0


def too_many(a: Any) -> None:
    for i in range(4):
        a[i, 0] = 1.0


def word(a: Any) -> None:
    for i in range(2):
        a[i] = "one"


def complex_number(a: Any) -> None:
    for i in range(2):
        a[i] = 1j


def large(a: Any) -> None:
    for i in range(4):
        a[i] = 2**70


def unbounded(a: Any, n: Any) -> None:
    for i in range(n):
        a[i] = 1.0


def triangle(m: Any) -> None:
    for i in range(m.shape[0]):
        for j in range(i + 2):
            m[i, j] += 1.0


def rows(m: Any, k: int) -> None:
    for i in range(m.shape[0]):
        m[i, :] = m[k, :] * 2.0


def shifted(a: Any, b: Any) -> None:
    for i in range(len(b)):
        a[i + 1] = b[i]


def compiled(function: Callable[..., Any]) -> Any:
    return ml.compile(function, frontend="loops")


def test_below_the_first_element() -> None:
    check_error(
        lambda: compiled(below)(np.ones(4)),
        """
        mlirml.IndexOutOfBoundsError: index -6 is out of bounds for axis 0 with size 4
          --> test_loops_bad_input.py:17:9 (below)
            |
         17 |         a[i - 6] = 1.0
            |         ^^^^^^^^
           = help: an index lies between -4 and 3
        """,
    )


def test_the_first_round_of_a_loop_that_counts_down() -> None:
    check_error(
        lambda: compiled(backwards)(np.ones(4)),
        """
        mlirml.IndexOutOfBoundsError: index 4 is out of bounds for axis 0 with size 4
          --> test_loops_bad_input.py:22:9 (backwards)
            |
         22 |         a[i] = a[i - 1]
            |         ^^^^
           = help: an index lies between -4 and 3
        """,
    )


def test_indices_in_the_wrong_order() -> None:
    check_error(
        lambda: compiled(exchanged)(np.ones((2, 3))),
        """
        mlirml.IndexOutOfBoundsError: index 2 is out of bounds for axis 0 with size 2
          --> test_loops_bad_input.py:28:13 (exchanged)
            |
         28 |             m[j, i] = 0.0
            |             ^^^^^^^
           = help: an index lies between -2 and 1
        """,
    )


def test_an_empty_array() -> None:
    check_error(
        lambda: compiled(below)(np.ones(0)),
        """
        mlirml.IndexOutOfBoundsError: index 0 is out of bounds for axis 0 with size 0
          --> test_loops_bad_input.py:17:9 (below)
            |
         17 |         a[i - 6] = 1.0
            |         ^^^^^^^^
           = help: the axis is empty
        """,
    )


def test_too_many_indices() -> None:
    check_error(
        lambda: compiled(too_many)(np.ones(4)),
        """
        mlirml.IndexOutOfBoundsError: too many indices: 2 for an array of 1 dimension, shape [4]
          --> test_loops_bad_input.py:33:9 (too_many)
            |
         33 |         a[i, 0] = 1.0
            |         ^^^^^^^
        """,
    )


def test_a_word() -> None:
    check_error(
        lambda: compiled(word)(np.ones(4)),
        """
        mlirml.DTypeError: a str is no array or number: 'one'
          --> test_loops_bad_input.py:38:9 (word)
            |
         38 |         a[i] = "one"
            |         ^^^^
        """,
    )


def test_a_complex_number() -> None:
    check_error(
        lambda: compiled(complex_number)(np.ones(4)),
        """
        mlirml.DTypeError: assignment: a complex number cannot be stored into f64[]
          --> test_loops_bad_input.py:43:9 (complex_number)
            |
         43 |         a[i] = 1j
            |         ^^^^
           = help: store its real part, or make the array complex: `x.astype(complex)`
        """,
    )


def test_an_integer_that_does_not_fit() -> None:
    check_error(
        lambda: compiled(large)(np.ones(4, np.int64)),
        """
        mlirml.IntegerRangeError: assignment: Python integer 1180591620717411303424 is out of bounds for i64
          --> test_loops_bad_input.py:48:9 (large)
            |
         48 |         a[i] = 2**70
            |         ^^^^
           = note: i64 holds the integers from -9223372036854775808 to 9223372036854775807
           = help: no integer dtype holds it: compute with a float
        """,
    )


def test_a_bound_that_is_no_integer() -> None:
    check_error(
        lambda: compiled(unbounded)(np.ones(4), 2.5),
        """
        mlirml.DTypeError: range: a bound must be an integer, got f64[]
          --> test_loops_bad_input.py:52:14 (unbounded)
            |
         52 |     for i in range(n):
            |              ^^^^^^^^
           = help: convert it with `int(...)`
        """,
    )


def test_arguments_that_overlap() -> None:
    line = np.ones(5)
    check_error(
        lambda: compiled(shifted)(line, line),
        """
        mlirml.IndexOutOfBoundsError: index 5 is out of bounds for axis 0 with size 5
          --> test_loops_bad_input.py:69:9 (shifted)
            |
         69 |         a[i + 1] = b[i]
            |         ^^^^^^^^
           = help: an index lies between -5 and 4
        """,
    )


RUN_TIME: list[tuple[Callable[..., None], tuple[Any, ...], tuple[Any, ...], str, str]] = [
    (unbounded, (np.ones(4), 6), (np.ones(4), 3), "53:9 (unbounded)", "a[i] = 1.0"),
    (rows, (np.ones((3, 3)), 5), (np.ones((3, 3)), -1), "64:19 (rows)", "m[i, :] = m[k, :] * 2.0"),
    (rows, (np.ones((3, 3)), -4), (np.ones((3, 3)), 2), "64:19 (rows)", "m[i, :] = m[k, :] * 2.0"),
    (triangle, (np.ones((3, 3)),), (np.ones((3, 4)),), "59:13 (triangle)", "m[i, j] += 1.0"),
]


@pytest.mark.parametrize("function, bad, good, place, line", RUN_TIME)
@pytest.mark.parametrize("target", ["cpu", "reference"])
def test_overruns_that_show_when_the_program_runs(
    function: Any, bad: Any, good: Any, place: str, line: str, target: str
) -> None:
    with ml.config.override(checks=True):
        checked = ml.compile(function, target, frontend="loops")
        bad, good, expected = ([x.copy() if isinstance(x, np.ndarray) else x for x in a] for a in (bad, good, good))
        with pytest.raises(ml.errors.IndexOutOfBoundsError) as caught:
            checked(*bad)
        text = str(caught.value)
        assert "index" in text.splitlines()[0] and "is out of bounds for axis" in text
        assert f"test_loops_bad_input.py:{place}" in text
        assert line in text and "= help: an index lies between" in text
        checked(*good)  # the process goes on, and later calls are right
    function(*expected)
    np.testing.assert_array_equal(good[0], expected[0])
