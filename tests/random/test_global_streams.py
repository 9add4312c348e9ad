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


class Dice:
    def __init__(self) -> None:
        self.sides = list(range(1, 7))

    def roll(self) -> Any:
        return random.choice(self.sides)


def rolled(n: int) -> Any:
    dice, counts = Dice(), [0] * 7
    for _ in range(n):
        counts[dice.roll()] += 1
    return counts


def shuffled_until(n: int) -> Any:
    items, k = [1, 2, 3, 4], 0
    while items[0] != 4 and k < n:
        random.shuffle(items)
        k += 1
    return items


def shuffled_items(n: int) -> Any:
    items = []
    for i in range(n):
        items.append(i * i)
    random.shuffle(items)
    return items


def drawn_items(x: list[int]) -> Any:
    return random.choice(x), random.sample(range(10), 4), random.sample(x, 2), random.choices([1, 2], k=20)


def test_functions_of_sequences() -> None:
    random.seed(3)
    counts = ml.compile(rolled)(6000)
    assert counts[0] == 0 and sum(counts) == 6000 and all(900 < count < 1100 for count in counts[1:])
    assert ml.compile(shuffled_until)(1000)[0] == 4
    squares = [i * i for i in range(8)]
    for n in (8, np.int64(8)):
        found = {tuple(map(int, ml.compile(shuffled_items)(n))) for _ in range(5)}
        assert len(found) == 5 and all(sorted(one) == squares for one in found)
    one, four, two, many = ml.compile(drawn_items)([5, 6, 7])
    assert one in (5, 6, 7) and len({*map(int, four)}) == 4 and len({*map(int, two)} & {5, 6, 7}) == 2
    assert {*map(int, many)} == {1, 2}
    x = list(range(20))
    ml.compile(lambda x: random.shuffle(x))(x)
    assert x != sorted(x) and sorted(x) == list(range(20))


def test_functions_of_sequences_that_are_too_short() -> None:
    with pytest.raises(IndexError, match="empty sequence"):
        ml.compile(lambda: random.choice([]))()
    with pytest.raises(ValueError, match="larger than population"):
        ml.compile(lambda x, k: random.sample(x, k))([1, 2], 3)
