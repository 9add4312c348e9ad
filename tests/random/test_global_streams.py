"""`np.random` and `random` in compiled functions: their distributions, and what seeds decide on."""

from __future__ import annotations

import random
from random import randint
from typing import Any

import numpy as np
import pytest
from numpy.random import normal

import mlirml as ml


def drawn(x: Any) -> Any:
    return x + np.random.rand(3), normal(2.0, 0.1, 2), np.random.randint(5, size=(2, 3))


def python_drawn(x: Any) -> Any:
    return x + random.random(), randint(1, 3), random.gauss(), random.randrange(2, 9, 3), random.uniform(2, 4)


def area(n: int) -> Any:
    hits = 0
    for _ in range(n):
        x, y = np.random.rand(), np.random.uniform(0.0, 1.0)
        if x * x + y * y < 1:
            hits += 1
    return 4 * hits / n


def seeded(seed: int) -> Any:
    np.random.seed(seed)
    random.seed(seed)
    return np.random.randn(4), random.random()


def flat(result: Any) -> list[float]:
    return np.concatenate([np.ravel(x) for x in result]).tolist()


@pytest.mark.parametrize(("function", "module"), [(drawn, np.random), (python_drawn, random)])
def test_a_seed_outside_decides(function: Any, module: Any) -> None:
    """Also where a call compiles, and each call draws other numbers."""
    found = []
    f, x = ml.compile(function), np.float32(1)
    for _ in range(3):
        module.seed(5)
        found.append([flat(f(x)), flat(f(x)), flat(f(x))])
    assert found[0] == found[1] == found[2]
    assert found[0][0] != found[0][1] != found[0][2]


def test_a_seed_in_the_function_decides() -> None:
    f, g = ml.compile(seeded), ml.compile(drawn)
    one, two = [(flat(f(3)), flat(g(0.0)), np.random.rand(), random.random()) for _ in range(2)]
    assert one == two
    assert flat(f(4)) != one[0]


def test_a_generator_without_draws_is_left_alone() -> None:
    ml.compile(drawn)(0.0)
    np.random.seed(1)
    expected = np.random.rand()
    np.random.seed(1)
    ml.compile(lambda x: x + 1)(0.0)
    assert np.random.rand() == expected


def test_each_iteration_draws_other_numbers() -> None:
    np.random.seed(2)
    assert abs(ml.compile(area)(200_000) - np.pi) < 0.02


def test_distributions_and_types() -> None:
    np.random.seed(3)
    random.seed(3)

    @ml.compile
    def of_each() -> Any:
        n = 20_000
        return (
            np.random.standard_normal(n), np.random.exponential(2.0, n), np.random.random_integers(1, 3, n) * 1.0,
            np.random.poisson(4.0, n) * 1.0, np.random.choice(5, n) * 1.0, np.random.gamma(2.0, 3.0, n),
        )  # fmt: skip

    for found, mean in zip(of_each(), (0, 2, 2, 4, 2, 6), strict=True):
        assert abs(np.mean(found) - mean) < 0.15
    assert ml.compile(lambda x: x * random.random())(np.ones(2, np.float32)).dtype == np.float32
    assert {int(ml.compile(python_drawn)(0.0)[3]) for _ in range(30)} == {2, 5, 8}


def test_a_random_state_has_a_stream_of_its_own() -> None:
    f = ml.compile(lambda seed: np.random.RandomState(seed).rand(3))
    np.testing.assert_array_equal(f(1), f(1))
    assert flat([f(1)]) != flat([f(2)])


def test_a_batch_is_refused() -> None:
    with pytest.raises(ml.MlirmlError, match="changes an array from outside"):
        ml.compile(lambda x: ml.vmap(lambda v: v + np.random.rand())(x))(np.zeros(3))
