"""`mlirml.stats` against SciPy and mpmath: densities, probabilities, quantiles, derivatives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mlirml as ml
from mlirml import stats

scipy_stats: Any = pytest.importorskip("scipy.stats")
RNG = np.random.default_rng(0)
X = np.concatenate([RNG.uniform(-3, 5, 30), [-1.0, 0.0, 1.0, 2.0, 40.0, -40.0, np.inf, -np.inf, np.nan]])
K = np.array([-1.0, 0, 1, 2, 3, 7, 12, 2.5, 300, np.nan])
Q = np.array([0, 1e-12, 0.01, 0.3, 0.5, 0.9, 1 - 1e-9, 1, -0.1, 1.1, np.nan])
SHAPES: dict[str, tuple[float, ...]] = {
    "norm": (), "expon": (), "gamma": (2.5,), "beta": (2.0, 0.75), "t": (3.5,), "chi2": (4.0,), "laplace": (),
    "logistic": (), "cauchy": (), "lognorm": (0.7,), "uniform": (), "pareto": (2.5,), "weibull_min": (1.7,),
    "gumbel_r": (), "halfnorm": (), "truncnorm": (-0.5, 2.0),
}  # fmt: skip
COUNTS: dict[str, tuple[float, ...]] = {
    "poisson": (3.5,), "binom": (12.0, 0.3), "bernoulli": (0.3,), "geom": (0.3,), "nbinom": (4.0, 0.4),
}  # fmt: skip


def functions_of(name: str) -> list[str]:
    density = ["pdf", "logpdf"] if name in SHAPES else ["pmf", "logpmf"]
    return [f for f in (*density, "cdf", "sf", "logcdf", "logsf") if hasattr(getattr(stats, name), f)]


HEAVY = ("beta", "binom", "chi2", "gamma", "nbinom", "poisson", "t")
"""Those whose probabilities are incomplete gamma and beta functions, which take seconds to compile."""


def check(x: np.ndarray, found: Any, expected: np.ndarray, message: str) -> None:
    """SciPy has NaN at infinity for some, and -inf where the logarithm of a tail is finite."""
    better = (np.isnan(expected) & ~np.isnan(x)) | ((expected == -np.inf) & (found < -30))
    np.testing.assert_allclose(found[~better], expected[~better], rtol=1e-9, atol=1e-13, err_msg=message)
    assert not np.isnan(found[~np.isnan(x)]).any(), message


@pytest.mark.parametrize("name", [*SHAPES, *COUNTS])
def test_values(name: str) -> None:
    own, other = getattr(stats, name), getattr(scipy_stats, name)
    shapes, x = (SHAPES[name], X) if name in SHAPES else (COUNTS[name], K)
    place = (0.25, 1.5) if name in SHAPES else (1,)
    names = functions_of(name)
    calls = [(f, (*shapes, *more)) for f in names for more in (place, ())]
    compiled = [(f, (*shapes, *place)) for f in names[:3]] if name in HEAVY else calls
    with np.errstate(all="ignore"):
        expected = {call: getattr(other, call[0])(x, *call[1]) for call in calls}
    for call in calls:
        check(x, getattr(own, call[0])(x, *call[1]), expected[call], f"{call}")
    program = ml.compile(lambda x: [getattr(own, f)(x, *args) for f, args in compiled])
    for call, found in zip(compiled, program(x), strict=True):
        check(x, found, expected[call], f"{call}, compiled")


@pytest.mark.parametrize("name", [name for name in SHAPES if name not in ("gamma", "beta", "t", "chi2")])
def test_quantiles(name: str) -> None:
    own, other, shapes = getattr(stats, name), getattr(scipy_stats, name), SHAPES[name]
    for f in ("ppf", "isf"):
        found = ml.compile(lambda q: getattr(own, f)(q, *shapes, 0.5, 2.0))(Q)  # noqa: B023
        np.testing.assert_allclose(found, getattr(other, f)(Q, *shapes, 0.5, 2.0), rtol=1e-7, err_msg=f)


def test_invalid_parameters_give_nan() -> None:
    x = np.array([0.5])
    for found in (stats.norm.pdf(x, 0.0, -1.0), stats.gamma.logpdf(x, -2.0), stats.beta.cdf(x, 0.0, 1.0)):
        assert np.isnan(found).all()


def test_many_variables() -> None:
    root = RNG.standard_normal((3, 3))
    mean, cov, x = RNG.standard_normal(3), root @ root.T + np.eye(3), RNG.standard_normal((5, 3))
    alpha, shares = np.array([0.5, 2.0, 3.0]), RNG.dirichlet([1.0, 2.0, 3.0])
    for run in (lambda f: f, ml.compile):
        found = run(lambda x: stats.multivariate_normal.logpdf(x, mean, cov))(x)
        np.testing.assert_allclose(found, scipy_stats.multivariate_normal.logpdf(x, mean, cov), rtol=1e-10)
        found = run(lambda x: stats.dirichlet.logpdf(x, alpha))(shares)
        np.testing.assert_allclose(found, scipy_stats.dirichlet.logpdf(shares, alpha), rtol=1e-10)
    slope = ml.grad(lambda mean: stats.multivariate_normal.logpdf(x[0], mean, cov))(mean)
    np.testing.assert_allclose(slope, np.linalg.solve(cov, x[0] - mean), rtol=1e-9)


def test_densities_are_exact() -> None:
    mp = pytest.importorskip("mpmath")
    x = RNG.uniform(0.05, 6, 40)
    exact = {
        "norm": lambda v: mp.npdf(v), "gamma": lambda v: v ** mp.mpf(1.5) * mp.exp(-v) / mp.gamma(mp.mpf(2.5)),
        "cauchy": lambda v: 1 / (mp.pi * (1 + v * v)), "logistic": lambda v: mp.exp(-v) / (1 + mp.exp(-v)) ** 2,
    }  # fmt: skip
    for name, density in exact.items():
        found = ml.compile(lambda x: getattr(stats, name).pdf(x, *SHAPES[name]))(x)  # noqa: B023
        with mp.workprec(200):
            errors = [
                abs((mp.mpf(float(f)) - density(mp.mpf(float(v)))) / density(mp.mpf(float(v))))
                for f, v in zip(found, x)
            ]
        assert max(map(float, errors)) < 40 * np.finfo(float).eps, name


@pytest.mark.parametrize("name", SHAPES)
def test_derivatives(name: str) -> None:
    """Of the logarithm of the density and of the probability, in x, the place and the scale."""
    own, shapes, step = getattr(stats, name), SHAPES[name], 1e-6
    point = np.array([3.3 if name == "pareto" else 1.3, 0.25, 1.4])
    for f in ("logpdf", "cdf"):

        def value(p: Any) -> Any:
            return getattr(own, f)(p[0], *shapes, p[1], p[2])  # noqa: B023

        found = ml.grad(value)(point)
        for i in range(3):
            moved = np.eye(3)[i] * step
            slope = (value(point + moved) - value(point - moved)) / (2 * step)
            assert found[i] == pytest.approx(slope, rel=1e-5, abs=1e-8), (f, i)


@pytest.mark.parametrize("name", ["gamma", "beta", "t", "chi2", "weibull_min"])
def test_derivatives_in_shape_parameters(name: str) -> None:
    shapes = SHAPES[name]
    own, step = getattr(stats, name), 1e-6
    for i in range(len(shapes)):

        def value(s: Any) -> Any:
            return own.logpdf(0.4, *shapes[:i], s, *shapes[i + 1 :])  # noqa: B023

        slope = (value(shapes[i] + step) - value(shapes[i] - step)) / (2 * step)
        assert ml.grad(value)(shapes[i]) == pytest.approx(slope, rel=1e-5)


def test_functions_of_scipy_compile() -> None:
    frozen = scipy_stats.gamma(2.0, scale=0.5)

    def program(x: Any, scale: Any) -> Any:
        return scipy_stats.norm.logpdf(x, 0.5, scale) + frozen.pdf(np.abs(x)), scipy_stats.poisson.pmf(3, scale)

    x = RNG.standard_normal(20)
    for found, other in zip(ml.compile(program)(x, 1.5), program(x, 1.5)):
        np.testing.assert_allclose(found, other, rtol=1e-10)


def test_a_likelihood_is_maximised() -> None:
    x = RNG.standard_normal(200) * 2 + 3
    gradient = ml.grad(lambda p: np.sum(stats.norm.logpdf(x, p[0], p[1])))(np.array([x.mean(), x.std()]))
    np.testing.assert_allclose(gradient, 0, atol=1e-9)
