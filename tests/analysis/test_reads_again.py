"""Values that are read in several ways, of which one is in the body of an operation: a gather names no such operand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tests.fuzz.oracle import check

Array = npt.NDArray[Any]


def integers(*shape: int) -> Array:
    """Whole numbers, so that every order of summation is exact."""
    return np.random.default_rng(len(shape)).integers(-3, 4, shape).astype(np.float64)


def matmul(x: Array, w: Array) -> Array:
    product: Array = x @ w
    return product


def contracted(x: Array, w: Array) -> Array:
    product: Array = np.einsum("ij,kj->ik", x, w)
    return product


def raised(x: Array, w: Array) -> Array:
    y = np.zeros((x.shape[0], w.shape[1]))
    y += x @ w
    return y


READS: dict[str, Callable[[Array], Any]] = {
    "rows": lambda y: y[[1, 0]],
    "columns": lambda y: y[:, [1, 0]],
    "elements": lambda y: y[[1, 0], [0, 2]],
    "take": lambda y: np.take(y, [5]),
    "sum of rows": lambda y: np.sum(y[[1, 0]]),
    "reversed": lambda y: y[::-1] + 1,
    "computed place": lambda y: y[np.argmax(y, 0)],
    "slice": lambda y: y[1:3] * 1,
    "row sums": lambda y: np.sum(y, 1),
    "sorted": lambda y: np.sort(y, 0),
    "roll": lambda y: np.roll(y, 1, 0),
    "mask": lambda y: np.sum(y[y > 0]),
    "search": lambda y: np.searchsorted(np.sort(y[0]), y),
}


@pytest.mark.parametrize("other", READS)
@pytest.mark.parametrize("make", [matmul, contracted, raised])
def test_a_product_is_read_twice(make: Callable[..., Array], other: str) -> None:
    def function(x: Array, w: Array) -> Any:
        y = make(x, w)
        return READS[other](y), y * 2, READS[other](y)

    check(function, integers(8, 8), integers(8, 8))


@pytest.mark.parametrize("other", READS)
def test_a_product_is_read_before_it_is_written_over(other: str) -> None:
    def function(x: Array, w: Array) -> Any:
        y = x @ w
        first = READS[other](y)
        y[...] = np.maximum(y, 0)
        return first, y, READS[other](y)

    check(function, integers(8, 8), integers(8, 8))


@pytest.mark.parametrize("other", READS)
def test_an_operand_is_read_before_it_is_written_over(other: str) -> None:
    def function(x: Array, w: Array) -> Any:
        a = x * 2
        y = a @ w
        first = READS[other](a)
        a += READS["rows"](y)[0]
        return first, a, y + 1

    check(function, integers(8, 8), integers(8, 8))
