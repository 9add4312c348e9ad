"""Wrong keys, shapes and parameters: an error of this package at once, and what NumPy gives where there is one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mlirml as ml
from mlirml import random

KEY = random.key(3)
NAN, INF = float("nan"), float("inf")
DRAWS: dict[str, Callable[[Any, Any], Any]] = {
    "uniform of low": lambda p, s: random.uniform(KEY, s, low=p, high=2.0),
    "uniform of high": lambda p, s: random.uniform(KEY, s, low=0.0, high=p),
    "normal of loc": lambda p, s: random.normal(KEY, s, loc=p),
    "normal of scale": lambda p, s: random.normal(KEY, s, scale=p),
    "truncated_normal": lambda p, s: random.truncated_normal(KEY, p, 2.0, s),
    "exponential": lambda p, s: random.exponential(KEY, s, scale=p),
    "gumbel": lambda p, s: random.gumbel(KEY, s, scale=p),
    "laplace": lambda p, s: random.laplace(KEY, s, scale=p),
    "bernoulli": lambda p, s: random.bernoulli(KEY, p, s),
    "randint of low": lambda p, s: random.randint(KEY, s, p, 3),
    "randint of high": lambda p, s: random.randint(KEY, s, 0, p),
    "categorical": lambda p, s: random.categorical(KEY, [p, p], shape=s),
    "choice": lambda p, s: random.choice(KEY, 1, s, p=[p]),
    "gamma": lambda p, s: random.gamma(KEY, p, s),
    "beta": lambda p, s: random.beta(KEY, p, 1.0, s),
    "dirichlet": lambda p, s: random.dirichlet(KEY, [p, 1.0], s),
    "poisson": lambda p, s: random.poisson(KEY, p, s),
    "multivariate_normal": lambda p, s: random.multivariate_normal(KEY, [p, 0.0], np.eye(2), s),
}
SHAPES = [-1, (2, -1), 2.5, (2.0,), "a", (2, (3,)), 10**12, (10**10, 10**10)]


@pytest.mark.parametrize("name", DRAWS)
def test_parameters_that_are_no_real_numbers(name: str) -> None:
    """NumPy converts None to NaN, and a complex number to its real part."""
    for wrong in (None, "a", 1j, np.complex64(1)):
        with pytest.raises(ml.MlirmlError):
            DRAWS[name](wrong, (2,))
    for wrong in ({}, ["b"], np.array(["x"]), np.array([1j])):
        with pytest.raises(ml.MlirmlError):
            random.normal(KEY, (2,), scale=wrong)


@pytest.mark.parametrize("name", DRAWS)
def test_shapes_that_are_none(name: str) -> None:
    for shape in SHAPES:
        with pytest.raises(ml.ShapeError):
            DRAWS[name](1.0 if not name.startswith("randint") else 1, shape)


@pytest.mark.parametrize("name", DRAWS)
def test_lengths_of_zero_and_one(name: str) -> None:
    p: Any = {"randint of high": 2, "randint of low": 0}.get(name, 1.0)
    for shape in ((), 0, (0,), (0, 3), (1,), np.array([2, 0]), np.array([1, 3])):
        wanted = (shape,) if isinstance(shape, int) else tuple(shape)  # type: ignore[arg-type]
        found = np.asarray(DRAWS[name](p, shape))
        assert found.shape[: len(wanted)] == wanted
        assert np.all(np.isfinite(found))


NOT_NUMBERS = {
    "normal of scale", "normal of loc", "truncated_normal", "exponential", "gumbel", "laplace", "gamma", "beta",
    "uniform of low", "uniform of high", "dirichlet", "multivariate_normal",
}  # fmt: skip


@pytest.mark.parametrize("name", DRAWS)
def test_nan_gives_nan_or_an_error(name: str) -> None:
    if name in NOT_NUMBERS:
        assert np.all(np.isnan(DRAWS[name](NAN, (3,))[..., 0]))
    elif name != "categorical":  # which takes NaN for the greatest, as argmax
        with pytest.raises(ml.MlirmlError):
            DRAWS[name](NAN, (3,))


WRONG: dict[str, Callable[[], Any]] = {
    "an infinite interval": lambda: random.uniform(KEY, 3, low=-INF),
    "an interval from above": lambda: random.uniform(KEY, 3, low=2.0, high=1.0),
    "a negative scale": lambda: random.normal(KEY, 3, scale=-1.0),
    "a negative count": lambda: random.permutation(KEY, -1),
    "no array": lambda: random.permutation(KEY, 2.5),
    "an axis of a permutation": lambda: random.permutation(KEY, np.ones((2, 3)), 5),
    "an axis of a choice": lambda: random.choice(KEY, np.ones((2, 3)), (2,), axis=4),
    "an axis of logits": lambda: random.categorical(KEY, np.ones((2, 3)), axis=2),
    "an axis that is text": lambda: random.categorical(KEY, np.ones((2, 3)), axis="a"),  # type: ignore[arg-type]
    "a choice of nothing": lambda: random.choice(KEY, 0, (1,)),
    "a choice of too many": lambda: random.choice(KEY, 3, (4,), replace=False),
    "a choice of more than have a probability": lambda: random.choice(
        KEY, 4, (3,), replace=False, p=np.array([0.5, 0.5, 0, 0])
    ),
    "probabilities of another length": lambda: random.choice(KEY, 3, p=[0.5, 0.5]),
    "probabilities above 1": lambda: random.choice(KEY, 2, p=[0.6, 0.6]),
    "negative probabilities": lambda: random.choice(KEY, 2, p=[-1.0, 2.0]),
    "an empty mean": lambda: random.multivariate_normal(KEY, np.zeros(0), np.zeros((0, 0))),
    "a mean of another length": lambda: random.multivariate_normal(KEY, np.zeros(3), np.eye(2)),
    "no alpha": lambda: random.dirichlet(KEY, np.zeros(0)),
    "integers out of range": lambda: random.randint(KEY, 3, 0, 300, np.uint8),
    "integers of more than 64 bits": lambda: random.randint(KEY, 3, 0, 2**64 + 1, np.uint64),
    "integers from above": lambda: random.randint(KEY, 3, 5, 5),
    "floats for integers": lambda: random.randint(KEY, 3, 0, 3, np.float32),
    "integers for floats": lambda: random.normal(KEY, 3, np.int32),
    "a dtype that is none": lambda: random.normal(KEY, 3, "float31"),
    "signed bits": lambda: random.bits(KEY, 3, np.int32),
    "a negative number of keys": lambda: random.split(KEY, -1),
    "a negative number of an iteration": lambda: random.fold_in(KEY, np.int64(-3)),
    "a number of more than 32 bits": lambda: random.fold_in(KEY, np.int64(1 << 40)),
    "no number of an iteration": lambda: random.fold_in(KEY, None),
    "a complex number of an iteration": lambda: random.fold_in(KEY, 1j),
    "a seed of 1.0": lambda: random.key(1.0),
    "a seed of more than 64 bits": lambda: random.key(1 << 64),
}


@pytest.mark.parametrize("name", WRONG)
@pytest.mark.parametrize("compiled", [False, True])
def test_wrong_arguments(name: str, compiled: bool) -> None:
    with pytest.raises(ml.MlirmlError):
        (ml.compile(WRONG[name]) if compiled else WRONG[name])()


@pytest.mark.parametrize(
    "key",
    [None, 3, 3.0, "k", [1, 2], np.zeros(2), np.zeros(3, np.uint32), np.zeros((2, 2), np.uint32), True,
     np.zeros((), np.uint32), np.zeros((0, 2), np.uint32), np.zeros(2, np.uint64), np.random.default_rng(1)],
)  # fmt: skip
def test_wrong_keys(key: Any) -> None:
    for call in (random.normal, random.split, random.bits, lambda k: random.fold_in(k, 1)):
        with pytest.raises(ml.MlirmlError):
            call(key)


def test_all_64_bits_are_drawn() -> None:
    drawn = random.randint(KEY, 1000, 0, 1 << 64, np.uint64)
    assert drawn.max() > 0.99 * 2**64 and drawn.min() < 0.01 * 2**64
    signed = random.randint(KEY, 1000, -(1 << 63), 1 << 63)
    assert signed.max() > 0.98 * 2**63 and signed.min() < -0.98 * 2**63


GENERATOR = {
    "normal": (0.0, -1.0), "lognormal": (0.0, -1.0), "uniform": (3.0, 2.0), "exponential": (-1.0,),
    "gumbel": (0.0, -1.0), "laplace": (0.0, -1.0), "logistic": (0.0, -1.0), "gamma": (-1.0,), "beta": (0.0, 1.0),
    "poisson": (-1.0,), "binomial": (5, 1.5), "integers": (5, 2), "weibull": (-1.0,), "rayleigh": (-1.0,),
    "pareto": (0.0,), "power": (0.0,), "triangular": (0.0, 2.0, 1.0), "chisquare": (0.0,), "f": (1.0, 0.0),
    "standard_t": (0.0,), "wald": (0.0, 1.0), "geometric": (0.0,), "negative_binomial": (0.0, 0.5),
    "multinomial": (-1, [1.0]), "zipf": (1.0,), "logseries": (1.0,), "vonmises": (0.0, -1.0),
    "hypergeometric": (3, 2, 6), "noncentral_chisquare": (0.0, 1.0), "noncentral_f": (1.0, 1.0, -1.0),
}  # fmt: skip


@pytest.mark.parametrize("name", GENERATOR)
def test_methods_refuse_what_numpy_refuses(name: str) -> None:
    with pytest.raises(ValueError):
        getattr(np.random.default_rng(0), name)(*GENERATOR[name])
    with pytest.raises(ml.ShapeError, match=f"^{name if name != 'integers' else 'randint'}: "):
        ml.compile(lambda: getattr(np.random.default_rng(0), name)(*GENERATOR[name]))()
