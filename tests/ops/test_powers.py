"""Powers with a known exponent: products and roots instead of `pow`, within 2 ulp and with its special values."""

from __future__ import annotations

import numpy as np
import pytest

import mlirml as ml


def samples(dtype: type) -> np.ndarray:
    limits, random = np.finfo(dtype), np.random.default_rng(3)
    spread = np.ldexp(random.uniform(1, 2, 5000), random.integers(limits.minexp - 20, limits.maxexp, 5000))
    special = [0, np.inf, np.nan, 1, limits.max, limits.tiny, limits.smallest_subnormal]
    with np.errstate(over="ignore"):
        positive = np.concatenate([spread, random.uniform(0, 5, 5000), special]).astype(dtype)
    return np.concatenate([positive, -positive])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("exponent", [3, 4, 2.0, 0.5, 1.5, -0.5, -1.5, -1])
def test_known_exponents(exponent: float, dtype: type) -> None:
    x = samples(dtype)
    result = ml.compile(lambda x: x**exponent)(x)
    with np.errstate(all="ignore"):
        expected = x**exponent
        exact = x.astype(np.longdouble) ** np.longdouble(exponent)
    assert result.dtype == expected.dtype
    finite = np.isfinite(expected) & (expected != 0)
    assert np.array_equal(result[~finite], expected[~finite], equal_nan=True)
    assert np.array_equal(np.signbit(result[expected == 0]), np.signbit(expected[expected == 0]))
    error = np.abs(result[finite] - exact[finite]) / np.spacing(np.abs(expected[finite]))
    assert error.max() < 2


def test_known_exponents_of_other_numbers() -> None:
    for x in (np.arange(-4, 5), np.arange(9, dtype=np.uint8), np.linspace(0, 4, 9, dtype=np.float16), 1.5, -2):
        result, expected = ml.compile(lambda x: x**3)(x), x**3
        assert np.array_equal(result, expected)
        assert result.dtype == np.asarray(expected).dtype
