"""`mlirml.special` against mpmath and SciPy: values, special values, derivatives, dtypes."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mlirml as ml
from mlirml import special

mp: Any = pytest.importorskip("mpmath")
scipy_special: Any = pytest.importorskip("scipy.special")

RNG = np.random.default_rng(0)
POSITIVE = np.concatenate([RNG.uniform(0.01, 12, 60), 10 ** RNG.uniform(-5, 5, 30), 1 + RNG.uniform(-1e-3, 1e-3, 10)])
BOTH_SIGNS = np.concatenate([RNG.uniform(-12, 12, 60), RNG.uniform(-26, 26, 30)])
UNIT = np.concatenate([RNG.uniform(0, 1, 60), 10 ** RNG.uniform(-30, 0, 30)])
OTHER = RNG.uniform(0.01, 30, len(POSITIVE))
SMALL = 10 ** RNG.uniform(-3, 1.5, len(OTHER))
A = 10 ** RNG.uniform(-2, 1.7, 60)
NEAR = RNG.uniform(0.5, 1.6, 60)


def erfcinv(y: Any) -> Any:
    """By Newton's method from SciPy's value."""
    y = mp.mpf(y)
    x = mp.mpf(float(scipy_special.erfcinv(float(y))))
    for _ in range(3):
        x += (mp.erfc(x) - y) * mp.exp(x * x) * mp.sqrt(mp.pi) / 2
    return x


def gammainc(a: Any, x: Any) -> Any:
    """The power series of the lower function, in enough digits for its complement."""
    with mp.workprec(600):
        total, term, n = mp.mpf(1), mp.mpf(1), 1
        while n < x - a or term > total * mp.mpf(2) ** -600:
            term *= x / (a + n)
            total, n = total + term, n + 1
        return total * mp.exp(a * mp.log(x) - x - mp.loggamma(a + 1))


def betainc(a: Any, b: Any, x: Any) -> Any:
    with mp.workprec(500):
        return mp.betainc(a, b, 0, x, regularized=True)


def inverse(function: Callable[..., Any], name: str) -> Callable[..., Any]:
    """The inverse in the last argument, by the secant method from SciPy's value."""

    def found(*args: Any) -> Any:
        *first, y = args
        x = mp.mpf(float(getattr(scipy_special, name)(*map(float, args))))
        return mp.findroot(lambda x: function(*first, x) - y, (x, x * (1 - mp.mpf(2) ** -30)), tol=1e-55)

    return found


def betaincc(a: Any, b: Any, x: Any) -> Any:
    with mp.workprec(500):
        return 1 - mp.betainc(a, b, 0, x, regularized=True)


SHAPES = RNG.uniform(0.3, 20, 30)
PROBABILITIES = np.concatenate([RNG.uniform(0.01, 0.99, 20), 10 ** RNG.uniform(-12, -2, 10)])
EXACT: dict[str, tuple[Callable[..., Any], float, tuple[np.ndarray, ...]]] = {
    "gammaln": (mp.loggamma, 4, (POSITIVE,)),
    "gamma": (mp.gamma, 6, (RNG.uniform(-12, 30, 80),)),
    "digamma": (mp.digamma, 4, (POSITIVE,)),
    "psi": (mp.digamma, 4, (POSITIVE,)),
    "zeta": (mp.zeta, 6, (RNG.uniform(1.01, 15, len(OTHER)), OTHER)),
    "beta": (mp.beta, 40, (SMALL, SMALL[::-1])),
    "betaln": (lambda a, b: mp.log(mp.beta(a, b)), 40, (SMALL + 2, SMALL[::-1] + 2)),
    "gammainc": (gammainc, 60, (A, A * NEAR)),
    "gammaincc": (lambda a, x: 1 - gammainc(a, x), 60, (A, A * NEAR)),
    "betainc": (betainc, 60, (A, A[::-1], RNG.uniform(0.05, 0.95, 60))),
    "betaincc": (betaincc, 60, (A, A[::-1], RNG.uniform(0.05, 0.95, 60))),
    "gammaincinv": (inverse(gammainc, "gammaincinv"), 20, (SHAPES, PROBABILITIES)),
    "gammainccinv": (inverse(lambda a, x: 1 - gammainc(a, x), "gammainccinv"), 20, (SHAPES, PROBABILITIES)),
    "betaincinv": (inverse(betainc, "betaincinv"), 30, (SHAPES, SHAPES[::-1], PROBABILITIES)),
    "betainccinv": (inverse(betaincc, "betainccinv"), 30, (SHAPES, SHAPES[::-1] + 2, PROBABILITIES)),
    "erf": (mp.erf, 4, (BOTH_SIGNS,)),
    "erfc": (mp.erfc, 6, (RNG.uniform(-5, 9, 90),)),
    "erfcx": (lambda x: mp.exp(x * x) * mp.erfc(x), 6, (RNG.uniform(-9, 30, 90),)),
    "erfinv": (mp.erfinv, 6, (RNG.uniform(-1, 1, 60),)),
    "erfcinv": (erfcinv, 6, (UNIT,)),
    "ndtri": (lambda y: -mp.sqrt(2) * erfcinv(2 * y), 6, (UNIT,)),
    "ndtr": (mp.ncdf, 50, (RNG.uniform(-6, 6, 90),)),
    "log_ndtr": (lambda x: mp.log(mp.ncdf(x)) if x < 0 else mp.log1p(-mp.ncdf(-x)), 40, (RNG.uniform(-30, 6, 90),)),
    "expit": (lambda x: 1 / (1 + mp.exp(-x)), 3, (BOTH_SIGNS,)),
    "logit": (lambda p: mp.log(p / (1 - p)), 3, (UNIT,)),
    "log_expit": (lambda x: -mp.log1p(mp.exp(-x)), 3, (BOTH_SIGNS,)),
    "i0": (lambda x: mp.besseli(0, x), 6, (BOTH_SIGNS,)),
    "i0e": (lambda x: mp.exp(-abs(x)) * mp.besseli(0, x), 5, (BOTH_SIGNS,)),
    "i1": (lambda x: mp.besseli(1, x), 6, (BOTH_SIGNS,)),
    "i1e": (lambda x: mp.exp(-abs(x)) * mp.besseli(1, x), 5, (BOTH_SIGNS,)),
    "xlogy": (lambda x, y: x * mp.log(y), 3, (POSITIVE, OTHER)),
    "xlog1py": (lambda x, y: x * mp.log1p(y), 3, (POSITIVE, OTHER)),
    "entr": (lambda x: -x * mp.log(x), 3, (POSITIVE,)),
    "rel_entr": (lambda x, y: x * mp.log(x / y), 5, (OTHER, SMALL)),
    "kl_div": (lambda x, y: x * mp.log(x / y) - x + y, 20, (OTHER, SMALL)),
    "rgamma": (mp.rgamma, 8, (np.linspace(-11.8, 29.3, 80),)),
    "gammasgn": (lambda x: mp.sign(mp.gamma(x)), 0, (np.linspace(-11.8, 29.3, 80),)),
}
"""For each function the exact one, the allowed error in ulp, and arguments."""


def ulps(found: np.ndarray, exact: list[Any]) -> float:
    """The largest error in units of the spacing of floats at the exact value."""
    rounded = np.array([float(e) for e in exact]).astype(found.dtype)
    spacing = np.spacing(np.abs(rounded)).astype(float)
    return max(float(abs(mp.mpf(float(f)) - e) / float(s)) for f, e, s in zip(found, exact, spacing))


def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    return ml.compile(lambda *args: function(*args))  # type: ignore[no-any-return]


def count(name: str) -> int:
    """The number of arguments of a function."""
    return len(EXACT[name][2])


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("name", EXACT)
def test_values(name: str, dtype: Any) -> None:
    exact, allowed, args = EXACT[name]
    args = tuple(x.astype(dtype) for x in args)
    with mp.workprec(200):
        expected = [exact(*(mp.mpf(float(x)) for x in row)) for row in zip(*args)]
        function = getattr(special, name)
        for run in (function, compiled(function)):
            found = run(*args)
            assert found.dtype == dtype
            assert ulps(found, expected) <= allowed


ENDS = np.array([
    0, 1, 2, 3, -1, -2, 0.5, -0.5, -1.5, np.inf, -np.inf, np.nan, 1e-300, -1e-300, 1e300, 170, 171.5, 172, 20, 8, 1e17
])  # fmt: skip
MODERATE = ~((np.abs(ENDS) == 1e300) | (np.abs(ENDS) == 1e-300))
PAIRS = np.array([0, 1, 2, 0.5, 3, 30, 1e10, np.inf, np.nan])
OF_POSITIVE = (
    "beta", "betaln", "gammainc", "gammaincc", "betainc", "betaincc", "zeta", "gammaincinv", "gammainccinv",
    "betaincinv", "betainccinv",
)  # fmt: skip
"""Functions of two arguments of which SciPy's values for negative ones are not asked."""


@pytest.mark.parametrize("name", [name for name in EXACT if count(name) == 1])
def test_special_values(name: str) -> None:
    function, expected = getattr(special, name), getattr(scipy_special, name)(ENDS)
    for run in (function, compiled(function)):
        np.testing.assert_allclose(run(ENDS), expected, rtol=1e-12)
    found = function(ENDS[MODERATE].astype(np.float32))
    np.testing.assert_array_equal(np.isnan(found), np.isnan(expected[MODERATE]))


@pytest.mark.parametrize("name", [name for name in EXACT if count(name) > 1])
def test_special_values_of_several_arguments(name: str) -> None:
    function = getattr(special, name)
    numbers = PAIRS if name in OF_POSITIVE else ENDS[MODERATE]
    args = [x.ravel() for x in np.meshgrid(numbers, numbers)]
    if name.startswith("betainc"):
        args = [np.tile(x, 6) for x in args] + [np.repeat([0, 0.25, 0.5, 1, -0.1, np.nan], len(args[0]))]
    expected = getattr(scipy_special, name)(*args)
    skipped = {
        "beta": np.isinf(args[0]) | np.isinf(args[1]), "betaln": np.isinf(args[0]) | np.isinf(args[1]),
        "zeta": np.isinf(args[0]),
        # SciPy has limits here, but not for other infinite arguments
        "betaincinv": (np.isinf(args[0]) & (args[1] == 1)) | (np.isinf(args[1]) & (args[0] == 1)),
        "betainccinv": (np.isinf(args[0]) & (args[1] == 1)) | (np.isinf(args[1]) & (args[0] == 1)),
    }.get(name, np.zeros(len(expected), bool))  # fmt: skip
    for run in (function, compiled(function)):
        np.testing.assert_allclose(run(*args)[~skipped], expected[~skipped], rtol=1e-9)


def test_infinite_arguments_of_the_beta_and_zeta_functions() -> None:
    """SciPy has NaN for some of these."""
    infinite = np.full(3, np.inf)
    np.testing.assert_array_equal(special.beta(infinite, [0.5, 30, np.inf]), 0)
    np.testing.assert_array_equal(special.betaln(infinite, [0.5, 30, np.inf]), -np.inf)
    np.testing.assert_array_equal(special.zeta(infinite, [0.5, 1, 30]), [np.inf, 1, 0])


def test_beta_of_negative_arguments() -> None:
    args = np.array([-0.5, -2.5, -3, -3, -3, -100.5]), np.array([2.5, 12.5, 2, 3, 5, 1.25])
    np.testing.assert_allclose(special.beta(*args), scipy_special.beta(*args), rtol=1e-12)
    np.testing.assert_allclose(special.betaln(*args), scipy_special.betaln(*args), rtol=1e-11)


@pytest.mark.parametrize("n", [0, 1, 2, 5])
def test_polygamma(n: int) -> None:
    x = np.concatenate([RNG.uniform(0.01, 20, 40), RNG.uniform(-6, 0, 20)])
    expected = np.array([float(mp.polygamma(n, mp.mpf(v))) for v in x])
    for run in (lambda x: special.polygamma(n, x), ml.compile(lambda x: special.polygamma(n, x))):
        np.testing.assert_allclose(run(x), expected, rtol=1e-12)
    orders = np.array([0, 1, 2, 5])[:, None]
    for run in (special.polygamma, ml.compile(special.polygamma)):
        np.testing.assert_allclose(run(orders, x[:40]), scipy_special.polygamma(orders, x[:40]), rtol=1e-12)


def test_zeta_of_all_real_numbers() -> None:
    s = np.array([-20.3, -3.5, -2, -1, -0.5, 0, 0.3, 0.9, 1, 1.1, 5, np.inf, -np.inf, np.nan])
    for run in (special.zeta, ml.compile(special.zeta)):
        np.testing.assert_allclose(run(s), scipy_special.zeta(s), rtol=1e-13)
    negative = np.array([-0.5, -3.25, -100.5, -3.0])
    np.testing.assert_allclose(special.zeta(3.0, negative), scipy_special.zeta(3.0, negative), rtol=1e-13, atol=1e-14)
    assert np.isnan(special.zeta(2.5, -0.5)) and np.isnan(special.zeta(2.0, -1e6 - 0.5))


X = np.array([0.2, 0.45, 0.8])
GRADIENTS: list[tuple[str, tuple[float, ...], np.ndarray]] = [
    ("gammaln", (), np.array([-2.3, -0.4, 0.3, 1.0, 5.0, 30.0])), ("gamma", (), np.array([-2.3, 0.3, 1.7, 5.0, 12.0])),
    ("digamma", (), np.array([-2.3, 0.3, 1.46, 5.0, 30.0])), ("gammaincc", (30.0,), X * 40),
    ("gammainc", (2.5,), X * 5), ("gammainc", (0.4,), X), ("betaincc", (2.5, 0.75), X),
    ("gammaincinv", (2.5,), X), ("gammainccinv", (0.7,), X), ("betaincinv", (2.5, 0.75), X),
    ("betainccinv", (0.5, 40.0), X), ("betainc", (2.5, 0.75), X), ("betainc", (30.0, 40.0), X),
    ("erf", (), X), ("erfc", (), X),
    ("erfcx", (), X * 9 - 4), ("erfinv", (), X), ("erfcinv", (), X), ("ndtr", (), X), ("ndtri", (), X),
    ("log_ndtr", (), X * 30 - 20), ("expit", (), X), ("logit", (), X), ("log_expit", (), X * 30 - 20),
    ("i0", (), X * 30 - 15), ("i1", (), X * 30 - 15), ("i0e", (), X * 30 - 15), ("i1e", (), X * 30 - 15),
    ("beta", (2.5,), X * 20), ("betaln", (2.5,), X * 20), ("xlogy", (1.5,), X), ("xlog1py", (1.5,), X), ("entr", (), X),
    ("rel_entr", (0.5,), X), ("kl_div", (0.5,), X), ("zeta", (2.5,), X * 9), ("polygamma", (2,), X * 9),
    ("rgamma", (), np.array([-3.0, -2.3, -2.0, -1e-9, 0.0, 0.3, 0.5, 1.7, 12.0])), ("gammasgn", (), X * 9 - 5),
]  # fmt: skip


@pytest.mark.parametrize(("name", "first", "x"), GRADIENTS)
def test_derivatives(name: str, first: tuple[float, ...], x: np.ndarray) -> None:
    """In the last argument, against differences of the exact function."""
    exact = mp.polygamma if name == "polygamma" else EXACT[name][0]
    with mp.workprec(200):
        step = mp.mpf(2) ** -40
        expected = [
            (exact(*map(mp.mpf, first), mp.mpf(v) + step) - exact(*map(mp.mpf, first), mp.mpf(v) - step)) / (2 * step)
            for v in x
        ]
        if name in ("gammaln", "log_ndtr"):
            expected = [mp.re(value) for value in expected]
    function = getattr(special, name)
    reverse = ml.grad(lambda x: np.sum(function(*first, x)))(x)
    forward = ml.jvp(lambda x: function(*first, x), (x,), (np.ones_like(x),))[1]
    np.testing.assert_allclose(reverse, np.array([float(e) for e in expected]), rtol=1e-11)
    np.testing.assert_allclose(forward, reverse, rtol=1e-14)


def test_derivatives_in_the_first_argument() -> None:
    for name in ("beta", "betaln"):
        function = getattr(special, name)
        assert float(ml.grad(function)(2.0, 3.0)) == pytest.approx(float(ml.grad(function, 1)(3.0, 2.0)))
    assert float(ml.grad(special.rel_entr)(2.0, 3.0)) == pytest.approx(np.log(2 / 3) + 1)
    assert float(ml.grad(special.kl_div)(2.0, 3.0)) == pytest.approx(np.log(2 / 3))
    assert float(ml.grad(special.xlogy)(2.0, 3.0)) == pytest.approx(np.log(3))
    assert float(ml.grad(special.xlog1py)(2.0, 3.0)) == pytest.approx(np.log(4))


def test_higher_derivatives() -> None:
    third = ml.grad(ml.grad(ml.grad(special.gammaln)))
    assert float(third(2.3)) == pytest.approx(float(scipy_special.polygamma(2, 2.3)), rel=1e-13)
    density = ml.grad(special.ndtr)
    assert float(ml.grad(density)(0.7)) == pytest.approx(-0.7 * float(density(0.7)), rel=1e-13)
    assert float(ml.grad(ml.grad(special.i0))(2.0)) == pytest.approx(float(scipy_special.ivp(0, 2.0, 2)), rel=1e-13)


def test_derivatives_at_zero() -> None:
    assert ml.grad(special.xlogy, (0, 1))(0.0, 2.0) == (pytest.approx(np.log(2)), 0)
    assert float(ml.grad(special.xlogy, 1)(0.0, 0.0)) == 0
    assert float(ml.grad(special.xlog1py, 1)(0.0, -1.0)) == 0
    assert float(ml.grad(special.i1)(0.0)) == 0.5 and float(ml.grad(special.i0e)(0.0)) == 0
    assert float(ml.grad(special.gammainc, 1)(1.0, 0.0)) == 1
    assert float(ml.grad(special.betainc, 2)(2.0, 3.0, 1.0)) == 0
    assert float(ml.grad(special.expit)(-800.0)) == 0


PARAMETERS: list[tuple[str, int, tuple[Any, ...]]] = [
    ("gammainc", 0, (A, A * NEAR)), ("gammaincc", 0, (A, A * NEAR * 2)), ("gammainc", 0, (A, A * NEAR / 4)),
    ("gammainc", 0, (np.array([20.0, 19.9, 35.0, 150.0, 1e-6, 0.5]), np.array([20.0, 19.9, 30.0, 200.0, 0.3, 1.1]))),
    ("betainc", 0, (SMALL[:40], SMALL[40:80], RNG.uniform(0.02, 0.98, 40))),
    ("betainc", 1, (SMALL[:40], SMALL[40:80], RNG.uniform(0.02, 0.98, 40))),
    ("betainc", 0, (np.array([300.0, 3.0, 0.01]), np.array([200.0, 900.0, 0.01]), np.array([0.6, 0.004, 0.3]))),
    ("betainc", 1, (np.array([300.0, 3.0, 0.01]), np.array([200.0, 900.0, 0.01]), np.array([0.6, 0.004, 0.3]))),
    ("betaincc", 0, (SHAPES[:10], SHAPES[10:20], PROBABILITIES[:10])),
    ("betaincc", 1, (SHAPES[:10], SHAPES[10:20], PROBABILITIES[:10])),
    ("gammaincinv", 0, (SHAPES[:10], PROBABILITIES[:10])), ("gammainccinv", 0, (SHAPES[:10], PROBABILITIES[:10])),
    ("betaincinv", 0, (SHAPES[:8], SHAPES[8:16], PROBABILITIES[:8])),
    ("betaincinv", 1, (SHAPES[:8], SHAPES[8:16], PROBABILITIES[:8])),
    ("betainccinv", 0, (SHAPES[:8], SHAPES[8:16], PROBABILITIES[:8])),
    ("betainccinv", 1, (SHAPES[:8], SHAPES[8:16], PROBABILITIES[:8])),
]  # fmt: skip


@pytest.mark.parametrize(("name", "place", "args"), PARAMETERS)
def test_derivatives_in_parameters(name: str, place: int, args: tuple[np.ndarray, ...]) -> None:
    """Against differences of the exact function."""

    def exact(*row: float) -> float:
        def at(value: Any) -> Any:
            return EXACT[name][0](*(value if k == place else mp.mpf(x) for k, x in enumerate(row)))

        with mp.workprec(300):
            step = mp.mpf(row[place]) * mp.mpf(2) ** -40
            return float((at(row[place] + step) - at(row[place] - step)) / (2 * step))

    function = getattr(special, name)
    expected = np.array([exact(*row) for row in zip(*(x.tolist() for x in args))])
    reverse = ml.compile(ml.grad(lambda *given: np.sum(function(*given)), place))(*args)
    np.testing.assert_allclose(reverse, expected, rtol=2e-12)


@pytest.mark.parametrize(("name", "place"), [("gammainc", 0), ("betainc", 1)])
def test_derivatives_in_parameters_forward_and_of_f32(name: str, place: int) -> None:
    args = (SHAPES[:8], SHAPES[8:16], PROBABILITIES[:8])[3 - count(name) :]
    function = getattr(special, name)
    moved = [np.ones_like(x) if k == place else np.zeros_like(x) for k, x in enumerate(args)]
    forward = ml.jvp(function, args, moved)[1]
    gradient = ml.grad(lambda *given: np.sum(function(*given)), place)
    np.testing.assert_allclose(forward, gradient(*args), rtol=1e-14)
    found = gradient(*[x.astype(np.float32) for x in args])
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, forward, rtol=1e-3)


def test_derivatives_in_parameters_at_the_ends() -> None:
    assert float(ml.grad(special.gammainc)(2.0, 0.0)) == 0 and float(ml.grad(special.gammainc)(2.0, np.inf)) == 0
    assert float(ml.grad(special.gammaincc)(0.0, 2.0)) == pytest.approx(float(scipy_special.exp1(2.0)), rel=1e-13)
    assert np.isnan(ml.grad(special.gammainc)(-1.0, 2.0))
    for x in (0.0, 1.0):
        assert [float(g) for g in ml.grad(special.betainc, (0, 1))(2.0, 3.0, x)] == [0, 0]


def test_second_derivatives_of_incomplete_functions() -> None:
    """Those in the argument and one parameter; twice in parameters there are none."""
    a, b, x = 2.3, 0.8, 0.4
    mixed = ml.grad(ml.grad(special.gammainc), 1)(a, x), ml.grad(ml.grad(special.gammainc, 1))(a, x)
    slope = x ** (a - 1) * np.exp(-x) / special.gamma(a) * (np.log(x) - special.digamma(a))
    assert float(mixed[0]) == pytest.approx(float(slope), rel=1e-12) == float(mixed[1])
    one = ml.grad(ml.grad(special.betainc, 1), 2)(a, b, x)
    assert float(one) == pytest.approx(float(ml.grad(ml.grad(special.betainc, 2), 1)(a, b, x)), rel=1e-12)
    for function, args, message in (
        (special.gammainc, (a, x), "gammainc, gammaincc and their inverses have no second derivatives in `a`"),
        (special.gammaincinv, (a, x), "gammainc, gammaincc and their inverses have no second derivatives in `a`"),
        (special.betainc, (a, b, x), "betainc, betaincc and their inverses have no second derivatives in `a` and `b`"),
    ):
        for twice in (ml.grad(ml.grad(function)), ml.jacfwd(ml.jacfwd(function)), ml.hessian(function)):
            with pytest.raises(ml.NoDerivativeError, match=message):
                twice(*args)
    rows = np.array([0.5, 1.5])
    with pytest.raises(ml.NoDerivativeError, match="in `a`"):
        ml.vmap(ml.grad(ml.grad(special.gammainc)), (0, None))(rows, x)
    twice = ml.grad(ml.grad(special.gammaincinv, 1), 1)(a, x)
    step = 1e-5
    first = [float(ml.grad(special.gammaincinv, 1)(a, x + s)) for s in (step, -step)]
    assert float(twice) == pytest.approx((first[0] - first[1]) / (2 * step), rel=1e-8)


def test_inverses_in_wide_ranges() -> None:
    """There and back, by the smaller of both tails."""
    a, b = 10 ** RNG.uniform(-1, 5, 300), 10 ** RNG.uniform(-1, 5, 300)
    tail = np.concatenate([RNG.uniform(0, 0.5, 150), 10 ** RNG.uniform(-200, -1, 150)])
    for name in ("gammainc", "gammaincc"):
        x = getattr(special, f"{name}inv")(a, tail)
        normal = x > 1e-300
        np.testing.assert_allclose(getattr(special, name)(a, x)[normal], tail[normal], rtol=1e-10)
    for name in ("betainc", "betaincc"):
        x = getattr(special, f"{name}inv")(a, b, tail)
        normal = (x > 1e-300) & (1 - x > 1e-3)  # next to 1 a float tells little about the tail
        np.testing.assert_allclose(getattr(special, name)(a, b, x)[normal], tail[normal], rtol=1e-9)
    assert special.gammaincinv(1e-3, 0.1) == 0 and special.betaincinv(1e-3, 2.0, 0.1) == 0  # which underflow


def test_a_derivative_that_does_not_exist_is_an_error() -> None:
    with pytest.raises(ml.NoDerivativeError):
        ml.grad(lambda a: special.zeta(a, 2.0))(3.0)


def test_a_tangent_of_zero_computes_no_part_of_a_rule() -> None:
    """In forward mode, by the argument alone: no series for the derivative by the parameter."""
    x, a = np.ones(3), np.full(3, 2.0)
    text = ml.compile(lambda x: ml.jvp(lambda x: special.gammainc(a, x), (x,), (x,))[1]).ir("optimize", x)
    assert "scf.while" not in text


@pytest.mark.parametrize("axis", [None, 0, 1, -1, (0, 1)])
@pytest.mark.parametrize("name", ["softmax", "log_softmax", "logsumexp"])
def test_sums_of_exponentials(name: str, axis: Any) -> None:
    x = RNG.normal(size=(3, 4)) * 100
    function, expected = getattr(special, name), getattr(scipy_special, name)(x, axis=axis)
    for run in (lambda x: function(x, axis), ml.compile(lambda x: function(x, axis=axis))):
        np.testing.assert_allclose(run(x), expected, rtol=1e-13)
    small = RNG.normal(size=(3, 4))
    sums = ml.grad(lambda x: np.sum(special.logsumexp(x, axis)))(small)
    np.testing.assert_allclose(sums, scipy_special.softmax(small, axis=axis), rtol=1e-13)


def test_sums_with_factors() -> None:
    x, b = RNG.normal(size=(3, 4)), np.array([1.0, -2.0, 0.0, 0.5])
    x[:, 2] = np.inf  # where the factor is 0
    expected = scipy_special.logsumexp(x[:, [0, 1, 3]], 1, b[[0, 1, 3]], True, True)
    for run in (special.logsumexp, ml.compile(special.logsumexp)):
        for found, part in zip(run(x, axis=1, b=b, keepdims=True, return_sign=True), expected):
            np.testing.assert_allclose(found, part, rtol=1e-13)


def test_infinite_exponents() -> None:
    for values in ([-np.inf] * 2, [np.inf, 1.0], [np.nan, 1.0], [np.inf, -np.inf]):
        x = np.array(values)
        with np.errstate(all="ignore"):
            for name in ("logsumexp", "softmax", "log_softmax"):
                np.testing.assert_array_equal(getattr(special, name)(x), getattr(scipy_special, name)(x))


def test_dtypes() -> None:
    assert special.gammaln(3) == pytest.approx(np.log(2)) and special.gammaln(np.int8(3)).dtype == np.float64
    assert special.xlogy(np.float32(2), 3.0).dtype == np.float32
    for run in (special.gammaln, ml.compile(special.gammaln)):
        with pytest.raises(ml.DTypeError, match="real numbers"):
            run(np.array([1j]))
    with pytest.raises(ml.DTypeError, match="n is 0 or a positive integer"):
        special.polygamma(-1, 2.0)


@pytest.mark.parametrize("name", [*EXACT, "logsumexp", "softmax", "log_softmax"])
def test_single_precision_needs_no_double(name: str) -> None:
    args = [np.full(4, 0.5, np.float32)] * (count(name) if name in EXACT else 1)
    function = getattr(special, name)
    assert "f64" not in ml.lower(lambda *args: function(*args), *args).as_text()


@pytest.mark.parametrize("name", [name for name in special.__all__ if name != "multigammaln"])
def test_names_of_scipy_are_compiled(name: str) -> None:
    function = getattr(scipy_special, name)
    args = [x[:10] for x in EXACT[name][2]] if name in EXACT else [OTHER[:10]]
    args = [2, *args] if name == "polygamma" else args
    run = ml.compile(lambda *args: function(2, *args)) if name == "polygamma" else compiled(function)
    for dtype in (np.float64, np.float32, np.float16):
        given = [x.astype(dtype) if isinstance(x, np.ndarray) else x for x in args]
        found, expected = run(*given[name == "polygamma" :]), function(*given)
        if name not in ("softmax", "log_softmax", "logsumexp", "polygamma"):
            assert found.dtype == expected.dtype
        np.testing.assert_allclose(found, expected, rtol=1e-9 if found.dtype == np.float64 else 2e-3)


def test_calls_of_scipy_in_a_program() -> None:
    @ml.compile
    def total(x: Any) -> Any:
        import scipy

        y = np.zeros_like(x)
        scipy_special.gammaln(x, out=y)
        for i in range(x.shape[0]):
            y[i] += scipy_special.softmax(x)[i] + scipy.special.zeta(2.0, x[i])
        return y + scipy_special.polygamma(1, x)

    x = OTHER[:10]
    expected = scipy_special.gammaln(x) + scipy_special.softmax(x) + 2 * scipy_special.zeta(2.0, x)
    np.testing.assert_allclose(total(x), expected, rtol=1e-13)
    found = ml.grad(lambda x: np.sum(scipy_special.gammaln(x)))(x)
    np.testing.assert_allclose(found, scipy_special.digamma(x), rtol=1e-13)


@pytest.mark.parametrize(
    ("function", "name"),
    [
        (lambda s: special.zeta(s, np.float64(2.0)), "zeta"),
        (special.zeta, "zeta"),
        (lambda n: special.polygamma(n, np.float64(1.0)), "polygamma"),
    ],
)
def test_an_argument_without_a_derivative_is_named(function: Any, name: str) -> None:
    with pytest.raises(ml.NoDerivativeError, match=f"special.{name}` has no derivative in its first argument"):
        ml.grad(function)(2.5)


@pytest.mark.parametrize("run", [lambda f: f, compiled])
@pytest.mark.parametrize("d", [1, 2, 5])
def test_multigammaln(run: Any, d: int) -> None:
    x = np.array([[2.3, 4.0, 30.5], [9.0, 2.1, 7.75]])
    expected = scipy_special.multigammaln(x, d)
    np.testing.assert_allclose(run(lambda x: special.multigammaln(x, d))(x), expected, rtol=1e-13)
    slope = ml.grad(lambda x: np.sum(special.multigammaln(x, d)))(x)
    np.testing.assert_allclose(slope, sum(scipy_special.digamma(x - k / 2) for k in range(d)), rtol=1e-12)
    assert np.isnan(run(lambda x: special.multigammaln(x, d))(0.5 * (d - 1)))
    assert run(lambda x: special.multigammaln(x, d))(x.astype(np.float32)).dtype == np.float32


def test_multigammaln_of_no_dimensions() -> None:
    with pytest.raises(ml.errors.DTypeError, match="0 dimensions"):
        ml.compile(lambda x: special.multigammaln(x, 0))(2.0)


def test_multigammaln_of_scipy_is_compiled() -> None:
    x = np.array([1.4, 2.5, 6.25])
    found = ml.compile(lambda x: scipy_special.multigammaln(x, 3))(x)
    np.testing.assert_allclose(found, scipy_special.multigammaln(x, 3), rtol=1e-13)


def test_derivatives_of_the_reciprocal_gamma_function_at_its_zeros() -> None:
    """1 / gamma(x - n) is (-1)**n n! (x - digamma(n + 1) x**2 + ...)."""
    slope = ml.grad(special.rgamma)
    for n in range(4):
        factor = float((-1) ** n * math.factorial(n))
        assert float(slope(-float(n))) == pytest.approx(factor)
        assert float(ml.grad(slope)(-float(n))) == pytest.approx(-2 * factor * float(scipy_special.digamma(n + 1)))
