"""Dtypes of `np.clip` with a bfloat16 among the array and its limits, of which NumPy has no common dtype."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from ml_dtypes import bfloat16

import mlirml as ml

DTYPES = [np.bool_, np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.float16, np.float64]


@pytest.mark.parametrize("dtype", [*DTYPES, bfloat16], ids=lambda dtype: dtype.__name__)
def test_dtypes_of_limits(dtype: Any) -> None:
    half, x = np.array([1, -1, 0.5], bfloat16), np.array([0, 1, 1], dtype)
    numbers = [-2, 2, -2.0, True]
    limits = [(low, half) for low in numbers] + [(half, high) for high in numbers]
    limits += [(np.zeros(3, other), half) for other in DTYPES] + [(half, np.ones(3, other)) for other in DTYPES]

    def clips(x: Any) -> list[Any]:
        return [np.clip(x, low, high) for low, high in limits]

    for (low, high), given, expected in zip(limits, ml.compile(clips, "reference")(x), clips(x), strict=True):
        assert given.dtype == expected.dtype, (low, high)
        assert np.array_equal(given.astype(np.float64), expected.astype(np.float64)), (low, high)
