"""A loop that ends when the data say so."""

from __future__ import annotations

from typing import Any

import numpy as np

import mlirml as ml
from tests.errors.shown import check_error


def double(x: Any) -> Any:
    while x < 10:
        x = x * 2
    return x


def converge(x: Any) -> Any:
    while np.max(np.abs(x)) > 1e-3:
        x = x / 2
    return x


def test_a_number() -> None:
    check_error(
        lambda: ml.compile(double, frontend="trace")(2.0),
        """
        mlirml.TracedBoolError: a loop needs the value of bool[], known only at run time
          --> test_while.py:14:11 (double)
            |
         14 |     while x < 10:
            |           ^^^^^^
           = help: loop with `ml.while_loop`, or make the argument static (`static_argnums`)
        """,
    )


def test_a_reduction() -> None:
    check_error(
        lambda: ml.compile(converge, frontend="trace")(np.ones(3)),
        """
        mlirml.TracedBoolError: a loop needs the value of bool[], known only at run time
          --> test_while.py:20:11 (converge)
            |
         20 |     while np.max(np.abs(x)) > 1e-3:
            |           ^^^^^^^^^^^^^^^^^^^^^^^^
           = help: loop with `ml.while_loop`
        """,
    )
