"""Infinities and NaN of the operands are met only by the elements that they belong to."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from ml_dtypes import bfloat16

import mlirml as ml
from tests.fuzz.oracle import check


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16, bfloat16, np.complex128, np.int8, np.bool_])
@pytest.mark.parametrize("sizes", [(3, 2), (2, 3), (1, 1), (12, 10), (10, 14), (300, 70)])
@np.errstate(all="ignore")
def test_padding_of_convolutions_is_multiplied_by_nothing(sizes: tuple[int, int], dtype: Any) -> None:
    def every(a: Any, b: Any) -> list[Any]:
        return [f(a, b, mode) for f in (np.convolve, np.correlate) for mode in ("full", "same", "valid")]

    rng = np.random.default_rng(0)
    a, b = (rng.integers(-3, 4, n).astype(dtype) for n in sizes)
    if a.dtype.kind not in "bi":
        a[-1], a[len(a) // 2], b[0] = np.nan, -np.inf, np.inf
    for given, expected in zip(ml.compile(every)(a, b), every(a, b)):
        assert given.dtype == expected.dtype
        assert np.array_equal(np.isnan(given), np.isnan(expected))
        assert np.array_equal(given[~np.isnan(given)], expected[~np.isnan(expected)])


@pytest.mark.parametrize("subscripts", ["j,l->", "j,l,j->", "j,l->j", "j,l,l->j"])
@pytest.mark.parametrize("dtype", [np.float64, np.float16, np.complex64, np.bool_])
def test_an_einsum_of_nothing_beside_infinities(subscripts: str, dtype: Any) -> None:
    x, empty = np.array([np.inf, 1]).astype(dtype), np.zeros(0, dtype)

    def f(x: Any, empty: Any) -> Any:
        return np.einsum(subscripts, *({"j": x, "l": empty}[c] for c in subscripts.split("->")[0].split(",")))

    check(f, x, empty)
