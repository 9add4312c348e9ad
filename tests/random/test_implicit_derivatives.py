"""Derivatives of gamma, beta and Dirichlet numbers by the parameters of their shape."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import special

import mlirml as ml
from mlirml import random
from mlirml.ir.text.control import REJECTION
from mlirml.random.checks import repeated

COUNT = 400


def quantile_slope(a: float, x: np.ndarray) -> np.ndarray:
    """The derivative by a of the quantile of the gamma distribution at the level of x, by differences."""
    lower, upper, h = special.gammainc(a, x), special.gammaincc(a, x), 1e-4 * a

    def at(b: float) -> np.ndarray:
        found: np.ndarray = np.where(lower < 0.5, special.gammaincinv(b, lower), special.gammainccinv(b, upper))
        return found

    return (at(a - 2 * h) - 8 * at(a - h) + 8 * at(a + h) - at(a + 2 * h)) / (12 * h)


@pytest.mark.parametrize(("dtype", "least", "tolerance"), [(np.float64, 1e-290, 1e-6), (np.float32, 1e-30, 1e-5)])
def test_the_slope_is_that_of_the_quantile(dtype: Any, least: float, tolerance: float) -> None:
    ones = np.ones(COUNT, dtype)
    both = ml.compile(lambda key, a: ml.jvp(lambda a: random.gamma(key, a, dtype=dtype), (a,), (ones,)))
    plain = ml.compile(lambda key, a: random.gamma(key, a, dtype=dtype))
    for number, a in enumerate((1e-2, 0.1, 0.3, 0.7, 1.0, 1.3, 3.0, 10.0, 19.9, 20.1, 50.0, 200.0, 1e3)):
        key, shapes = random.key(number), np.full(COUNT, a, dtype)
        x, slope = both(key, shapes)
        np.testing.assert_allclose(x, plain(key, shapes), rtol=1e-5 if dtype is np.float32 else 1e-12, atol=least)
        assert np.all(np.isfinite(slope))
        sure = x > least
        expected = quantile_slope(float(shapes[0]), x[sure].astype(np.float64))
        np.testing.assert_allclose(slope[sure], expected, rtol=tolerance)


def test_numbers_below_the_least_float_have_a_slope_of_their_logarithm() -> None:
    """A beta number of two tiny shapes is a quotient of two gamma numbers that are 0 in f32."""
    key, n = random.key(4), 20_000
    by_both = ml.grad(lambda a, b: np.mean(random.beta(key, a, b, (n,), np.float32)), argnums=(0, 1))
    a, b = np.float32(0.004), np.float32(0.006)
    found = by_both(a, b)
    assert np.all(np.isfinite(found))
    # with shapes this small a number is near 0 or 1, and few are between: those decide the mean
    np.testing.assert_allclose(found, (b / (a + b) ** 2, -a / (a + b) ** 2), rtol=0.4)


@pytest.mark.parametrize(("a", "b"), [(0.5, 2.0), (3.0, 30.0)])
def test_the_mean_slope_of_beta_numbers_is_that_of_their_mean(a: float, b: float) -> None:
    key = random.key(0)
    found = ml.grad(lambda a, b: np.mean(random.beta(key, a, b, (20_000,))), argnums=(0, 1))(a, b)
    np.testing.assert_allclose(found, (b / (a + b) ** 2, -a / (a + b) ** 2), rtol=0.05)


def test_the_mean_slopes_of_dirichlet_vectors_are_those_of_their_mean() -> None:
    key, alpha = random.key(0), np.array([0.3, 1.0, 5.0])
    found = ml.jacfwd(lambda alpha: np.mean(random.dirichlet(key, alpha, (20_000,)), axis=0))(alpha)
    total = alpha.sum()
    np.testing.assert_allclose(found, (np.eye(3) * total - alpha[:, None]) / total**2, atol=0.01)


def test_lanes_and_the_generator() -> None:
    keys, shapes = random.split(random.key(0), 3), np.array([0.5, 2.0, 30.0])
    one = ml.grad(lambda a, key: random.gamma(key, a))
    np.testing.assert_allclose(ml.vmap(one)(shapes, keys), [one(a, key) for a, key in zip(shapes, keys)], rtol=1e-12)

    def drawn(a: Any) -> Any:
        rng = np.random.default_rng(3)
        return np.mean(rng.gamma(a, 2.0, size=20_000)) + np.mean(rng.standard_gamma(a, 20_000))

    np.testing.assert_allclose(ml.grad(drawn)(2.5), 3, rtol=0.02)


@pytest.mark.parametrize(
    "slope",
    [
        lambda a: ml.jvp(lambda a: random.gamma(random.key(0), a), (a,), (1.0,))[1],
        ml.grad(lambda a: random.gamma(random.key(0), a)),
    ],
)
def test_second_derivatives_are_refused(slope: Callable[[Any], Any]) -> None:
    with pytest.raises(ml.NoDerivativeError, match="random numbers have no second derivatives"):
        ml.grad(slope)(2.5)


def test_second_derivatives_by_the_scale() -> None:
    key = random.key(0)
    slope = ml.grad(lambda s: random.gamma(key, 2.0, scale=s) * s)
    np.testing.assert_allclose(ml.grad(slope)(3.0), 2 * random.gamma(key, 2.0))


def test_infinite_and_undefined_shapes() -> None:
    key, shapes = random.key(0), np.array([np.inf, 2.0, np.nan])
    found = ml.compile(lambda a: random.gamma(key, a))(shapes)
    assert found[0] == np.inf and np.isfinite(found[1]) and np.isnan(found[2])
    slopes = ml.grad(lambda a: np.sum(random.gamma(key, a)))(shapes)
    assert np.array_equal(np.isfinite(slopes), [False, True, False])


def test_reverse_mode_does_not_go_through_the_proposals() -> None:
    """The rule is for those of gamma numbers; other loops over proposals have no derivative."""

    def drawn(a: Any) -> Any:
        start = np.zeros_like(a) + 0 * a
        return repeated(lambda x: x < 1, lambda x: x + a, start, f"{{{REJECTION}}}")

    with pytest.raises(ml.NoDerivativeError, match="which of the proposed random numbers is accepted"):
        ml.grad(drawn)(0.3)
    np.testing.assert_allclose(ml.compile(drawn)(0.3), 1.2)
