"""Ranges as arrays of integers, as NumPy takes them."""

from __future__ import annotations

from typing import Any

import numpy as np

import mlirml as ml


def of_ranges(x: Any) -> Any:
    return np.outer(x, range(6)), np.add(x, range(4)), np.dot(x, range(0, 8, 2)), x * range(4, 0, -1), x[range(2)]


def test_functions_and_operators_take_ranges() -> None:
    for x in (np.arange(4), np.linspace(0, 1, 4)):
        for found, expected in zip(ml.compile(of_ranges)(x), of_ranges(x), strict=True):
            assert found.dtype == expected.dtype
            np.testing.assert_array_equal(found, expected)
