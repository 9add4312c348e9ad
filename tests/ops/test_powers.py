"""Powers with a known exponent: products and roots instead of `pow`, within 2 ulp and with its special values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from ml_dtypes import bfloat16

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


DTYPES = [
    np.bool_, np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64, np.float16, bfloat16,
    np.float32, np.float64, np.complex64, np.complex128,
]  # fmt: skip
EXPONENTS: list[Any] = [
    True, False, 0, 1, 2, 3, -1, 0.5, 1.0, 2.0, 3.0, -0.5, -1.0, -1.5, 2 + 0j,
    *(dtype(1) if dtype is np.bool_ else dtype(2) for dtype in DTYPES),
    *(np.array([1, 0, 1] if dtype is np.bool_ else [0, 1, 3], dtype) for dtype in DTYPES),
]  # fmt: skip
POWERS: dict[str, Callable[[Any, Any], Any]] = {
    "x ** e": lambda x, e: x**e,
    "np.power(x, e)": np.power,
    "e ** x": lambda x, e: e**x,
    "np.power(e, x)": lambda x, e: np.power(e, x),
    "x[0] ** e": lambda x, e: x[0] ** e,
    "np.asarray(x[0]) ** e": lambda x, e: np.array(x[0]) ** e,
    "np.float_power(x, e)": np.float_power,
}


@pytest.mark.parametrize("name", POWERS)
@pytest.mark.parametrize("dtype", DTYPES, ids=lambda dtype: dtype.__name__)
@np.errstate(all="ignore")
def test_dtypes_of_powers(dtype: Any, name: str) -> None:
    """All exponents in one program; those that NumPy refuses are refused."""
    power = POWERS[name]
    x = np.array([1, 0, 1] if dtype is np.bool_ else [0, 1, 3], dtype)
    exponents, refused = [], []
    for exponent in EXPONENTS:
        try:
            power(x, exponent)
            exponents.append(exponent)
        except (TypeError, ValueError, OverflowError):
            refused.append(exponent)

    def powers(x: Any) -> list[Any]:
        return [power(x, e) for e in exponents]

    for exponent, given, expected in zip(exponents, ml.compile(powers, "reference")(x), powers(x)):
        assert given.dtype == expected.dtype, exponent
        wide = [np.asarray(v).astype(np.complex128) for v in (given, expected)]
        accuracy = {2: 1e-2, 4: 1e-5}.get(np.asarray(expected).real.dtype.itemsize, 1e-12)
        if expected.dtype.kind not in "biu":
            assert np.allclose(*wide, rtol=accuracy, atol=accuracy, equal_nan=True), exponent
        else:
            assert np.array_equal(given, expected), exponent
    for exponent in refused:
        with pytest.raises(ml.MlirmlError):
            ml.trace(lambda x, e=exponent: power(x, e), x)
