"""Dtypes of reductions, integers that they start from, and elements that are not finite."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mlirml as ml

Z = np.array([1 + 2j, 30 - 1j])


@pytest.mark.parametrize("dtype", [np.int8, np.int32, np.uint16, np.float32])
@pytest.mark.filterwarnings("ignore::numpy.exceptions.ComplexWarning")
def test_complex_numbers_in_a_real_dtype(dtype: Any) -> None:
    for function in (lambda x: x.sum(dtype=dtype), lambda x: np.prod(x, dtype=dtype)):
        found, expected = ml.compile(function)(Z), function(Z)
        assert np.asarray(found).dtype == expected.dtype
        assert found == expected


@pytest.mark.parametrize("dtype", ["i1", "u1", "i2", "u2", "i4", "?", "f2", "f4", "f8"])
def test_logaddexp_reduce(dtype: str) -> None:
    x = np.array([[1, 0, 1], [0, 1, 1]]).astype(dtype)
    for options in ({}, {"axis": 1, "keepdims": True}, {"axis": None}, {"dtype": np.float64}):

        def reduced(x: Any, options: dict[str, Any] = options) -> Any:
            return np.logaddexp.reduce(x, **options)

        found, expected = np.asarray(ml.compile(reduced)(x)), np.asarray(reduced(x))
        assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
        np.testing.assert_allclose(found, expected, rtol=4 * np.finfo(expected.dtype).eps)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: np.max(x, initial=-5),
        lambda x: np.min(x, initial=300),
        lambda x: np.sum(x, initial=-5),
        lambda x: x.prod(initial=-5),
    ],
)
def test_integers_that_do_not_fit(function: Callable[..., Any]) -> None:
    x = np.array([1, 2], np.uint8)
    with pytest.raises(OverflowError):
        function(x)
    with pytest.raises(ml.IntegerRangeError, match="out of bounds for u"):
        ml.compile(function)(x)
    assert ml.compile(lambda x: np.max(x, initial=5))(x) == 5


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("roots", [[1.0, np.nan, 2.0], [np.inf, 2.0], [3.0, -1.0, 0.0], []])
def test_polynomials_of_roots_that_are_not_finite(roots: list[float]) -> None:
    np.testing.assert_allclose(ml.compile(lambda r: np.poly(r))(np.array(roots)), np.poly(np.array(roots)))


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("target", ["cpu", "reference"])
def test_histograms_of_elements_that_are_not_finite(target: str) -> None:
    def counts(x: Any) -> Any:
        return np.histogram(x, 4)

    compiled = ml.compile(counts, target)
    for number in (np.nan, np.inf, -np.inf):
        x = np.array([1.0, number])
        with pytest.raises(ValueError, match="is not finite"):
            counts(x)
        with pytest.raises(ml.errors.ShapeError, match="the range of the elements is not finite"):
            compiled(x)
    x = np.array([1.0, 2.0, 2.5])
    np.testing.assert_array_equal(compiled(x)[0], counts(x)[0])
    within = ml.compile(lambda x: np.histogram(x, 4, range=(0, 4))[0], target)(np.array([1.0, np.inf]))
    np.testing.assert_array_equal(within, [0, 1, 0, 0])
