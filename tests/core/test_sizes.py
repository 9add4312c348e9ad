"""Arithmetic of dynamic sizes: rounded quotients have the values, the limits and the marks that they should have."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from mlirml.core.sizes import Dim, Size, StaticSizeError
from mlirml.ir.marked_sizes import LEAST_MARK

VALUES = (2, 3, 4, 5, 7, 31, 32, 100, 517)


def random_quotient(rng: np.random.Generator, n: Any) -> Any:
    """A linear function of n, divided by a small number, and perhaps another one of that."""
    for _ in range(int(rng.integers(1, 3))):
        factor, offset, divisor = int(rng.choice([-2, -1, 1, 3])), int(rng.integers(-9, 10)), int(rng.integers(1, 17))
        n = (n * factor + offset) // divisor
    return n


@pytest.mark.parametrize("seed", range(300))
def test_quotients_are_those_of_python_and_within_their_limits(seed: int) -> None:
    try:
        found = random_quotient(np.random.default_rng(seed), Dim("n").size)
    except StaticSizeError:  # its sign depends on the size: that is a condition of a program
        return
    for n in VALUES:
        expected = random_quotient(np.random.default_rng(seed), n)
        if not isinstance(found, Size):
            assert found == expected
            continue
        low, high = found.limits()
        assert found.value({"n": n}) == expected
        assert low is None or low <= expected
        assert high is None or high >= expected


@pytest.mark.parametrize("name", ["h", "w", "n", "rows", "batch"])
@pytest.mark.parametrize("divisor", [2, 3, 5, 16, 32])
def test_windows_at_marks_of_quotients_are_in_bounds(name: str, divisor: int) -> None:
    size = Dim(name).size
    quotient = (size - 1) // divisor
    assert quotient.mark() > LEAST_MARK
    assert quotient.mark() * divisor + 64 < size.mark()


def test_the_order_of_a_size_and_a_rounded_up_part_is_known() -> None:
    size = Dim("n").size
    assert -(-size // 3) >= 1
    assert -(-(size - 2) // 2) >= 0
