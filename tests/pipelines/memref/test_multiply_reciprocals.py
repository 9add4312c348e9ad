"""Quotients by what is the same in a loop are those of NumPy, to the last bit for all but extreme numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import mlirml as ml

SPECIAL = [0.0, -0.0, np.inf, -np.inf, np.nan, 5e-324, -1e-310, 2.0**-500, 2.0**501, np.finfo(np.float64).max, 1, -3]
PROCESSOR = "x86-64-v3"


def numbers(count: int) -> np.ndarray:
    """Special numbers, ordinary ones, integers, and such as have any exponent."""
    rng = np.random.default_rng(0)
    any_bits = rng.integers(0, 1 << 64, count, dtype=np.uint64).view(np.float64)
    return np.concatenate([SPECIAL, rng.normal(size=count), np.arange(-count, count), any_bits])


def explained(compiled: Any) -> str:
    return str(compiled.explain()).partition("algebra of signature")[2]


@pytest.fixture(autouse=True)
def processor() -> Any:
    with ml.config.override(processor=PROCESSOR), np.errstate(all="ignore"):
        yield


def check_quotients(found: np.ndarray, x: np.ndarray, divisor: Any) -> None:
    """Bits are those of NumPy; where dividends or quotients are extreme, all but the last two."""
    expected = x / divisor
    same = (found == expected) & (np.signbit(found) == np.signbit(expected)) | np.isnan(found) & np.isnan(expected)
    tiny, huge = (np.abs(x) < 1e-280) | (np.abs(expected) < 1e-300), np.abs(expected) > 1e308
    assert same[~(tiny | huge)].all()
    near = np.abs(found - expected) <= 2 * np.spacing(np.abs(expected))
    assert (same | near)[~huge].all()


def test_quotients_by_a_number_are_those_of_numpy() -> None:
    x, compiled = numbers(4000), ml.compile(lambda x, s: x / s)
    for divisor in [*SPECIAL, *numbers(60)]:
        check_quotients(compiled(x, divisor), x, divisor)
    assert "`a / b` multiplies by 1 / b" in explained(compiled)


@pytest.mark.parametrize("divisor", [3, -7.0, 49.0, 1e-3, 1e300, -1e-300])
def test_quotients_by_constants_are_those_of_numpy(divisor: float) -> None:
    x, compiled = numbers(4000), ml.compile(lambda x: x / divisor)
    check_quotients(compiled(x), x, divisor)
    assert f"`a / {divisor:g}` multiplies" in explained(compiled)


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16], ids=["f16", "bf16"])
def test_quotients_of_narrow_floats_are_those_of_numpy(dtype: Any) -> None:
    """All of them as dividends, by numbers of all exponents; of subnormal quotients the last bit may be another."""
    x = np.arange(1 << 16, dtype=np.uint16).view(dtype)
    divisors = np.arange(5, 1 << 16, 251, dtype=np.uint16).view(dtype)
    least = float(ml_dtypes.finfo(dtype).smallest_normal)
    compiled = ml.compile(lambda x, s: x / s)
    for divisor in [*np.array([0.0, -0.0, 1, 3, np.inf, -np.inf, np.nan], dtype), *divisors]:
        found, expected = (each.astype(np.float64) for each in (compiled(x, divisor), x / divisor))
        same = (found == expected) & (np.signbit(found) == np.signbit(expected)) | np.isnan(found) & np.isnan(expected)
        tiny = np.abs(expected) <= least
        assert same[~tiny].all()
        spacing = least * float(ml_dtypes.finfo(dtype).eps)
        assert (np.abs(found - expected)[tiny] <= (spacing if dtype == np.float16 else least)).all()
    assert "`a / b` multiplies by 1 / b" in explained(compiled)


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16], ids=["f16", "bf16"])
def test_narrow_quotients_by_constants_are_those_of_numpy(dtype: Any) -> None:
    x = np.arange(1 << 16, dtype=np.uint16).view(dtype)
    for divisor in (dtype(3), dtype(-49), dtype(1e-3)):
        compiled = ml.compile(lambda x, by=divisor: x / by)
        found, expected = (each.astype(np.float64) for each in (compiled(x), x / divisor))
        normal = ~(np.abs(expected) <= float(ml_dtypes.finfo(dtype).smallest_normal))
        np.testing.assert_array_equal(found[normal], expected[normal])
        assert "multiplies by 1 / " in explained(compiled)


def by_sums(x: Any) -> Any:
    return x / x.sum(axis=1, keepdims=True)


def softmax(x: Any) -> Any:
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def floors(x: Any) -> Any:
    return np.floor(x / x[0, 0])


def in_loops(x: Any) -> Any:
    y = np.zeros_like(x)
    for i in range(x.shape[0]):
        for j in range(1, x.shape[1]):
            y[i, j] = y[i, j - 1] * 0.5 + x[i, j] / x[i, 0]
    return y


@pytest.mark.parametrize("function", [by_sums, softmax, floors, in_loops], ids=lambda f: f.__name__)
def test_rows_are_divided(function: Callable[..., Any]) -> None:
    x = np.random.default_rng(1).uniform(1, 2, (40, 70))
    compiled = ml.compile(function)
    np.testing.assert_allclose(compiled(x), function(x), rtol=1e-14)
    assert "multiplies by 1 / b" in explained(compiled)


def test_exact_results_stay_exact() -> None:
    """49 * (1 / 49) is less than 1: a product alone is not enough."""
    x = np.arange(1.0, 200) * 49
    np.testing.assert_array_equal(ml.compile(lambda x, s: np.floor(x / s))(x, 49.0), np.arange(1, 200))


def test_quotients_stay_in_exact_and_where_they_are_fast() -> None:
    x = np.random.default_rng(1).uniform(1, 2, (40, 70))
    for settings, given in (
        ({"algebra": "exact"}, x),
        ({"processor": "x86-64-v2"}, x),
        ({}, x[:, :4].copy()),
    ):
        with ml.config.override(**settings):
            compiled = ml.compile(by_sums)
            compiled(given)
            assert explained(compiled) == ""


@pytest.mark.parametrize("dtype", [np.float32, np.float64], ids=["f32", "f64"])
def test_a_quotient_that_the_next_iteration_waits_for_stays(dtype: Any) -> None:
    """A division has less latency than two products and two multiply-adds."""

    def smoothed(x: Any, d: Any) -> Any:
        y = np.zeros_like(x)
        for i in range(1, x.shape[0]):
            y[i] = (y[i - 1] + x[i]) / d
        return y

    x = np.random.default_rng(1).uniform(1, 2, 90).astype(dtype)
    compiled = ml.compile(smoothed)
    np.testing.assert_array_equal(compiled(x, dtype(1.7)), smoothed(x, dtype(1.7)))
    assert explained(compiled) == ""


def test_quotients_of_f32_are_those_of_numpy() -> None:
    """To the last bit, but where a dividend or the quotient is so small that the rest of the product is subnormal."""
    rng = np.random.default_rng(2)
    compiled = ml.compile(lambda x, s: x / s)
    for exponent in (-140, -100, -60, -3, 0, 5, 61, 100, 127):
        x = (rng.normal(size=4000) * 2.0 ** rng.integers(-140, 128, 4000)).astype(np.float32)
        x[:6] = [0.0, -0.0, np.inf, -np.inf, np.nan, np.finfo(np.float32).max]
        for divisor in (np.float32(rng.normal() * 2.0**exponent), *np.float32([0, np.inf, np.nan])):
            found, expected = compiled(x, divisor), x / divisor
            small = (np.abs(x) < 1e-29) | (np.abs(expected) < 1e-36)
            np.testing.assert_array_equal(found[~small], expected[~small])
            np.testing.assert_array_max_ulp(found[small], expected[small], 2)
    assert "`a / b` multiplies by 1 / b" in explained(compiled)


def test_an_element_beyond_an_empty_loop_is_not_read() -> None:
    def scaled(x: Any, y: Any, count: int) -> Any:
        for i in range(count):
            x[i] = x[i] / y[count - 1]
        return x

    compiled = ml.compile(scaled)
    assert compiled(np.zeros(0), np.zeros(0), 0).shape == (0,)
    np.testing.assert_array_equal(compiled(np.arange(20.0), np.full(20, 3.0), 20), np.arange(20.0) / 3)
