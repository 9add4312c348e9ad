"""Random lists of arrays that grow, and are joined whole and in part, before and after stores into them.

`MLIRML_FUZZ=1000` runs so many programs, other ones each time; `MLIRML_FUZZ_SEED` takes a seed back.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import mlirml as ml
from tests.fuzz.fuzzing import COUNT, first_seed

MAPS: tuple[Callable[[Any], Any], ...] = (np.tanh, lambda x: x * 2, lambda x: x - x.mean(), np.abs, lambda x: x[::-1])


class Dice:
    """Numbers that are drawn before the program runs, as its choices are part of it."""

    def __init__(self, numbers: Sequence[float]) -> None:
        self._numbers = iter(numbers)

    def below(self, n: int) -> int:
        return int(next(self._numbers) * n)

    def choice(self, values: Sequence[Any]) -> Any:
        return values[self.below(len(values))]


def step(dice: Dice, items: list[Any], joins: list[Any], axis: int) -> None:
    """A further array, join or store; its choices depend on the lengths of the lists alone."""
    i, j = sorted((dice.below(len(items)), 1 + dice.below(len(items))))
    part = items[i:j] or items[:1]
    match dice.choice(["map", "all", "all", "part", "nested", "mean", "store", "overwrite", "slice"]):
        case "map":
            items.append(dice.choice(MAPS)(dice.choice(items)))
        case "all":
            joins.append(np.concatenate(items, axis))
            items.append(np.take(joins[-1], np.arange(1 + dice.below(2)), axis) + 1)
        case "part":
            joins.append(np.concatenate(part, axis))
        case "nested" if joins:
            joins.append(np.concatenate([dice.choice(joins), *part], axis))
        case "mean" if joins:
            items.append(items[-1] + dice.choice(joins).mean(axis, keepdims=True))
        case "store" if joins:
            one = dice.choice(joins)
            one[0, -1] = one[-1, 0] + 1
        case "overwrite":
            one = dice.choice(items)
            one[-1, :2] *= 2
        case "slice" if joins:
            items.append(np.copy(dice.choice(joins)[:, :][: items[0].shape[0]]) if axis else items[0] * 2)


def check(seed: int) -> None:
    rng, numbers = random.Random(seed), np.random.default_rng(seed)
    axis, steps = rng.choice((0, 1, 1)), rng.randint(3, 10)
    shape = (rng.choice((2, 3, 5)), rng.choice((2, 30, 64)))
    drawn = [rng.random() for _ in range(100)]
    given = [numbers.standard_normal(shape).astype(rng.choice((np.float32, np.float64))) for _ in range(2)]

    def program(x: Any, y: Any) -> Any:
        dice = Dice(drawn)
        items, joins = [x, y], []
        for _ in range(steps):
            step(dice, items, joins, axis)
        pair = [joins[0], joins[0] * 2] if joins else []
        across = [np.concatenate(each, 1 - axis) for each in (pair, [*pair, *pair[:1]]) if each]
        results = [*joins, *across, np.concatenate(items, axis)]
        return [one for one in results if dice.below(10) < 7], x, y

    expected = program(*(x.copy() for x in given))
    found = ml.compile(program)(*(x.copy() for x in given))
    for one, other in zip((*found[0], *found[1:]), (*expected[0], *expected[1:]), strict=True):
        tolerance = 1e-5 if any(x.dtype == np.float32 for x in given) else 1e-12
        np.testing.assert_allclose(one, other, rtol=tolerance, atol=tolerance, err_msg=f"seed {seed}")


def test_random_joins() -> None:
    first = first_seed() if COUNT else 0
    for number in range(COUNT or 40):
        check(first + number)
