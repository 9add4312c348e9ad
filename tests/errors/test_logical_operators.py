"""`and`, `or`, `not` and chained comparisons ask for truth values."""

from __future__ import annotations

from typing import Any

import numpy as np

import mlirml as ml
from tests.errors.shown import check_error


def inside(x: Any) -> Any:
    return x > 0 and x < 1


def outside(x: Any) -> Any:
    return x < 0 or x > 1


def negated(x: Any) -> Any:
    return not x


def between(x: Any) -> Any:
    return 0 < x < 1


def branch(x: Any) -> Any:
    if x > 0 and x < 1:
        return x
    return 0.0


def test_and() -> None:
    check_error(
        lambda: ml.compile(inside)(np.ones(3)),
        """
        mlirml.TracedBoolError: `and` needs the value of bool[3], known only at run time
          --> test_logical_operators.py:14:12 (inside)
            |
         14 |     return x > 0 and x < 1
            |            ^^^^^^^^^^^^^^^
           = help: combine conditions with `np.logical_and(a, b)`
        """,
    )


def test_or() -> None:
    check_error(
        lambda: ml.compile(outside)(np.ones(3)),
        """
        mlirml.TracedBoolError: `or` needs the value of bool[3], known only at run time
          --> test_logical_operators.py:18:12 (outside)
            |
         18 |     return x < 0 or x > 1
            |            ^^^^^^^^^^^^^^
           = help: combine conditions with `np.logical_or(a, b)`
        """,
    )


def test_not() -> None:
    check_error(
        lambda: ml.compile(negated)(np.ones(3)),
        """
        mlirml.TracedBoolError: `not` needs the value of f64[3], known only at run time
          --> test_logical_operators.py:22:12 (negated)
            |
         22 |     return not x
            |            ^^^^^
           = help: negate with `np.logical_not(a)`
        """,
    )


def test_a_chained_comparison() -> None:
    check_error(
        lambda: ml.compile(between)(np.ones(3)),
        """
        mlirml.TracedBoolError: a chained comparison needs the value of bool[3], known only at run time
          --> test_logical_operators.py:26:12 (between)
            |
         26 |     return 0 < x < 1
            |            ^^^^^^^^^
           = help: write it as `np.logical_and(a < b, b < c)`
        """,
    )


def test_a_branch_on_both() -> None:
    check_error(
        lambda: ml.compile(branch, frontend="trace")(np.array(2.0)),
        """
        mlirml.TracedBoolError: a branch needs the value of bool[], known only at run time
          --> test_logical_operators.py:30:8 (branch)
            |
         30 |     if x > 0 and x < 1:
            |        ^^^^^^^^^^^^^^^
           = help: select with `np.where(condition, a, b)` or `ml.cond`; combine conditions with `np.logical_and(a, b)`
        """,
    )
