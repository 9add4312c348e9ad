"""`np.random.default_rng` in compiled functions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import stats

import mlirml as ml
from mlirml import random
from tests.fuzz.oracle import TARGETS

COUNT = 50_000


def one_by_one(seed: Any) -> Any:
    rng = np.random.default_rng(seed)
    drawn = np.zeros(40)
    for i in range(40):
        x = rng.random()
        if x > 0.5:
            x += rng.integers(3)
        drawn[i] = x
    return drawn, rng.normal()


def until(limit: Any) -> Any:
    rng = np.random.default_rng(7)
    x, steps = 0.0, 0
    while x < limit:
        x += rng.exponential()
        steps += 1
    return steps


@pytest.mark.parametrize("target", TARGETS)
def test_loops_and_branches_carry_the_stream(target: str) -> None:
    drawn, after = ml.compile(one_by_one, target=target)(3)
    assert len(set(drawn % 1)) == 40
    same, same_after = ml.compile(one_by_one, target="cpu", frontend="loops")(3)
    assert np.array_equal(drawn, same) and np.isclose(after, same_after, rtol=1e-14)
    assert 900 < ml.compile(until, target=target)(1000.0) < 1100


def test_a_loop_draws_what_its_copies_draw() -> None:
    def plain(seed: Any) -> Any:
        rng = np.random.default_rng(seed)
        drawn = np.zeros(9)
        for i in range(9):
            drawn[i] = rng.random()
        return drawn

    kept, unrolled = (ml.compile(plain, frontend=f)(5) for f in ("loops", "trace"))
    assert np.array_equal(kept, unrolled) and len(set(kept)) == 9
    assert not np.array_equal(ml.compile(plain)(6), kept)


METHODS = {
    "random": (lambda rng: rng.random(COUNT), stats.uniform()),
    "standard_normal": (lambda rng: rng.standard_normal(COUNT), stats.norm()),
    "normal": (lambda rng: rng.normal(1.0, 2.0, COUNT), stats.norm(1, 2)),
    "lognormal": (lambda rng: rng.lognormal(0.5, 0.5, COUNT), stats.lognorm(0.5, 0, np.exp(0.5))),
    "uniform": (lambda rng: rng.uniform(-1.0, 1.0, COUNT), stats.uniform(-1, 2)),
    "exponential": (lambda rng: rng.exponential(2.0, COUNT), stats.expon(0, 2)),
    "standard_exponential": (lambda rng: rng.standard_exponential(COUNT), stats.expon()),
    "gamma": (lambda rng: rng.gamma(2.0, 3.0, COUNT), stats.gamma(2, 0, 3)),
    "standard_gamma": (lambda rng: rng.standard_gamma(0.5, COUNT), stats.gamma(0.5)),
    "beta": (lambda rng: rng.beta(2.0, 3.0, COUNT), stats.beta(2, 3)),
    "gumbel": (lambda rng: rng.gumbel(1.0, 2.0, COUNT), stats.gumbel_r(1, 2)),
    "laplace": (lambda rng: rng.laplace(1.0, 2.0, COUNT), stats.laplace(1, 2)),
    "weibull": (lambda rng: rng.weibull(1.5, COUNT), stats.weibull_min(1.5)),
    "rayleigh": (lambda rng: rng.rayleigh(2.0, COUNT), stats.rayleigh(0, 2)),
    "logistic": (lambda rng: rng.logistic(1.0, 2.0, COUNT), stats.logistic(1, 2)),
    "pareto": (lambda rng: rng.pareto(3.0, COUNT), stats.lomax(3)),
    "power": (lambda rng: rng.power(2.5, COUNT), stats.powerlaw(2.5)),
    "standard_cauchy": (lambda rng: rng.standard_cauchy(COUNT), stats.cauchy()),
    "triangular": (lambda rng: rng.triangular(-1.0, 0.5, 3.0, COUNT), stats.triang(0.375, -1, 4)),
    "triangular without a rise": (lambda rng: rng.triangular(0.0, 0.0, 2.0, COUNT), stats.triang(0.0, 0, 2)),
    "chisquare": (lambda rng: rng.chisquare(3.0, COUNT), stats.chi2(3)),
    "noncentral_chisquare": (lambda rng: rng.noncentral_chisquare(3.0, 2.0, COUNT), stats.ncx2(3, 2)),
    "noncentral_chisquare of one": (lambda rng: rng.noncentral_chisquare(1.0, 2.0, COUNT), stats.ncx2(1, 2)),
    "f": (lambda rng: rng.f(5.0, 7.0, COUNT), stats.f(5, 7)),
    "noncentral_f": (lambda rng: rng.noncentral_f(5.0, 7.0, 3.0, COUNT), stats.ncf(5, 7, 3)),
    "vonmises": (lambda rng: rng.vonmises(0.0, 1.5, COUNT), stats.vonmises(1.5)),
    "vonmises of few": (lambda rng: rng.vonmises(0.0, 1e-9, COUNT), stats.uniform(-np.pi, 2 * np.pi)),
    "vonmises of many": (lambda rng: rng.vonmises(1.0, 1e8, COUNT), stats.norm(1.0, 1e-4)),
    "standard_t": (lambda rng: rng.standard_t(4.0, COUNT), stats.t(4)),
    "wald": (lambda rng: rng.wald(2.0, 3.0, COUNT), stats.invgauss(2 / 3, 0, 3)),
    "dirichlet": (lambda rng: rng.dirichlet(np.array([1.0, 2.0]), COUNT)[:, 0], stats.beta(1, 2)),
}


@pytest.mark.parametrize("name", METHODS)
def test_methods_draw_from_the_distributions_of_numpy(name: str) -> None:
    draw, distribution = METHODS[name]
    sample = ml.compile(lambda seed: draw(np.random.default_rng(seed)))(2)
    assert stats.kstest(sample, distribution.cdf).pvalue > 1e-3
    assert stats.kstest(draw(np.random.default_rng(2)), distribution.cdf).pvalue > 1e-3


def test_integers_and_choices() -> None:
    @ml.compile
    def draws(seed: Any, x: Any) -> Any:
        rng = np.random.default_rng(seed)
        moved = x.copy()
        rng.shuffle(moved)
        return (
            rng.integers(6, size=COUNT), rng.integers(1, 6, size=COUNT, endpoint=True), rng.poisson(2.0, COUNT),
            rng.binomial(3, 0.5, COUNT), rng.choice(4, COUNT), rng.permutation(x), rng.permuted(x), moved,
        )  # fmt: skip

    dice, other, events, wins, chosen, *orders = draws(0, np.arange(50))
    for sample, p in ((dice, [1 / 6] * 6), (other - 1, [1 / 6] * 6), (wins, [0.125, 0.375, 0.375, 0.125])):
        assert stats.chisquare(np.bincount(sample), np.array(p) * COUNT).pvalue > 1e-3
    assert stats.chisquare(np.bincount(chosen)).pvalue > 1e-3 and abs(events.mean() - 2) < 0.03
    for order in orders:
        assert sorted(order) == [*range(50)] and list(order) != [*range(50)]


COUNTED = {
    "geometric": (lambda rng: rng.geometric(0.3, COUNT), stats.geom(0.3)),
    "negative_binomial": (lambda rng: rng.negative_binomial(2.5, 0.4, COUNT), stats.nbinom(2.5, 0.4)),
    "zipf": (lambda rng: rng.zipf(2.5, COUNT), stats.zipf(2.5)),
    "logseries": (lambda rng: rng.logseries(0.7, COUNT), stats.logser(0.7)),
    "hypergeometric": (lambda rng: rng.hypergeometric(20, 7, 12, COUNT), stats.hypergeom(27, 20, 12)),
    "binomial": (lambda rng: rng.binomial(12, 0.2, COUNT), stats.binom(12, 0.2)),
    "multinomial": (lambda rng: rng.multinomial(6, [0.5, 0.2, 0.3], COUNT)[:, 1], stats.binom(6, 0.2)),
    "multivariate_hypergeometric": (
        lambda rng: rng.multivariate_hypergeometric([7, 20, 3], 12, COUNT, method="count")[:, 1],
        stats.hypergeom(30, 20, 12),
    ),
}


@pytest.mark.parametrize("name", COUNTED)
def test_methods_count_as_the_distributions_of_numpy(name: str) -> None:
    draw, distribution = COUNTED[name]
    for sample in (ml.compile(lambda seed: draw(np.random.default_rng(seed)))(2), draw(np.random.default_rng(2))):
        assert sample.dtype == np.int64
        counts = np.bincount(np.minimum(sample, 12), minlength=13)
        expected = np.append(distribution.pmf(np.arange(12)), distribution.sf(11)) * COUNT
        common = expected > 5
        assert counts[expected == 0].sum() == 0 and counts[~common].sum() < 60
        assert np.sum((counts - expected)[common] ** 2 / expected[common]) < stats.chi2.isf(1e-3, common.sum())


def test_counts_of_results_sum_to_the_trials() -> None:
    draw = ml.compile(lambda p: np.random.default_rng(0).multinomial(20, p))
    drawn = draw(np.array([[0.2, 0.3, 0.5], [1.0, 0.0, 0.0]]))
    assert drawn.shape == (2, 3) and list(drawn.sum(-1)) == [20, 20] and list(drawn[1]) == [20, 0, 0]


@pytest.mark.parametrize(("n", "p"), [(3, 0.5), (40, 0.1), (100, 0.5), (1000, 0.97), (10**6, 0.3), (10**6, 1e-6)])
def test_successes_of_a_number_of_trials_that_a_call_passes(n: int, p: float) -> None:
    distribution = stats.binom(n, p)
    plain = random.binomial(random.key(1), n, p, (COUNT,))
    for sample in (ml.compile(lambda n, p: np.random.default_rng(2).binomial(n, p, COUNT))(np.int64(n), p), plain):
        assert sample.dtype == np.int64 and sample.min() >= 0 and sample.max() <= n
        values, counts = np.unique(sample, return_counts=True)
        expected = distribution.pmf(values) * COUNT
        common = expected > 5
        # Where few values are common, so are their frequencies; where many are, their mean and variance tell more.
        assert np.sum((counts - expected)[common] ** 2 / expected[common]) < stats.chi2.isf(1e-4, max(common.sum(), 1))
        assert abs(sample.mean() - n * p) < 4 * np.sqrt(n * p * (1 - p) / COUNT)


def test_successes_at_the_limits() -> None:
    draw = ml.compile(lambda n, p: np.random.default_rng(0).binomial(n, p))
    n = np.array([0, 50, 50, 2**40, -1, 5, 5])
    p = np.array([0.5, 0.0, 1.0, 1.0, 0.5, np.nan, 1.5])
    assert draw(n, p).tolist() == [0, 0, 50, 2**40, -1, -1, -1]
    assert random.binomial(random.key(0), n[:4], p[:4]).tolist() == [0, 0, 50, 2**40]
    with pytest.raises(ml.ShapeError, match="n cannot be negative"):
        random.binomial(random.key(0), -1, 0.5)
    with pytest.raises(ml.DTypeError, match="n must be an integer"):
        random.binomial(random.key(0), 1.5, 0.5)


def test_a_loop_counts_down_by_successes() -> None:
    @ml.compile
    def decay(count: Any, p: Any) -> Any:
        rng = np.random.default_rng(0)
        left = np.zeros(30, np.int64)
        for i in range(30):
            count -= rng.binomial(count, p)
            left[i] = count
        return left

    left = decay(10_000, 0.2)
    assert np.all(np.diff(left) <= 0) and left.min() >= 0
    expected = 10_000 * 0.8 ** np.arange(1, 31)
    assert np.all(np.abs(left - expected) < 6 * np.sqrt(expected) + 6)


def test_draws_of_dynamic_numbers_of_things() -> None:
    draw = ml.compile(lambda a, b, n: np.random.default_rng(0).hypergeometric(a, b, n, COUNT))
    for good, bad, count in ((20, 7, 12), (20, 7, 22), (3, 90, 5)):
        sample, distribution = draw(good, bad, count), stats.hypergeom(good + bad, good, count)
        counts = np.bincount(sample, minlength=good + 1)
        expected = distribution.pmf(np.arange(good + 1)) * COUNT
        common = expected > 5
        assert counts[expected == 0].sum() == 0
        assert np.sum((counts - expected)[common] ** 2 / expected[common]) < stats.chi2.isf(1e-3, common.sum())
    one = ml.compile(lambda a, b, n: np.random.default_rng(0).hypergeometric(a, b, n))
    assert [one(*given) for given in ((3, 2, 6), (-1, 2, 1), (0, 5, 3), (4, 0, 3))] == [-1, -1, 0, 3]


def test_dynamic_numbers_are_shared_out() -> None:
    @ml.compile
    def draws(n: Any, colors: Any) -> Any:
        rng = np.random.default_rng(0)
        return (
            rng.multinomial(n, [0.2, 0.3, 0.5], 400), rng.multinomial(n, [1.0]), rng.multinomial(n, [0.5, 0.5, 0.0], 3),
            rng.multivariate_hypergeometric(colors, n, (2, 200)), rng.multivariate_hypergeometric(colors[:1], 2),
        )  # fmt: skip

    several, one, none, colours, single = draws(1000, np.array([500, 700, 2]))
    assert several.shape == (400, 3) and np.all(several.sum(-1) == 1000) and one.tolist() == [1000]
    assert np.all(np.abs(several.mean(0) - [200, 300, 500]) < 4) and np.all(none[:, 2] == 0)
    assert colours.shape == (2, 200, 3) and np.all(colours.sum(-1) == 1000) and np.all(colours <= [500, 700, 2])
    assert np.all(np.abs(colours.mean((0, 1)) - 1000 * np.array([500, 700, 2]) / 1202) < [4, 4, 0.2])
    assert single.tolist() == [2]
    with pytest.raises(ml.ShapeError, match="must not be above the sum of colors"):
        ml.compile(lambda: np.random.default_rng(0).multivariate_hypergeometric([1, 2], 4))()


def test_lines_are_permuted_one_by_one() -> None:
    x = np.arange(60).reshape(3, 20)
    rows, columns = ml.compile(lambda x: (np.random.default_rng(0).permuted(x, axis=1),
                                          np.random.default_rng(0).permuted(x, axis=0)))(x)  # fmt: skip
    assert np.array_equal(np.sort(rows, axis=1), x) and np.array_equal(np.sort(columns, axis=0), x)
    assert len({tuple(row % 20) for row in rows}) == 3


def test_truth_values_and_options_of_numpy() -> None:
    drawn = ml.compile(lambda: np.random.default_rng(0).integers(0, 2, 100, dtype=bool))()
    assert drawn.dtype == np.bool_ and 20 < drawn.sum() < 80
    with pytest.raises(ml.ShapeError, match="does not fit bool"):
        ml.compile(lambda: np.random.default_rng(0).integers(0, 3, dtype=bool))()
    vectors = ml.compile(lambda: np.random.default_rng(0).multivariate_normal([0, 1], np.eye(2), 3, method="eigh"))()
    assert vectors.shape == (3, 2)


def test_limits_of_parameters() -> None:
    @ml.compile
    def draws(zero: Any, much: Any) -> Any:
        rng = np.random.default_rng(0)
        return (
            rng.gamma(zero, 1.0, 3), rng.weibull(zero, 3), rng.zipf(much, 3), rng.logseries(zero, 3),
            rng.vonmises(zero, np.inf, 3), rng.dirichlet(zero + np.zeros(2)), rng.hypergeometric(0, 5, 3),
        )  # fmt: skip

    assert [x.tolist() for x in draws(0.0, 2000.0)] == [[0] * 3, [0] * 3, [1] * 3, [1] * 3, [0] * 3, [0] * 2, 0]

    @ml.compile
    def bad(a: Any) -> Any:
        rng = np.random.default_rng(0)
        return rng.zipf(a), rng.logseries(a), rng.vonmises(0.0, a)

    for a in (-1.0, np.nan):
        assert [int(x) for x in bad(a)[:2]] == [-1, -1] and np.isnan(bad(a)[2])


def test_angles_are_wrapped() -> None:
    sample = ml.compile(lambda mu: np.random.default_rng(0).vonmises(mu, 0.5, COUNT))(7.0)
    assert np.all(np.abs(sample) <= np.pi)
    assert stats.kstest((sample - 7 + 3 * np.pi) % (2 * np.pi) - np.pi, stats.vonmises(0.5).cdf).pvalue > 1e-3


def test_what_is_not_compiled_is_refused() -> None:
    with pytest.raises(ml.UnsupportedSyntaxError, match=r"`rng\.bytes` is not compiled(.|\n)*np\.uint8"):
        ml.compile(lambda: np.random.default_rng(0).bytes(3))()
    with pytest.raises(ml.UnsupportedSyntaxError, match="takes an integer in compiled code, not list"):
        ml.compile(lambda: np.random.default_rng([1, 2]).random())()


def test_derivatives_and_batches() -> None:
    def loss(scale: Any) -> Any:
        return np.sum(np.random.default_rng(0).normal(0.0, scale, 4) ** 2)

    assert np.isclose(ml.grad(loss)(2.0), 2 * 2.0 * ml.compile(loss)(1.0))
    rows = ml.vmap(lambda seed: np.random.default_rng(seed).random(3))(np.arange(4))
    assert np.array_equal(rows[2], ml.compile(lambda seed: np.random.default_rng(seed).random(3))(2))
