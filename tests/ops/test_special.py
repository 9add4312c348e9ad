"""The error functions against libm, SciPy's on traced arrays, and casts of floats that fit no integer."""

from __future__ import annotations

import math
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import scipy.special

import mlirml as ml
import mlirml.numpy as mnp

INTEGERS = ["i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8"]


@pytest.mark.parametrize("name", ["erf", "erfc"])
def test_error_functions_of_real_arrays(name: str) -> None:
    x = np.concatenate([np.linspace(-7, 28, 5000), [0.0, -0.0, np.inf, -np.inf, np.nan, 1e-310, 0.46875, 4.0]])
    exact = np.array([getattr(math, name)(v) for v in x.tolist()])
    given = getattr(mnp, name)(x)
    unit = np.spacing(np.abs(exact))
    assert (np.isnan(given) == np.isnan(exact)).all()
    assert (np.abs(given - exact)[~np.isnan(exact)] <= 5 * unit[~np.isnan(exact)]).all()
    assert getattr(mnp, name)(np.float32(0.5)).dtype == np.float32
    assert getattr(mnp, name)(np.arange(3)).dtype == np.float64


def test_scipy_error_functions() -> None:
    x = np.linspace(-3, 3, 100)
    given = ml.compile(lambda x: scipy.special.erf(x) + 2 * scipy.special.erfc(x))(x)
    np.testing.assert_allclose(given, scipy.special.erf(x) + 2 * scipy.special.erfc(x), rtol=1e-14)


@pytest.mark.parametrize("target", ["cpu", "reference"])
@pytest.mark.parametrize("integer", INTEGERS)
@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float32, np.float64])
def test_casts_to_integers(dtype: Any, integer: str, target: str) -> None:
    """Negative and large numbers keep their low bits in narrow and unsigned integers, as on x86."""
    finite = [0, -0.0, 0.5, -0.5, 1.5, -1.5, 127.9, 128, -129, 255.5, 256, 300.7, -5, 70000, -70000, 2147483520]
    large = [3e9, -2147483648, 4294967040, 2.0**62, 2.0**63, 1.8e19, -(2.0**62)] if integer[1] in "48" else []
    unknown = [np.nan, np.inf, -np.inf, 1e30, -1e30] if integer not in ("u4", "u8") else []
    x = np.tile(np.array([*finite, *large, *unknown]), 5)
    with np.errstate(all="ignore"):
        x = x.astype(dtype)
        if integer in ("i4", "u4"):  # beyond them NumPy's results depend on the place in the array
            x = x[np.abs(x.astype(np.float64)) < 2.0 ** (31 if integer == "i4" else 32)]
        elif integer in ("i8", "u8"):
            x = x[np.isfinite(x) & (np.abs(x.astype(np.float64)) < 2.0 ** (63 if integer == "i8" else 64))]
        expected = x.astype(integer)
        given = ml.compile(lambda x: x.astype(integer), target)(x)
    np.testing.assert_array_equal(given, expected)


def test_bytes_of_truth_values() -> None:
    """Every byte but 0 is true, whatever the operation."""
    x = np.arange(256, dtype=np.uint8).view(np.bool_)
    for function in (lambda x: x.astype(int), lambda x: ~x, lambda x: x.sum(), lambda x: np.where(x, 2.5, 1.5)):
        np.testing.assert_array_equal(ml.compile(function)(x), function(x))
