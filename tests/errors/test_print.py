"""Printing shows values when the program runs; other texts would need them before."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mlirml as ml
from tests.errors.shown import check_error


def printing(x: Any) -> Any:
    print("x is", x, f"or {x}", np.zeros(2))
    return x


def formatted(x: Any) -> Any:
    return f"{x:.2f}"


def test_a_format() -> None:
    check_error(
        lambda: ml.compile(formatted)(2.0),
        """
        mlirml.TracedValueError: formatting needs the value of f64[], known only at run time
          --> test_print.py:20:12 (formatted)
            |
         20 |     return f"{x:.2f}"
            |            ^^^^^^^^^^
           = help: `print(x)` shows the value when the program runs; the text itself is made before
        """,
    )


def test_printing_shows_the_values(capsys: pytest.CaptureFixture[str]) -> None:
    ml.compile(printing)(np.ones((2, 3), np.float32))
    assert capsys.readouterr().out == "x is [[1. 1. 1.]\n [1. 1. 1.]] or [[1. 1. 1.]\n [1. 1. 1.]] [0. 0.]\n"
