"""Distributions against those of SciPy, by statistical tests with fixed seeds, and across targets."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import special, stats

import mlirml as ml
from mlirml import random
from mlirml.random.continuous import unit
from mlirml.random.proposals import accepted
from mlirml.random.quantiles import normal_quantile
from tests.fuzz.oracle import TARGETS

COUNT = 100_000
FLOATS = (np.float32, np.float64)
KEY_OF_MANY = np.array([7, 11], np.uint32)


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


# Functions of a key and a dtype, the distribution, and one nearby that the test tells from it.
CONTINUOUS: dict[str, tuple[Callable[[Any, Any], Any], Any, Any]] = {
    "truncated_normal": (
        lambda key, dtype: random.truncated_normal(key, -1.0, 2.0, (COUNT,), dtype),
        stats.truncnorm(-1, 2), stats.truncnorm(-1.05, 2),
    ),
    "exponential": (
        lambda key, dtype: random.exponential(key, (COUNT,), dtype, scale=3.0),
        stats.expon(0, 3), stats.expon(0, 3.1),
    ),
    "gumbel": (
        lambda key, dtype: random.gumbel(key, (COUNT,), dtype, loc=1.0),
        stats.gumbel_r(1), stats.gumbel_r(1.03),
    ),
    "laplace": (
        lambda key, dtype: random.laplace(key, (COUNT,), dtype, scale=2.0),
        stats.laplace(0, 2), stats.laplace(0, 2.1),
    ),
    "gamma above 1": (
        lambda key, dtype: random.gamma(key, 2.5, (COUNT,), dtype, scale=2.0),
        stats.gamma(2.5, 0, 2), stats.gamma(2.55, 0, 2),
    ),
    "gamma below 1": (
        lambda key, dtype: random.gamma(key, 0.3, (COUNT,), dtype),
        stats.gamma(0.3), stats.gamma(0.31),
    ),
    "beta": (
        lambda key, dtype: random.beta(key, 0.5, 2.0, (COUNT,), dtype),
        stats.beta(0.5, 2), stats.beta(0.52, 2),
    ),
    "dirichlet": (
        lambda key, dtype: random.dirichlet(key, np.array([0.5, 1.0, 2.0]), (COUNT,), dtype)[:, 0],
        stats.beta(0.5, 3), stats.beta(0.52, 3),
    ),
}  # fmt: skip


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", CONTINUOUS)
def test_continuous(name: str, dtype: type) -> None:
    draw, distribution, other = CONTINUOUS[name]
    sample = drawn(lambda key: draw(key, dtype), seed=3)
    assert sample.dtype == dtype and sample.shape == (COUNT,)
    assert agrees(sample, distribution) and not agrees(sample, other)


def fits(sample: np.ndarray, distribution: Any) -> bool:
    """True if a chi-square test of integers, those with few expected joined at the ends, finds nothing."""
    low, high = int(distribution.ppf(1e-3)), int(distribution.ppf(1 - 1e-3))
    edges = np.arange(low, high)
    expected = np.diff(np.concatenate([[0.0], distribution.cdf(edges), [1.0]]))
    counts = np.bincount(np.searchsorted(edges, sample), minlength=len(expected))
    return bool(stats.chisquare(counts, expected * len(sample)).pvalue > 1e-3)


@pytest.mark.parametrize("lam", [0.7, 9.5, 10.5, 60.0, 1e4])
def test_poisson(lam: float) -> None:
    sample = drawn(lambda key: random.poisson(key, lam, (COUNT,)))
    assert sample.dtype == np.int64
    assert fits(sample, stats.poisson(lam)) and not fits(sample, stats.poisson(lam * 1.05))


def test_poisson_of_several_rates() -> None:
    rates = np.array([0.0, 2.0, 30.0])
    sample = drawn(lambda key: random.poisson(key, rates, (COUNT, 3)))
    assert not sample[:, 0].any()
    assert fits(sample[:, 1], stats.poisson(2.0)) and fits(sample[:, 2], stats.poisson(30.0))
    assert ml.compile(lambda lam: random.poisson(random.key(0), lam))(np.array([-1.0, np.nan])).tolist() == [-1, -1]


def test_integers() -> None:
    for low, high in ((-3, 10), (0, 64), (-(1 << 40), 1 << 41)):
        sample = drawn(lambda key, low=low, high=high: random.randint(key, (COUNT,), low, high))
        assert sample.min() >= low and sample.max() < high
        bins = np.minimum(13, high - low)
        counts = np.bincount(((sample - low).astype(float) * bins / (high - low)).astype(int), minlength=bins)
        widths = np.diff(np.ceil(np.arange(bins + 1) * (high - low) / bins))
        assert stats.chisquare(counts, COUNT * widths / (high - low)).pvalue > 1e-3
        dynamic = ml.compile(lambda key, low, high: random.randint(key, (COUNT,), low, high))
        assert np.array_equal(dynamic(random.key(0), low, high), sample)
    assert set(drawn(lambda key: random.randint(key, (COUNT,), 0, 256, np.uint8)).tolist()) == set(range(256))


def test_truth_values_and_classes() -> None:
    sample = drawn(lambda key: random.bernoulli(key, 0.3, (COUNT,)))
    assert sample.dtype == np.bool_ and stats.binomtest(int(sample.sum()), COUNT, 0.3).pvalue > 1e-3
    p = np.array([0.1, 0.2, 0.7])
    for draw in (
        lambda key: random.categorical(key, np.log(p) + 5.0, shape=(COUNT,)),
        lambda key: random.choice(key, 3, (COUNT,), p=p),
        lambda key: random.choice(key, np.arange(3), (COUNT,), p=p),
    ):
        assert stats.chisquare(np.bincount(drawn(draw)), p * COUNT).pvalue > 1e-3


def test_orders_are_even() -> None:
    keys = random.split(random.key(0), 6000)
    for draw in (
        lambda key: random.permutation(key, 3),
        lambda key: random.permutation(key, np.arange(3)),
        lambda key: random.choice(key, 3, (3,), replace=False),
    ):
        orders = ml.vmap(draw)(keys) @ np.array([9, 3, 1])
        counts = np.unique(orders, return_counts=True)[1]
        assert len(counts) == 6 and stats.chisquare(counts).pvalue > 1e-3
    p = np.array([0.1, 0.2, 0.3, 0.4])
    first = ml.vmap(lambda key: random.choice(key, 4, (2,), replace=False, p=p))(keys)
    assert np.all(first[:, 0] != first[:, 1]) and stats.chisquare(np.bincount(first[:, 0]), p * 6000).pvalue > 1e-3


def test_multivariate_normal() -> None:
    mean, cov = np.array([1.0, -2.0]), np.array([[2.0, 0.6], [0.6, 0.5]])
    sample = drawn(lambda key: random.multivariate_normal(key, mean, cov, (COUNT,)), seed=4)
    assert np.allclose(sample.mean(0), mean, atol=0.02) and np.allclose(np.cov(sample.T), cov, atol=0.03)
    assert agrees(sample @ np.array([1.0, 1.0]), stats.norm(-1, np.sqrt(cov.sum())))


@pytest.mark.parametrize("target", TARGETS)
def test_targets_agree(target: str) -> None:
    def draws(key: Any) -> Any:
        keys = random.split(key, 9)
        return (
            random.gamma(keys[0], np.array([0.5, 3.0]), (20, 2)),
            random.poisson(keys[1], np.array([2.0, 30.0]), (20, 2)),
            random.beta(keys[2], 0.5, 0.5, 9, np.float32), random.dirichlet(keys[3], np.ones(4), 3),
            random.permutation(keys[4], 20), random.categorical(keys[5], np.ones((4, 5))), random.gumbel(keys[6], 9),
            random.laplace(keys[7], 9), random.truncated_normal(keys[8], 0.0, 1.0, 9),
        )  # fmt: skip

    for expected, found in zip(draws(random.key(1)), ml.compile(draws, target=target)(random.key(1)), strict=True):
        assert found.dtype == expected.dtype and found.shape == expected.shape
        if expected.dtype.kind == "i":
            assert np.array_equal(found, expected)
        else:
            assert np.allclose(found, expected, rtol=32 * np.finfo(expected.dtype).eps, atol=0)


def test_gamma_has_a_derivative_by_its_scale() -> None:
    key = random.key(0)
    total = random.gamma(key, 2.5, (5,)).sum()
    assert np.isclose(ml.grad(lambda scale: np.sum(random.gamma(key, 2.5, (5,), scale=scale)))(2.0), total)


def test_empty_shapes() -> None:
    key = random.key(0)
    for draw in (random.normal, random.exponential, random.gumbel):
        assert ml.compile(lambda key, draw=draw: draw(key, (0, 3)))(key).shape == (0, 3)
    assert ml.compile(lambda key: random.gamma(key, 2.0, (0,)))(key).shape == (0,)
    assert ml.compile(lambda key: random.poisson(key, 2.0, (0,)))(key).shape == (0,)
    assert ml.compile(lambda key: random.permutation(key, 0))(key).shape == (0,)
    assert ml.compile(lambda key: random.choice(key, 0, (0,)))(key).shape == (0,)


KEY = random.key(0)
WRONG = {
    "scale": (lambda: random.normal(KEY, 3, scale=-1.0), "scale cannot be negative"),
    "scales": (lambda: random.exponential(KEY, scale=np.array([1.0, -1.0])), "scale cannot be negative"),
    "gamma": (lambda: random.gamma(KEY, -1.0), "a cannot be negative"),
    "beta": (lambda: random.beta(KEY, 1.0, -1.0), "b must be above 0"),
    "poisson": (lambda: random.poisson(KEY, -1.0), "lam must be in"),
    "bernoulli": (lambda: random.bernoulli(KEY, 1.5), r"p must be in \[0, 1\]"),
    "sum": (lambda: random.choice(KEY, 2, (3,), p=np.array([0.5, 0.4])), "probabilities do not sum to 1"),
    "negative": (lambda: random.choice(KEY, 2, (3,), p=np.array([1.5, -0.5])), "probabilities cannot be negative"),
    "lengths": (lambda: random.choice(KEY, 3, (3,), p=np.array([0.5, 0.5])), r"shape \[2\] for 3 elements"),
    "too many": (lambda: random.choice(KEY, 3, (4,), replace=False), "4 of 3 elements"),
    "nothing": (lambda: random.choice(KEY, 0, (4,)), "nothing to choose from"),
    "bounds": (lambda: random.randint(KEY, 3, 5, 5), "low must be below high"),
    "a dtype": (lambda: random.randint(KEY, 3, 0, 300, np.uint8), "does not fit uint8"),
    "floats": (lambda: random.randint(KEY, 3, 0.5, 3), "low must be an integer"),
    "interval": (lambda: random.truncated_normal(KEY, 2.0, 1.0), "low must be below high"),
    "covariance": (lambda: random.multivariate_normal(KEY, np.zeros(2), np.eye(3)), "do not fit"),
    "no classes": (lambda: random.categorical(KEY, np.zeros((2, 0))), "nothing to choose"),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
@pytest.mark.parametrize("compiled", [False, True])
def test_errors_show_the_line(name: str, compiled: bool) -> None:
    function, message = WRONG[name]
    with pytest.raises(ml.ShapeError if name != "floats" else ml.DTypeError, match=message) as caught:
        (ml.compile(function) if compiled else function)()
    assert caught.value.location is not None and caught.value.location.file == __file__


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize("draw", [
    lambda n: random.gamma(KEY_OF_MANY, 0.4, (n,)),
    lambda n: random.gamma(KEY_OF_MANY, 2.5, (n,), np.float32),
    lambda n: random.poisson(KEY_OF_MANY, 11.0, (n,)),
])  # fmt: skip
def test_elements_drawn_by_rejection_do_not_depend_on_the_others(draw: Any, compiled: bool) -> None:
    """Few elements are proposed together until the last is accepted; of many, those that wait are gathered."""
    few, many = ((ml.compile(lambda n=n: draw(n)) if compiled else (lambda n=n: draw(n)))() for n in (100, 3000))
    np.testing.assert_allclose(few, many[:100], rtol=1e-6)


def test_more_elements_may_wait_than_there_is_room_for() -> None:
    def propose(i: Any, at: Any, p: Any) -> tuple[Any, Any]:
        u = unit(random.fold_in(KEY_OF_MANY, i), p.shape, np.dtype(np.float64), at)
        return u < p, u

    def rejected(n: int, share: int) -> Any:
        p = np.full(n, 0.1)
        return accepted(propose, (p,), p > 1, p * 0, share=share)

    expected = rejected(100, 8)
    assert expected.max() < 0.1
    for share in (2, 8, 400):
        for run in (rejected, ml.compile(rejected, static_argnums=(0, 1))):
            np.testing.assert_array_equal(run(300, share)[:100], expected)
