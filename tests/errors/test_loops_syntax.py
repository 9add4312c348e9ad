"""Constructs that a function with loops cannot have."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mlirml as ml
from tests.errors.shown import check_error

V = np.arange(5.0)


def with_try(x: Any) -> None:
    for i in range(5):
        try:
            x[i] = 1
        except ValueError:
            return


def with_walrus(x: Any) -> Any:
    s = 0.0
    for i in range(4):
        s += y if i and (y := x[i]) > 0 else 0
    return s


def with_delete(x: Any) -> None:
    for i in range(4):
        y = x[i]
        x[i] = y
        del y


def listed(x: Any, n: Any) -> Any:
    for i in range(n):
        x[i] = i
    return {i: x[i] for i in range(n)}


def sized(x: Any) -> None:
    for i in range(300):
        x[i] = np.sum(np.hanning(i))


def test_try() -> None:
    check_error(
        lambda: ml.compile(with_try)(V),
        """
        mlirml.UnsupportedSyntaxError: `try` in a function whose loops are compiled
          --> test_loops_syntax.py:18:9 (with_try)
            |
         18 |         try:
            |         ^^^^
           = help: tell the cases apart with `if`, before something fails
        """,
    )


@pytest.mark.parametrize(("function", "what"), [(with_walrus, "`:=`")])
def test_other_constructs(function: Any, what: str) -> None:
    with pytest.raises(ml.UnsupportedSyntaxError, match=f"^{what} in a function whose loops are compiled"):
        ml.compile(function)(V)


def test_a_list_of_an_unknown_length() -> None:
    check_error(
        lambda: ml.compile(listed)(V, np.int64(3)),
        """
        mlirml.UnsupportedSyntaxError: a range whose bounds are known only at run time is iterated outside of a `for` statement
          --> test_loops_syntax.py:41:12 (listed)
            |
         41 |     return {i: x[i] for i in range(n)}
            |            ^^^^^^^^^^^^^^^^^^^^^^^^^^^
           = help: write a `for` loop that stores into an array
        """,  # noqa: E501
    )


def test_a_loop_too_long_to_unroll() -> None:
    check_error(
        lambda: ml.compile(sized)(np.zeros(300)),
        """
        mlirml.TracedValueError: `np.hanning()` needs the value of i64[], known only at run time
          --> test_loops_syntax.py:46:23 (sized)
            |
         46 |         x[i] = np.sum(np.hanning(i))
            |                       ^^^^^^^^^^^^^
           = note: it differs between iterations of a loop with 300 iterations; up to 256 would be unrolled
           = help: use Python numbers for sizes and limits, or make the argument static (`static_argnums`)
        """,
    )


def test_no_source() -> None:
    scope: dict[str, Any] = {}
    exec("def fill(x):\n    for i in range(3):\n        x[i] = 1", scope)
    check_error(
        lambda: ml.compile(scope["fill"], frontend="loops")(V),
        """
        mlirml.UnsupportedSyntaxError: the source of `fill` cannot be read, which loops are compiled from
          --> <string>:1 (fill)
           = help: define the function in a file
        """,
    )


def test_an_unknown_front_end() -> None:
    check_error(
        lambda: ml.compile(with_try, frontend="loop"),
        """
        mlirml.ArgumentError: compile: frontend='loop' is not known
           = help: it is one of 'auto', 'trace', 'loops'
        """,
    )
