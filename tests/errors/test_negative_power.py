"""Integers to negative integer powers."""

from __future__ import annotations

from typing import Any

import numpy as np

import mlirml as ml
from tests.errors.shown import check_error


def inverse(x: Any) -> Any:
    return x**-1


def test_a_literal() -> None:
    check_error(
        lambda: ml.compile(inverse)(np.array([1, 2])),
        """
        mlirml.NegativePowerError: power: integers to negative integer powers are not allowed, as in NumPy
          --> test_negative_power.py:14:12 (inverse)
            |
         14 |     return x**-1
            |            ^^^^^
           = help: write `x ** -1.0`, or convert the base, `x.astype(float)`
        """,
    )
