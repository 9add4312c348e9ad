"""Functions of the module `math` take numbers only."""

from __future__ import annotations

import math
from math import sqrt
from typing import Any

import numpy as np
import pytest

import mlirml as ml
from tests.errors.shown import check_error


def exponential(x: Any) -> Any:
    return math.exp(x)


def imported_by_name(x: Any) -> Any:
    return sqrt(x)


@pytest.mark.parametrize("frontend", ["auto", "trace", "loops"])
@pytest.mark.parametrize("function", [exponential, imported_by_name])
def test_numbers(function: Any, frontend: str) -> None:
    assert ml.compile(function, frontend=frontend)(2.0) == function(2.0)


def test_an_array() -> None:
    check_error(
        lambda: ml.compile(exponential, frontend="trace")(np.ones(3)),
        """
        mlirml.DTypeError: only one number can be converted, got f64[3]
          --> test_math.py:17:12 (exponential)
            |
         17 |     return math.exp(x)
            |            ^^^^^^^^^^^
        """,
    )
