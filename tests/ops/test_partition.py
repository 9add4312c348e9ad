"""Partitions by NumPy's contract: the elements asked for are where a sort has them, smaller before, larger after."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mlirml as ml

LENGTHS = (1, 5, 511, 512, 700, 2000, 30_011)


def drawn(rng: np.random.Generator, dtype: np.dtype, shape: tuple[int, ...]) -> np.ndarray:
    """Numbers of a random distribution: with ties, zeros of both signs, NaN, in order, or one that misleads samples."""
    pick = rng.integers(6)
    x = rng.normal(size=shape) * 100
    if pick == 1:
        x = rng.integers(0, 4, shape).astype(np.float64)
    elif pick == 2:
        x = np.sort(x, axis=-1)[..., :: rng.choice([-1, 1])]
    elif pick == 3:
        x[rng.random(shape) < 0.6] = 0
        x = np.where(rng.random(shape) < 0.5, -x, x)
    elif pick == 4:
        x[rng.random(shape) < 0.3] = np.nan if dtype.kind == "f" else 7
    elif pick == 5:
        x = np.exp(np.abs(x) / 20)
    with np.errstate(all="ignore"):
        return np.abs(x).astype(dtype) if dtype.kind == "u" else x.astype(dtype)


def check(x: np.ndarray, kth: Any, found: np.ndarray) -> None:
    """The contract, and that no element is lost, the sign of zeros included."""
    if x.dtype == np.float16:  # NumPy 2.5 does not sort f16 with zeros of both signs where it uses AVX-512
        x, found = x.astype(np.float64), found.astype(np.float64)
    expected = np.sort(x, axis=-1)
    np.testing.assert_array_equal(np.sort(found, axis=-1), expected)
    if x.dtype.kind == "f":
        np.testing.assert_array_equal(np.sum(np.signbit(found), -1), np.sum(np.signbit(x), -1))
    for k in np.atleast_1d(kth) % x.shape[-1]:
        np.testing.assert_array_equal(found[..., k], expected[..., k])
        np.testing.assert_array_equal(np.sort(found[..., :k], axis=-1), expected[..., :k])


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "i1", "u2", "i4", "u8", "i8"])
def test_partitions_keep_the_contract(dtype: str) -> None:
    rng = np.random.default_rng([8, *dtype.encode()])
    for n in LENGTHS:
        ranges = [[n // 2, n - n // 2 - 1], [n // 3, min(n // 3 + 7, n - 1)], [0, n - 1]]
        for kth in (0, min(1, n - 1), n // 2, n - 1, -n, *ranges):
            both = ml.compile(lambda x: (np.partition(x, kth), np.argpartition(x, kth)))  # noqa: B023
            x = drawn(rng, np.dtype(dtype), (3, n) if rng.integers(2) else (n,))
            values, positions = both(x)
            check(x, kth, values)
            check(x, kth, np.take_along_axis(x, positions, -1))


def test_a_sample_that_misleads_a_partition() -> None:
    """The sampled positions, which are those of `pivots` in runtime/native/sort.cpp, have elements of one end only."""
    rng = np.random.default_rng(3)
    for n in (600, 5000, 100_000):
        size, state, mask = int(0.5 * n ** (2 / 3)), 1, 2**64 - 1
        step, sampled = n // size, []
        for j in range(size):
            state = (state * 6364136223846793005 + 1442695040888963407) & mask
            sampled.append(j * step + ((state >> 32) * step >> 32))
        for sign in (-1, 1):
            x = rng.normal(size=n)
            x[sampled] = sign * (1e6 + rng.random(size))
            for k in (5, n // 2, n - 5):
                values, positions = ml.compile(lambda x: (np.partition(x, k), np.argpartition(x, k)))(x)  # noqa: B023
                check(x, k, values)
                check(x, k, x[positions])


def test_other_axes_and_orders_of_the_kth() -> None:
    x = np.random.default_rng(0).normal(size=(900, 3))
    found = ml.compile(lambda x: np.partition(x, [5, 3], axis=0))(x)
    check(x.T, [3, 5], found.T)
    check(x.ravel(), 7, ml.compile(lambda x: np.partition(x, 7, axis=None))(x))


def test_the_threads_do_not_change_a_partition() -> None:
    x = np.random.default_rng(1).normal(size=(40, 3000))
    partition = ml.compile(lambda x: (np.partition(x, 11), np.argpartition(x, 11)))
    before = ml.config.threads
    results = []
    try:
        for threads in (1, 3):
            ml.config.threads = threads
            results.append(partition(x))
    finally:
        ml.config.threads = before
    for one, other in zip(*results):
        np.testing.assert_array_equal(one, other)


def test_derivatives_and_lanes_of_a_partition() -> None:
    rng = np.random.default_rng(2)
    x, v, weights = rng.normal(size=(3, 2000)), rng.normal(size=(3, 2000)), rng.normal(size=2000)

    def weighed(x: Any) -> Any:  # the sum of each side does not depend on the order in it
        y = np.partition(x, 700, axis=-1) ** 2
        return np.sum(y[..., :700]) + 3 * np.sum(y[..., 700]) + 5 * np.sum(y[..., 701:])

    rank = np.argsort(np.argsort(x, axis=-1), axis=-1)
    expected = 2 * x * np.where(rank < 700, 1, np.where(rank == 700, 3, 5))
    np.testing.assert_allclose(ml.grad(weighed)(x), expected)
    np.testing.assert_allclose(ml.jvp(weighed, (x,), (v,))[1], np.sum(expected * v))
    # each element of the tangent is the one of the element that is in its position
    y, dy = ml.jvp(lambda x: np.partition(x, 700, axis=-1), (x,), (v,))
    of_value = dict(zip(x.ravel(), v.ravel()))
    np.testing.assert_array_equal(dy.ravel(), [of_value[value] for value in y.ravel()])
    lanes = ml.compile(ml.vmap(lambda row: np.partition(row, 5)[5] * weights[5]))(x)
    np.testing.assert_allclose(lanes, np.sort(x, axis=-1)[:, 5] * weights[5])


@pytest.mark.parametrize("dtype", ["f4", "f8", "i8"])
@pytest.mark.parametrize("n", [1000, 1001])
def test_medians_and_quantiles_of_long_rows(dtype: str, n: int) -> None:
    rng = np.random.default_rng([n, *dtype.encode()])
    for nan in (False, True):
        x = (rng.normal(size=(4, n)) * 1000).astype(dtype)
        if nan and dtype != "i8":
            x[1, 7] = x[2] = np.nan
        for function in (
            lambda x: np.median(x, axis=-1),
            lambda x: np.median(x),
            lambda x: np.quantile(x, 0.3, axis=-1),
            lambda x: np.percentile(x, [10, 10.02, 90], axis=1),
            lambda x: np.nanmedian(x[:2], axis=1),
        ):
            np.testing.assert_allclose(ml.compile(function)(x), function(x), rtol=1e-6 if dtype == "f4" else 1e-13)
