"""Numbers, which no store changes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mlirml as ml
from tests.errors.shown import check_error


def into_number(x: Any) -> Any:
    x[...] = x * 2
    return x


def in_loop(x: Any) -> Any:
    for i in range(3):
        x[()] = x + i
    return x


def test_a_store_into_a_number() -> None:
    check_error(
        lambda: ml.compile(into_number)(3.0),
        """
        mlirml.DTypeError: a NumPy scalar cannot be stored into: only arrays change in place
          --> test_store_into_number.py:15:5 (into_number)
            |
         15 |     x[...] = x * 2
            |     ^^^^^^
           = help: make a new value, `x = x + 1`, or a 0-d array first, `np.array(x)`
        """,
    )


@pytest.mark.parametrize("number", [5, True, 1j, np.float32(3), np.int8(3)])
def test_stores_into_numbers_are_errors_as_in_python(number: Any) -> None:
    for function in (into_number, in_loop):
        with pytest.raises(TypeError):
            function(number)
        with pytest.raises(TypeError, match="cannot be stored into"):
            ml.compile(function)(number)


def test_arrays_without_dimensions_are_stored_into() -> None:
    x = np.array(3.0)
    assert ml.compile(into_number)(x) == 6.0 and x == 6.0
