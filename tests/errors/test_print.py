"""Printing shows what is known while tracing: shape and dtype."""

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
        mlirml.TracedValueError: formatting needs the value of f64[], known only when the program runs
          --> test_print.py:20:12 (formatted)
            |
         20 |     return f"{x:.2f}"
            |            ^^^^^^^^^^
           = help: `print(x)` shows shape and dtype while tracing; return the array to see its value
        """,
    )


def test_printing_shows_shape_and_dtype(capsys: pytest.CaptureFixture[str]) -> None:
    ml.compile(printing)(np.ones((2, 3), np.float32))
    assert capsys.readouterr().out == "x is Traced(f32[2,3]) or Traced(f32[2,3]) Traced(f64[2] = [0.0, 0.0])\n"
