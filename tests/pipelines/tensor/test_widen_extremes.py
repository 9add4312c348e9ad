"""Extremes of f16 and bf16 are those of the elements: NaN, infinities, zeros and ties among them."""

from __future__ import annotations

from collections.abc import Callable

import ml_dtypes
import numpy as np
import pytest

import mlirml as ml

DTYPES = [np.float16, ml_dtypes.bfloat16]
EXTREMES = [np.max, np.min, np.argmax, np.argmin]


def numbers(dtype: type, shape: tuple[int, ...]) -> np.ndarray:
    """Few different values, so that there are ties, and rows with infinities and NaN."""
    rng = np.random.default_rng(0)
    x = rng.integers(-40, 40, shape).astype(np.float32) / 8
    x[1, ::5], x[2, 3:5], x[3, 7] = -np.inf, np.inf, np.nan
    x[4], x[5, 2], x[6] = -np.inf, np.nan, np.nan
    x[5, -1] = np.inf
    return x.astype(dtype)


@pytest.mark.parametrize("columns", [11, 64, 300])
@pytest.mark.parametrize("axis", [0, 1, None])
@pytest.mark.parametrize("extreme", EXTREMES, ids=lambda each: each.__name__)
@pytest.mark.parametrize("dtype", DTYPES, ids=lambda each: each.__name__)
def test_narrow_extremes_are_elements(
    dtype: type, extreme: Callable[..., np.ndarray], axis: int | None, columns: int
) -> None:
    x = numbers(dtype, (40, columns))
    result = ml.compile(lambda x: extreme(x, axis=axis))(x)
    expected = extreme(x.astype(np.float32), axis=axis)
    assert result.dtype == (np.int64 if extreme in (np.argmax, np.argmin) else dtype)
    np.testing.assert_array_equal(np.asarray(result, np.float64), np.asarray(expected, np.float64))


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda each: each.__name__)
def test_extremes_that_ignore_nan(dtype: type) -> None:
    x = numbers(dtype, (40, 64))[7:]
    x[::2, ::3] = np.nan
    result = ml.compile(lambda x: np.nanmax(x, axis=1))(x)
    np.testing.assert_array_equal(np.asarray(result, np.float64), np.nanmax(x.astype(np.float64), axis=1))


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda each: each.__name__)
def test_an_extreme_with_an_initial_value_and_its_other_readers(dtype: type) -> None:
    def centred(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        most = np.max(x, axis=-1, keepdims=True, initial=1)
        return x - most, most

    x = numbers(dtype, (40, 64))[7:]
    difference, most = ml.compile(centred)(x)
    expected = np.max(x.astype(np.float32), axis=-1, keepdims=True, initial=1).astype(dtype)
    np.testing.assert_array_equal(most.astype(np.float32), expected.astype(np.float32))
    np.testing.assert_array_equal(difference.astype(np.float32), (x - expected).astype(np.float32))


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda each: each.__name__)
def test_no_extreme_of_narrow_floats_is_left(dtype: type) -> None:
    text = ml.compile(lambda x: np.max(x, axis=1)).ir("optimize", np.ones((40, 64), dtype))
    assert "arith.maximumf" in text
    assert not any("maximumf" in line and line.endswith(("f16", "bf16")) for line in text.splitlines())
