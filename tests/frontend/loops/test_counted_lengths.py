"""`np.repeat`, `np.bincount` and others whose results are as long as the data say, in compiled functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mlirml as ml

Array = Any
RNG = np.random.default_rng(0)


def repeated(x: Array, counts: Array) -> Array:
    return np.repeat(x, counts)


def by_method(x: Array, counts: Array) -> Array:
    return x.repeat(counts) + 1


def rows(x: Array, counts: Array) -> Array:
    return np.repeat(np.stack([x, x + 1], axis=1), counts, axis=0)


def columns(x: Array, counts: Array) -> Array:
    return np.repeat(np.stack([x, x + 1]), repeats=counts, axis=-1)


def decoded(x: Array, counts: Array) -> Array:
    runs = np.repeat(np.arange(len(x)), counts)
    return x[runs].sum(), len(runs), np.flatnonzero(runs > 1)


def histogram(x: Array, counts: Array) -> Array:
    found = np.bincount(counts)
    return found, np.argmax(found), np.bincount(counts, weights=x)


def per_value(x: Array, counts: Array) -> Array:
    values, inverse, number = np.unique(counts, return_inverse=True, return_counts=True)
    return values[inverse], number[inverse] * x


def of_a_mask(x: Array, counts: Array) -> Array:
    y, n = x[counts > 0], counts[counts > 0]
    return np.repeat(y, n), np.repeat(n, 2), np.bincount(n), np.bincount(n, y * 2)[n] if len(n) > 0 else y * 2


def of_lists(x: Array, counts: Array) -> Array:
    values, lengths = [], []
    for i in range(len(x)):
        if counts[i] > 0:
            values.append(x[i])
            lengths.append(counts[i])
    return np.repeat(values, lengths)


def exclusive(x: Array, counts: Array) -> Array:
    return np.setxor1d(x.astype(np.int64), counts), np.setxor1d(counts, counts)


FUNCTIONS: list[Callable[..., Any]] = [
    repeated, by_method, rows, columns, decoded, histogram, per_value, exclusive, of_a_mask, of_lists,
]  # fmt: skip
COUNTS = {
    "some": [1, 2, 0, 3, 1, 0, 2],
    "none": [0] * 7,
    "first": [5, 0, 0, 0, 0, 0, 0],
    "last": [0, 0, 0, 0, 0, 0, 9],
    "many": [700, 3, 0, 20_000, 1, 0, 2],
}


def compare(got: Any, expected: Any) -> None:
    got, expected = (each if isinstance(each, tuple) else (each,) for each in (got, expected))
    for x, y in zip(got, expected, strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-13)
        assert np.asarray(x).dtype == np.asarray(y).dtype


@pytest.mark.parametrize("target", ["cpu", "reference"])
@pytest.mark.parametrize("function", FUNCTIONS)
def test_results_are_those_of_numpy(function: Callable[..., Any], target: str) -> None:
    compiled = ml.compile(function, target=target)
    x = np.array([3.0, 1.0, 2.0, 3.0, 7.0, 0.0, 1.0])
    for name, given in COUNTS.items():
        if name != "many" or target == "cpu":
            counts = np.array(given)
            compare(compiled(x, counts), function(x, counts))


def test_one_count_is_a_number_that_the_program_is_for() -> None:
    compiled = ml.compile(lambda x, n: np.repeat(x, n).reshape(-1, n))
    for n in (1, 3):
        compare(compiled(np.arange(4.0), n), np.repeat(np.arange(4.0), n).reshape(-1, n))


def total_of_squares(x: Array, counts: Array) -> Array:
    return (np.repeat(x, counts) ** 2).sum()


def test_derivatives_go_back_to_the_elements() -> None:
    x, counts = np.array([1.0, 2.0, 3.0]), np.array([2, 0, 5])
    np.testing.assert_allclose(ml.compile(ml.grad(total_of_squares))(x, counts), 2 * x * counts)


def in_a_loop(x: Array, counts: Array) -> Array:
    total = 0.0
    for step in range(4):
        total += np.repeat(x, counts + step)[-1] * len(np.bincount(counts + step))
    return total


def test_lengths_in_loops() -> None:
    x, counts = np.array([1.0, 2.0, 3.0]), np.array([2, 0, 1])
    assert ml.compile(in_a_loop)(x, counts) == in_a_loop(x, counts)


@pytest.mark.parametrize("seed", range(20))
def test_random_counts(seed: int) -> None:
    rng = np.random.default_rng(seed)
    size = int(rng.integers(1, 40))
    x, counts = rng.standard_normal(size), rng.integers(0, int(rng.integers(1, 90)), size)
    for function in (repeated, columns, decoded, histogram):
        compare(ml.compile(function)(x, counts), function(x, counts))


@pytest.mark.parametrize("bins", ["auto", "fd", "doane", "scott", "rice", "sturges", "sqrt"])
@pytest.mark.parametrize("size", [1, 2, 7, 300, 20_000])
def test_edges_of_estimated_bins(bins: str, size: int) -> None:
    def edges(x: Array) -> Array:
        return np.histogram_bin_edges(x, bins)

    compiled = ml.compile(edges)
    given = RNG.standard_normal(size)
    for x in (given, np.exp(3 * given), (given * 50).astype(np.int64), np.ones(size)):
        np.testing.assert_allclose(compiled(x), edges(x), rtol=1e-12, atol=1e-12)
    with pytest.raises(ml.MlirmlError, match="the range is not finite"):
        compiled(np.full(size, np.nan))


@pytest.mark.parametrize(
    ("function", "counts", "message"),
    [
        (repeated, [1, -2, 3], "repeats cannot be negative"),
        (repeated, [1, 2], "2 repeats for 3 elements"),
        (repeated, [1.0, 2.0, 3.0], "repeats must be integers"),
        (histogram, [1, -2, 3], "a number is negative"),
    ],
)
def test_errors(function: Callable[..., Any], counts: list[Any], message: str) -> None:
    with pytest.raises(ml.MlirmlError, match=message):
        ml.compile(function)(np.arange(3.0), np.array(counts))


def stored(x: Array, counts: Array) -> Array:
    x += 1
    found = np.repeat(x, counts)
    x[0] = found[-1]
    return found


def test_calls_that_are_repeated_with_more_room_store_once() -> None:
    compiled, x, expected = ml.compile(stored), np.ones(3), np.ones(3)
    for counts in ([1, 2, 3], [2, 2, 2], [900, 2, 30_000], [1, 1, 1]):
        np.testing.assert_array_equal(compiled(x, np.array(counts)), stored(expected, np.array(counts)))
        np.testing.assert_array_equal(x, expected)
