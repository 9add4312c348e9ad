"""Functions of the module `math` take numbers only."""

from __future__ import annotations

import math
from math import sqrt
from typing import Any

import mlirml as ml
from tests.errors.shown import check_error


def exponential(x: Any) -> Any:
    return math.exp(x)


def imported_by_name(x: Any) -> Any:
    return sqrt(x)


def test_exp() -> None:
    check_error(
        lambda: ml.compile(exponential, frontend="trace")(2.0),
        """
        mlirml.TracedValueError: `math.exp()` needs the value of f64[], known only when the program runs
          --> test_math.py:14:12 (exponential)
            |
         14 |     return math.exp(x)
            |            ^^^^^^^^^^^
           = help: use `np.exp`
        """,
    )


def test_a_function_imported_by_name() -> None:
    check_error(
        lambda: ml.compile(imported_by_name, frontend="trace")(2.0),
        """
        mlirml.TracedValueError: `sqrt()` needs the value of f64[], known only when the program runs
          --> test_math.py:18:12 (imported_by_name)
            |
         18 |     return sqrt(x)
            |            ^^^^^^^
           = help: use `np.sqrt`
        """,
    )
