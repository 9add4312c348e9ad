"""`mlirml.stats` against SciPy and mpmath, compiled and not, its derivatives against differences, and its errors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mlirml as ml
from mlirml import stats
from mlirml.errors import UnsupportedSyntaxError

mp: Any = pytest.importorskip("mpmath")
scipy: Any = pytest.importorskip("scipy")
scipy_stats: Any = pytest.importorskip("scipy.stats")

RNG = np.random.default_rng(0)
INF = np.inf
CASES: dict[str, list[tuple[float, ...]]] = {
    "norm": [()], "expon": [()], "gamma": [(2.5,), (1.0,), (0.5,), (60.0,)], "chi2": [(2.0,), (3.5,)],
    "beta": [(2.0, 3.0), (1.0, 1.0), (0.5, 0.5), (40.0, 30.0)], "t": [(3.0,), (1.0,), (200.0,), (INF,)],
    "f": [(3.0, 7.0), (2.0, 1.0), (40.0, 30.0)],
    "laplace": [()], "logistic": [()], "cauchy": [()], "lognorm": [(0.7,)], "uniform": [()], "pareto": [(2.0,)],
    "weibull_min": [(1.5,), (1.0,), (0.5,)], "gumbel_r": [()], "halfnorm": [()],
    "truncnorm": [(-1.0, 2.0), (1.0, 3.0), (-INF, 0.0), (5.0, INF), (-8.0, -6.0)],
    "poisson": [(2.5,), (0.0,), (500.0,)], "bernoulli": [(0.3,), (0.0,), (1.0,)], "geom": [(0.3,), (1.0,)],
    "binom": [(10.0, 0.3), (5.0, 0.0), (5.0, 1.0), (0.0, 0.5), (1000.0, 0.4)], "nbinom": [(2.5, 0.3), (3.0, 1.0)],
}  # fmt: skip
DISCRETE = ("poisson", "binom", "bernoulli", "geom", "nbinom")
X = np.array([-7, -3, -1, -0.5, 0, 1e-5, 0.1, 0.3, 0.5, 1, 1.5, 2, 3, 6, 10, 31, 36, INF, -INF, np.nan])
Q = np.array([0, 0.001, 0.1, 0.3, 0.5, 0.7, 0.9, 0.999, 1, -0.1, 1.1, np.nan, 1e-10])

SLOW = ("t", "f", "beta", "binom", "nbinom", "gamma", "chi2", "poisson", "truncnorm")
"""Distributions with long programs."""


def densities(name: str) -> tuple[str, str]:
    return ("pmf", "logpmf") if name in DISCRETE else ("pdf", "logpdf")


def methods(name: str) -> tuple[str, ...]:
    return (*densities(name), "cdf", "sf", "logcdf", "logsf", "ppf", "isf")


def differs(name: str, method: str, args: tuple[float, ...], x: np.ndarray, expected: np.ndarray) -> np.ndarray:
    """Where SciPy's value is not the right one: NaN at infinity, tails that underflow, quantiles of 1e-10."""
    other = np.isnan(expected) & np.isinf(x) if method in densities(name) else np.zeros(len(x), bool)
    if method in ("logcdf", "logsf"):
        other = other | (np.abs(expected) < 1e-9) | np.isinf(expected)
    if (name, args) == ("geom", (1.0,)) and method in ("ppf", "isf"):
        other = other | (expected <= 1)
    if (name == "halfnorm" and method == "ppf") or (name == "f" and method == "isf"):
        other = other | (x == 1e-10)
    if name == "f" and method == "logpdf":
        other = other | (np.abs(expected) < 1e-12)
    return other


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", CASES)
def test_values(name: str) -> None:
    """In and out of the support, with locations and scales; what is compiled is f64, and f32 if it compiles fast."""
    ours, theirs = getattr(stats, name), getattr(scipy_stats, name)
    places = [{}, {"loc": 1.0}] if name in DISCRETE else [{}, {"loc": 1.0, "scale": 2.0}]
    for args in CASES[name]:
        for options in places:
            for method in methods(name):
                x = Q if method in ("ppf", "isf") else X
                expected, found = (
                    getattr(theirs, method)(x, *args, **options),
                    getattr(ours, method)(x, *args, **options),
                )
                kept = ~differs(name, method, args, x, expected)
                np.testing.assert_allclose(found[kept], expected[kept], rtol=1e-8, err_msg=f"{args} {method}")
                assert found.dtype == np.float64

    def every(x: Any, q: Any, *args: Any) -> list[Any]:
        return [getattr(ours, m)(q if m in ("ppf", "isf") else x, *args) for m in compiled]

    compiled = methods(name) if name not in SLOW else (*densities(name), "cdf", "ppf")
    for dtype, tolerance in (("f8", 1e-9), ("f4", 2e-4))[: 1 if name in SLOW else 2]:
        given = [np.array(a, dtype) for a in CASES[name][0]]
        x, q = X.astype(dtype), Q.astype(dtype)
        for found, expected in zip(ml.compile(every)(x, q, *given), every(x, q, *given), strict=True):
            assert found.dtype == expected.dtype == dtype
            np.testing.assert_allclose(found, expected, rtol=tolerance, atol=1e-35 if dtype == "f4" else 1e-300)


@pytest.mark.parametrize("name", CASES)
def test_invalid_parameters_give_nan(name: str) -> None:
    ours, shapes = getattr(stats, name), CASES[name][0]
    for method in methods(name):
        assert np.isnan(getattr(ours, method)(0.5, *[np.nan] * len(shapes), loc=1.0)) or not shapes
        assert np.isnan(getattr(ours, method)(0.5, *shapes, loc=np.nan))
        if name != "truncnorm" and shapes:
            assert np.isnan(getattr(ours, method)(0.5, *[-1.5] * len(shapes)))
        if name not in DISCRETE:
            assert np.isnan(getattr(ours, method)(0.5, *shapes, scale=0.0))


def ulps(found: np.ndarray, exact: list[Any]) -> float:
    """The largest error in units of the spacing of floats at the exact value."""
    spacing = np.spacing(np.abs(np.array([float(e) for e in exact]).astype(found.dtype))).astype(float)
    return max(float(abs(mp.mpf(float(f)) - e) / float(s)) for f, e, s in zip(found, exact, spacing))


def beta_function(a: Any, b: Any) -> Any:
    return mp.gamma(a) * mp.gamma(b) / mp.gamma(a + b)


A = RNG.uniform(0.2, 60, 60)
EXACT: list[tuple[str, str, Callable[..., Any], float, tuple[np.ndarray, ...]]] = [
    ("norm", "pdf", mp.npdf, 20, (RNG.uniform(-6, 6, 60),)),
    ("norm", "logpdf", lambda x: mp.log(mp.npdf(x)), 2, (RNG.uniform(-6, 6, 60),)),
    ("gamma", "pdf", lambda x, a: x ** (a - 1) * mp.exp(-x) / mp.gamma(a), 40,
     (A * RNG.uniform(0.5, 1.6, 60), A)),
    ("poisson", "pmf", lambda k, m: m**k * mp.exp(-m) / mp.factorial(k), 150,
     (np.floor(2 * A), 2 * A * RNG.uniform(0.7, 1.4, 60))),
    ("binom", "pmf", lambda k, n, p: mp.binomial(n, k) * p**k * (1 - p) ** (n - k), 200,
     (np.floor(RNG.uniform(0, 50, 60)), np.full(60, 100.0), RNG.uniform(0.1, 0.6, 60))),
    ("beta", "pdf", lambda x, a, b: x ** (a - 1) * (1 - x) ** (b - 1) / beta_function(a, b), 60,
     (RNG.uniform(0.05, 0.95, 60), RNG.uniform(0.2, 20, 60), RNG.uniform(0.2, 20, 60))),
    ("t", "logpdf", lambda x, v: mp.log((1 + x * x / v) ** (-(v + 1) / 2) / mp.sqrt(v) / beta_function(v / 2, 0.5)), 40,
     (RNG.uniform(3, 30, 60), RNG.uniform(0.2, 60, 60))),
    ("truncnorm", "sf", lambda x, a, b: (mp.erfc(x / mp.sqrt(2)) - mp.erfc(b / mp.sqrt(2))) /
     (mp.erfc(a / mp.sqrt(2)) - mp.erfc(b / mp.sqrt(2))), 400,
     (RNG.uniform(5, 9, 60), np.full(60, 4.0), np.full(60, 10.0))),
]  # fmt: skip


@pytest.mark.parametrize(("name", "method", "exact", "allowed", "args"), EXACT)
def test_accuracy(name: str, method: str, exact: Any, allowed: float, args: tuple[np.ndarray, ...]) -> None:
    with mp.workprec(300):
        for dtype in (np.float64, np.float32):
            given = [x.astype(dtype) for x in args]
            expected = [exact(*(mp.mpf(float(x)) for x in row)) for row in zip(*given)]
            assert ulps(getattr(getattr(stats, name), method)(*given), expected) <= allowed


POINTS = {"truncnorm": 1.3, "beta": 0.8, "uniform": 0.8, "bernoulli": 1.0, "poisson": 4.0, "binom": 4.0, "geom": 4.0}


@pytest.mark.parametrize("name", CASES)
def test_derivatives(name: str) -> None:
    """In the variable, the shapes, location and scale."""
    ours, theirs, shapes = getattr(stats, name), getattr(scipy_stats, name), CASES[name][0]
    place = () if name in DISCRETE else (-0.5 if name == "pareto" else 0.1, 1.2)
    args = np.array([POINTS.get(name, 2.0 if name in DISCRETE else 2.2), *shapes, *place])
    fixed = {0} if name in DISCRETE else set()
    fixed |= {1} if name == "binom" else set()
    of_probability = [k for k in range(len(args)) if k not in fixed]

    def total(args: Any) -> Any:
        given = [args[k] for k in range(len(place) + len(shapes) + 1)]
        still = [a if k in of_probability else float(args_of[k]) for k, a in enumerate(given)]
        given = [float(args_of[k]) if k in fixed else a for k, a in enumerate(given)]
        one, two = (getattr(ours, m)(*given) for m in densities(name))
        sums = [getattr(ours, m)(*still) for m in ("cdf", "logsf")] if of_probability else []
        return np.stack([one, two, *sums])

    args_of = args.tolist()
    found = ml.jacfwd(total)(args)
    for row, method in zip(found, (*densities(name), "cdf", "logsf")):
        for k in range(len(args)) if method in densities(name) else of_probability:
            if k in fixed:
                continue
            step = np.zeros(len(args))
            step[k] = 1e-5
            with np.errstate(all="ignore"):
                ends = [getattr(theirs, method)(*(args + sign * step)) for sign in (1, -1)]
            if np.all(np.isfinite(ends)):
                assert float(row[k]) == pytest.approx((ends[0] - ends[1]) / 2e-5, rel=2e-6, abs=2e-8), (method, k)


def test_derivatives_at_the_border_of_the_support_and_outside() -> None:
    gradient = ml.compile(ml.grad(lambda x, a, scale: stats.gamma.logpdf(x, a, 0.0, scale), (0, 1, 2)))
    assert [float(g) for g in gradient(0.0, 1.0, 2.0)] == [-0.5, -np.inf, -0.5]
    assert [float(g) for g in gradient(-1.0, 1.0, 2.0)] == [0, 0, 0]
    border = ml.grad(lambda x, loc, scale: stats.expon.logpdf(x, loc, scale), (0, 1, 2))
    assert [float(g) for g in border(1.0, 1.0, 2.0)] == [-0.5, 0.5, -0.5]
    uniform = ml.grad(lambda x, loc, scale: stats.uniform.logpdf(x, loc, scale), (0, 1, 2))
    assert [float(g) for g in uniform(3.0, 1.0, 2.0)] == [0, 0, -0.5]
    assert float(ml.grad(lambda x: stats.weibull_min.logpdf(x, 1.0))(0.0)) == -1
    assert float(ml.grad(lambda x: stats.beta.logpdf(x, 1.0, 3.0))(0.0)) == -2
    assert float(ml.grad(lambda x: stats.lognorm.pdf(x, 0.7))(0.0)) == 0
    assert float(ml.grad(lambda p: stats.binom.logpmf(0, 5, p))(0.0)) == -5
    assert float(ml.grad(lambda mu: stats.poisson.logpmf(0, mu))(0.0)) == -1
    assert float(ml.grad(lambda mu: stats.poisson.pmf(1, mu))(0.0)) == 1


@pytest.mark.parametrize("name", ["gamma", "chi2", "beta", "t", "f"])
def test_derivatives_of_quantiles(name: str) -> None:
    """By the probability, the shapes, location and scale, against differences of SciPy's."""
    args = np.array([0.3, *CASES[name][0], 0.1, 1.2])
    gradient = ml.grad(lambda args: getattr(stats, name).ppf(*[args[k] for k in range(len(args))]))(args)
    for k, slope in enumerate(gradient):
        step = np.zeros(len(args))
        step[k] = 1e-5
        ends = [getattr(scipy_stats, name).ppf(*(args + sign * step)) for sign in (1, -1)]
        assert float(slope) == pytest.approx((ends[0] - ends[1]) / 2e-5, rel=2e-6)


def test_quantiles_of_integers_are_the_least_ones() -> None:
    """Each integer is the quantile of its own probability, and of all between it and the one before."""
    count = np.array([0, 1, 3, 10, 200])
    for name, args in (("poisson", (400.0,)), ("binom", (100_000.0, 0.002)), ("nbinom", (3.5, 0.02))):
        ours = getattr(stats, name)
        k = count + (300 if name == "poisson" else 0)
        for method, inverse, sign in (("cdf", "ppf", 1), ("sf", "isf", -1)):
            p = getattr(ours, method)(k, *args)
            inner = (p > 0) & (p < 1)
            np.testing.assert_array_equal(getattr(ours, inverse)(p, *args)[inner], k[inner])
            beyond = getattr(ours, inverse)(p * (1 + sign * 1e-9), *args)
            np.testing.assert_array_equal(beyond[inner & (p < 0.999)], k[inner & (p < 0.999)] + 1)
    assert float(ml.grad(lambda mu: stats.poisson.ppf(0.4, mu))(3.0)) == 0


def test_vectors() -> None:
    x, mean = RNG.standard_normal((4, 3)), np.array([0.1, 0.2, 0.3])
    cov = np.array([[2.0, 0.3, 0.1], [0.3, 1.0, 0.2], [0.1, 0.2, 1.5]])
    normal, theirs = stats.multivariate_normal, scipy_stats.multivariate_normal
    for args in ((x, mean, cov), (x[0], mean, cov), (x, mean, np.array([1.0, 2.0, 3.0])), (x, mean, 2.0), (x[0], 1.0)):
        for method in ("logpdf", "pdf"):
            expected = getattr(theirs, method)(*args)
            np.testing.assert_allclose(getattr(normal, method)(*args), expected, rtol=1e-12)
    gradient = ml.grad(lambda x, m, c: np.sum(normal.logpdf(x, m, c)), (1, 2))(x, mean, cov)
    inverse, centred = np.linalg.inv(cov), x - mean
    np.testing.assert_allclose(gradient[0], np.sum(centred @ inverse, axis=0), rtol=1e-11)
    by_cov = 0.5 * (inverse @ centred.T @ centred @ inverse - 4 * inverse)
    np.testing.assert_allclose((gradient[1] + gradient[1].T) / 2, by_cov, rtol=1e-10, atol=1e-12)
    alpha, p = np.array([1.0, 2.5, 3.0]), np.array([[0.0, 0.2], [0.5, 0.3], [0.5, 0.5]])
    for given in (p, p[:2], p[:, 1]):
        expected = scipy_stats.dirichlet.logpdf(given, alpha)
        for run in (stats.dirichlet.logpdf, ml.compile(stats.dirichlet.logpdf)):
            np.testing.assert_allclose(run(given, alpha), expected, rtol=1e-12)
    assert stats.dirichlet.logpdf(p[:, 1] * 2, alpha) == -np.inf and stats.dirichlet.pdf(-p[:, 1], alpha) == 0


frozen_outside = scipy_stats.norm(1.0, 2.0)
bound_method = scipy_stats.norm.logpdf


def test_scipys_own_names_compile() -> None:
    of_closure = scipy_stats.beta

    def program(x: Any) -> tuple[Any, ...]:
        return (
            scipy.stats.norm.logpdf(x, loc=0.5, scale=x), bound_method(x), frozen_outside.cdf(x),
            of_closure(2.0, 3.0).logpdf(x), scipy_stats.gamma.pdf(x, 2.0), scipy_stats.poisson.logpmf(3, mu=x),
            scipy_stats.multivariate_normal.logpdf(x, np.zeros(4), np.eye(4)), x * scipy_stats.norm.ppf(0.975),
            scipy_stats.dirichlet.logpdf(x / np.sum(x), np.ones(4)), x * scipy_stats.gamma.mean(2.0),
            scipy_stats.norm(x, 2.0).sf(1.0),
        )  # fmt: skip

    x = np.array([0.1, 0.4, 0.6, 0.9])
    for dtype in (np.float64, np.float32):
        given = x.astype(dtype)
        for found, expected in zip(ml.compile(program)(given), program(given), strict=True):
            assert found.dtype == expected.dtype
            np.testing.assert_allclose(found, expected, rtol=1e-11 if dtype == np.float64 else 1e-5)
    for function in (scipy_stats.norm.logpdf, frozen_outside.logpdf):
        np.testing.assert_allclose(ml.compile(function)(x), function(x), rtol=1e-12)
    slope = ml.grad(lambda scale: np.sum(scipy_stats.norm.logpdf(x, 0.0, scale)))(1.3)
    assert float(slope) == pytest.approx(np.sum(x**2) / 1.3**3 - 4 / 1.3)


def test_a_distribution_of_the_users_is_not_taken_for_scipys() -> None:
    custom: Any = type(scipy_stats.norm)(a=0.0, name="positive")
    with pytest.raises(ml.TracedValueError):
        ml.compile(lambda x: custom.logpdf(x))(np.ones(3))


def test_batches_and_loops() -> None:
    x = RNG.uniform(0.1, 3, (3, 4))
    functions: list[Any] = [stats.norm.logpdf, lambda x: stats.gamma.cdf(x, 2.5), lambda x: stats.t.logsf(x, 4.0)]
    for function in functions:
        np.testing.assert_allclose(ml.vmap(function)(x), function(x), rtol=1e-13)

    @ml.compile
    def fitted(x: Any) -> Any:
        def step(i: int, state: Any) -> Any:
            slope = ml.grad(lambda s: -np.mean(stats.norm.logpdf(x, s[0], np.exp(s[1]))))(state)
            return state - 0.3 * slope

        return ml.fori_loop(0, 200, step, np.zeros(2))

    sample = RNG.normal(2.0, 1.5, 100)
    np.testing.assert_allclose(fitted(sample), [np.mean(sample), np.log(np.std(sample))], rtol=1e-6)


def test_dtypes_and_errors() -> None:
    assert stats.norm.pdf(np.float32(1), 0, 2).dtype == np.float32 and stats.norm.pdf(1, 0).dtype == np.float64
    assert stats.norm.pdf(np.ones(2, np.float16)).dtype == np.float16
    assert stats.norm.logpdf([]).shape == (0,) and stats.poisson.pmf([1], 2.0).shape == (1,)
    for name in CASES:
        shapes = [np.full(2, s, np.float32) for s in CASES[name][0]]
        method, x = densities(name)[1], np.ones(2, np.float32)
        function = getattr(getattr(stats, name), method)
        assert "f64" not in ml.lower(lambda *args, f=function: f(*args), x, *shapes).as_text()
    for run in (lambda f: f, ml.compile):
        with pytest.raises(ml.ArgumentError, match="missing parameters a"):
            run(lambda x: stats.gamma.pdf(x))(np.ones(2))
        with pytest.raises(ml.ArgumentError, match="`shape` is given twice or unknown"):
            run(lambda x: stats.gamma.pdf(x, 1.0, shape=2.0))(np.ones(2))
        with pytest.raises(ml.ArgumentError, match="at most 2"):
            run(lambda x: stats.norm.pdf(x, 1.0, 2.0, 3.0))(np.ones(2))
        with pytest.raises(ml.DTypeError, match="real numbers"):
            run(lambda x: stats.norm.pdf(x + 1j))(np.ones(2))
        with pytest.raises(ml.ShapeError, match="no vectors of 3"):
            run(lambda x: stats.multivariate_normal.logpdf(x, np.zeros(3), np.eye(3)))(np.ones(2))
        with pytest.raises(ml.ShapeError, match="does not fit"):
            run(lambda x: stats.dirichlet.logpdf(x, np.ones(5)))(np.ones(2))
    with pytest.raises(ml.LinAlgError):
        ml.compile(lambda x: stats.multivariate_normal.logpdf(x, np.zeros(2), -np.eye(2)))(np.ones(2))


def test_numbers_are_not_drawn_once_and_for_all() -> None:
    """A draw while the program is traced would be a constant of it."""
    frozen = scipy_stats.gamma(2.0)
    for program in (
        lambda x: x + scipy_stats.norm.rvs(size=2), lambda x: x + frozen.rvs(size=2),
        lambda x: x + scipy_stats.skewnorm.rvs(2.0, size=2), lambda x: x + scipy_stats.skewnorm(2.0).rvs(size=2),
    ):  # fmt: skip
        with pytest.raises(UnsupportedSyntaxError, match="draws no random numbers"):
            ml.compile(program)(np.zeros(2))
    constant = ml.compile(lambda x: x + scipy_stats.skewnorm(2.0).mean())(np.zeros(2))
    np.testing.assert_allclose(constant, scipy_stats.skewnorm(2.0).mean())


def test_entropy_of_normal_vectors() -> None:
    """SciPy's, with the derivative in the covariance, which is half of its inverse."""
    cov = np.array([[2.0, 0.3, 0.1], [0.3, 1.0, 0.2], [0.1, 0.2, 1.5]])
    for args in ((None, cov), (np.zeros(3), cov), (np.zeros(3), np.array([1.0, 2.0, 3.0])), (None, 2.0), (0.5, 2.0)):
        expected = scipy_stats.multivariate_normal.entropy(*args)
        for run in (stats.multivariate_normal.entropy, ml.compile(scipy_stats.multivariate_normal.entropy)):
            np.testing.assert_allclose(run(*args), expected, rtol=1e-13)
    slope = ml.grad(lambda c: stats.multivariate_normal.entropy(None, c))(cov)
    np.testing.assert_allclose((slope + slope.T) / 2, np.linalg.inv(cov) / 2, rtol=1e-12)
    with pytest.raises(ml.errors.ShapeError, match="mean of shape"):
        ml.compile(stats.multivariate_normal.entropy)(np.zeros(2), cov)
