"""Quotients of small integers by products, against Python's."""

from __future__ import annotations

import random

import numpy as np
import pytest

import mlirml as ml
from mlirml.passes import NoMatch
from mlirml.pipelines.memref.multiply_quotients import factor_for


@pytest.mark.parametrize("most", [0, 1, 255, 4095, 65_535, 10**6])
def test_a_factor_divides_all_numbers_of_its_range(most: int) -> None:
    rng = random.Random(most)
    for divisor in [3, 5, 6, 7, 9, 10, 641, 1000, 1_000_003, *(rng.randrange(3, 1 << 20) for _ in range(20))]:
        found = factor_for(divisor, most)
        near = [n for k in (1, 2, most // divisor) for n in (k * divisor - 1, k * divisor) if 0 <= n <= most]
        for number in [0, most, *near, *(rng.randrange(most + 1) for _ in range(50))]:
            product = number * found.factor
            assert product < 1 << 63
            assert product >> found.shift == number // divisor


def test_products_that_are_too_long_are_not_made() -> None:
    with pytest.raises(NoMatch):
        factor_for(1_000_003, (1 << 63) - 1)


def test_the_remainders_of_a_loop_are_those_of_python() -> None:
    def hashed(text: np.ndarray) -> tuple[int, int]:
        value, digits = 7, 0
        for i in range(len(text)):
            value = (value * 131 + int(text[i])) % 999_983
            digits += value // 10 % 10 + i // 3
        return value, digits

    text = np.random.default_rng(0).integers(0, 256, 3000).astype(np.uint8)
    assert tuple(map(int, ml.compile(hashed)(text))) == hashed(text)
