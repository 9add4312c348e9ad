"""`np.random.default_rng` in compiled functions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import stats

import mlirml as ml
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


def test_what_is_not_compiled_is_refused() -> None:
    with pytest.raises(ml.UnsupportedSyntaxError, match=r"`rng\.zipf` is not compiled"):
        ml.compile(lambda: np.random.default_rng(0).zipf(3.0))()
    with pytest.raises(ml.UnsupportedSyntaxError, match="takes an integer in compiled code, not list"):
        ml.compile(lambda: np.random.default_rng([1, 2]).random())()


def test_derivatives_and_batches() -> None:
    def loss(scale: Any) -> Any:
        return np.sum(np.random.default_rng(0).normal(0.0, scale, 4) ** 2)

    assert np.isclose(ml.grad(loss)(2.0), 2 * 2.0 * ml.compile(loss)(1.0))
    rows = ml.vmap(lambda seed: np.random.default_rng(seed).random(3))(np.arange(4))
    assert np.array_equal(rows[2], ml.compile(lambda seed: np.random.default_rng(seed).random(3))(2))
