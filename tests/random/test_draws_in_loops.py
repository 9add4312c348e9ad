"""Draws in loop nests: the same numbers as those of uncompiled functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mlirml as ml
from mlirml import random

# mypy: disable-error-code="no-untyped-def"

COUNT = 5
KEYS = random.split(random.key(3), COUNT)
DRAWS: dict[str, Callable[[Any], Any]] = {
    "bernoulli": lambda key: random.bernoulli(key, 0.5),
    "beta": lambda key: random.beta(key, 2.0, 3.0),
    "bits": random.bits,
    "categorical": lambda key: random.categorical(key, np.array([0.1, 0.7, -0.4])),
    "choice": lambda key: random.choice(key, 7),
    "exponential": random.exponential,
    "gamma": lambda key: random.gamma(key, 2.0),
    "gumbel": random.gumbel,
    "laplace": random.laplace,
    "normal": random.normal,
    "poisson": lambda key: random.poisson(key, 3.0),
    "randint": lambda key: random.randint(key, (), 0, 10),
    "truncated_normal": lambda key: random.truncated_normal(key, -1.0, 1.0),
    "uniform": random.uniform,
}


@pytest.mark.parametrize("frontend", [None, "loops"])
@pytest.mark.parametrize("name", DRAWS)
def test_draws_in_loops_are_those_of_uncompiled_functions(name: str, frontend: str | None) -> None:
    draw = DRAWS[name]

    def rows(keys):
        out = np.zeros(COUNT)
        for i in range(COUNT):
            out[i] = draw(keys[i])
        return out

    def summed(keys):
        total = 0.0
        for i in range(COUNT):
            total += draw(keys[i])
        return total

    def folded(key):
        out = np.zeros(COUNT)
        for i in range(COUNT):
            out[i] = draw(random.fold_in(key, i))
        return out

    options = {} if frontend is None else {"frontend": frontend}
    for function, keys in ((rows, KEYS), (summed, KEYS), (folded, KEYS[0])):
        expected = function(keys)
        np.testing.assert_allclose(ml.compile(function, **options)(keys), expected, rtol=1e-12)
