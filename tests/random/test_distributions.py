"""Distributions against those of SciPy, by statistical tests with fixed seeds, and across targets."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import special, stats

import mlirml as ml
from mlirml import random
from mlirml.random.quantiles import normal_quantile

COUNT = 100_000
FLOATS = (np.float32, np.float64)


def drawn(function: object, seed: int = 0) -> np.ndarray:
    """Numbers by the compiled function of a key."""
    return ml.compile(function)(random.key(seed))


def agrees(sample: np.ndarray, distribution: object) -> bool:
    """True if a Kolmogorov-Smirnov test of the sample finds nothing."""
    return bool(stats.kstest(sample.astype(np.float64), distribution.cdf).pvalue > 1e-3)  # type: ignore[attr-defined]


@pytest.mark.parametrize("dtype", FLOATS)
def test_uniform(dtype: type) -> None:
    sample = drawn(lambda key: random.uniform(key, (COUNT,), dtype, low=-1.0, high=3.0))
    assert sample.dtype == dtype and sample.min() >= -1 and sample.max() < 3
    assert agrees(sample, stats.uniform(-1, 4))
    assert not agrees(sample, stats.uniform(-1, 4.05))


@pytest.mark.parametrize("dtype", FLOATS)
def test_normal(dtype: type) -> None:
    sample = drawn(lambda key: random.normal(key, (COUNT,), dtype, loc=2.0, scale=0.5))
    assert sample.dtype == dtype and agrees(sample, stats.norm(2, 0.5))
    assert not agrees(sample, stats.norm(2.01, 0.5)) and not agrees(sample, stats.norm(2, 0.53))


def test_bits_are_even() -> None:
    sample = drawn(lambda key: random.bits(key, (COUNT,), np.uint64))
    counts = np.array([np.sum((sample >> np.uint64(i)) & np.uint64(1)) for i in range(64)], float)
    assert stats.chisquare(np.stack([counts, COUNT - counts]), axis=0).pvalue.min() > 1e-4
    low = np.bincount((sample & np.uint64(255)).astype(int), minlength=256)
    assert stats.chisquare(low).pvalue > 1e-3


def test_neighbours_and_keys_are_independent() -> None:
    rows = drawn(lambda key: random.normal(key, (2, COUNT)))
    keys = random.split(random.key(5))
    others = np.stack([random.normal(key, (COUNT,)) for key in keys])
    for first, second in ((rows[0], rows[1]), (rows[0][1:], rows[0][:-1]), tuple(others)):
        assert abs(np.corrcoef(first, second)[0, 1]) < 4 / np.sqrt(COUNT)


def test_normal_quantiles_are_those_of_scipy() -> None:
    tail = np.concatenate([2.0 ** -np.arange(1, 52), np.random.default_rng(0).random(20_000)])
    for u, sign in ((tail - 1, 1), (1 - tail, -1)):
        exact = sign * special.ndtri((1 + u) / 2 if sign == 1 else (1 - u) / 2)
        assert np.max(np.abs(normal_quantile(u[1:]) / exact[1:] - 1)) < 2e-15
    u = np.random.default_rng(0).uniform(-1, 1, 20_000).astype(np.float32)
    u = u[np.abs(u) < 1]
    exact = special.erfinv(u.astype(np.float64)) * np.sqrt(2)
    assert np.max(np.abs(normal_quantile(u) - exact) / np.maximum(np.abs(exact), 1e-3)) < 2e-6


def test_derivatives_by_location_and_scale() -> None:
    key = random.key(0)
    noise = random.normal(key, (5,))

    def loss(loc: float, scale: float) -> float:
        return np.sum(random.normal(key, (5,), loc=loc, scale=scale) ** 2)

    x = loc, scale = 0.3, 2.0
    expected = (np.sum(2 * (loc + scale * noise)), np.sum(2 * (loc + scale * noise) * noise))
    assert np.allclose(ml.grad(loss, argnums=(0, 1))(*x), expected, rtol=1e-13)
    assert np.allclose(ml.jvp(loss, x, (0.0, 1.0))[1], expected[1], rtol=1e-13)
    assert np.allclose(ml.hessian(loss)(*x), 10.0)
