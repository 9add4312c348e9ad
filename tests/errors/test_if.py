"""Branches on values that are known only at run time."""

from __future__ import annotations

from typing import Any

import numpy as np

import mlirml as ml
from tests.errors.shown import check_error


def branch(x: Any) -> Any:
    if x > 0:
        return x
    return -x


def branch_on_an_array(x: Any) -> Any:
    y = x + 1
    if y:
        return y
    return x


def branch_on_all(x: Any) -> Any:
    if np.all(x > 0):
        return x
    return -x


def second_branch(x: Any) -> Any:
    if len(x) > 100:
        return x
    elif np.any(x):
        return -x
    return 2 * x


def conditional_expression(x: Any) -> Any:
    return 1.0 if x > 0 else -1.0


def filtered(x: Any) -> Any:
    return {v: 1 for v in x if v > 0}


def test_a_number() -> None:
    check_error(
        lambda: ml.compile(branch, frontend="trace")(2.0),
        """
        mlirml.TracedBoolError: a branch needs the value of bool[], known only at run time
          --> test_if.py:14:8 (branch)
            |
         14 |     if x > 0:
            |        ^^^^^
           = help: select with `np.where(condition, a, b)` or `ml.cond`, or make the argument static (`static_argnums`)
        """,
    )


def test_an_array() -> None:
    check_error(
        lambda: ml.compile(branch_on_an_array, frontend="trace")(np.ones(3)),
        """
        mlirml.TracedBoolError: a branch needs the value of f64[3], known only at run time
          --> test_if.py:21:8 (branch_on_an_array)
            |
         21 |     if y:
            |        ^
           = help: select with `np.where(condition, a, b)` or `ml.cond`
        """,
    )


def test_a_reduction() -> None:
    check_error(
        lambda: ml.compile(branch_on_all, frontend="trace")(np.ones(3)),
        """
        mlirml.TracedBoolError: a branch needs the value of bool[], known only at run time
          --> test_if.py:27:8 (branch_on_all)
            |
         27 |     if np.all(x > 0):
            |        ^^^^^^^^^^^^^
           = help: select with `np.where(condition, a, b)` or `ml.cond`
        """,
    )


def test_elif() -> None:
    check_error(
        lambda: ml.compile(second_branch, frontend="trace")(np.ones(3)),
        """
        mlirml.TracedBoolError: a branch needs the value of bool[], known only at run time
          --> test_if.py:35:10 (second_branch)
            |
         35 |     elif np.any(x):
            |          ^^^^^^^^^
           = help: select with `np.where(condition, a, b)` or `ml.cond`
        """,
    )


def test_a_conditional_expression() -> None:
    check_error(
        lambda: ml.compile(conditional_expression, frontend="trace")(np.array(2.0)),
        """
        mlirml.TracedBoolError: a branch needs the value of bool[], known only at run time
          --> test_if.py:41:19 (conditional_expression)
            |
         41 |     return 1.0 if x > 0 else -1.0
            |                   ^^^^^
           = help: select with `np.where(condition, a, b)` or `ml.cond`
        """,
    )


def test_a_comprehension() -> None:
    import sys

    function = "<dictcomp>" if sys.version_info < (3, 12) else "filtered"  # PEP 709
    check_error(
        lambda: ml.compile(filtered)(np.ones(3)),
        f"""
        mlirml.TracedBoolError: a branch needs the value of bool[], known only at run time
          --> test_if.py:45:32 ({function})
            |
         45 |     return {{v: 1 for v in x if v > 0}}
            |                                ^^^^^
           = help: select with `np.where(condition, a, b)`
        """,
    )
