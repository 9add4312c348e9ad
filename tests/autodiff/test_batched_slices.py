"""Slices that begin elsewhere for each example of a batch, and have one length."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mlirml as ml

X = np.arange(1.0, 7.0)
STARTS = np.array([2, 3, 0])


FUNCTIONS: list[Callable[[Any, Any], Any]] = [
    lambda x, i: x[i : i + 2],
    lambda x, i: x[i : i + 4 : 2],
    lambda x, i: np.sin(x[i + 1 : i + 3]) + 1,
    lambda x, i: {"one": x[i : i + 1], "both": (x[i : i + 2], x[i : i + 3] * i)},
    lambda x, i: x[i - 6 : i - 4],
    lambda x, i: x.reshape(2, 3)[:, i - i : i - i + 2],
]


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("target", ["cpu", "reference"])
def test_each_example_has_its_own_slice(function: Callable[[Any, Any], Any], target: str) -> None:
    expected = [function(X, int(i)) for i in STARTS]
    got = ml.compile(lambda x, i: ml.vmap(function, (None, 0))(x, i), target=target)(X, STARTS)
    many = ml.compile(lambda x, i: ml.vmap(function)(x, i), target=target)(np.stack([X, X + 1, X + 2]), STARTS)
    others = [function(X + n, int(i)) for n, i in enumerate(STARTS)]
    for found, wanted in ((got, expected), (many, others)):
        if isinstance(wanted[0], dict):
            np.testing.assert_array_equal(found["one"], [each["one"] for each in wanted])
            for number in range(2):
                np.testing.assert_array_equal(found["both"][number], [each["both"][number] for each in wanted])
        else:
            np.testing.assert_allclose(found, wanted)


def test_derivatives_of_such_slices() -> None:
    def doubled(x: Any, i: Any) -> Any:
        return x[i : i + 2] ** 2

    expected = np.zeros((3, 2, 6))
    for lane, i in enumerate(STARTS):
        for k in range(2):
            expected[lane, k, i + k] = 2 * X[i + k]
    np.testing.assert_allclose(ml.vmap(ml.jacfwd(doubled), (None, 0))(X, STARTS), expected)
    np.testing.assert_allclose(ml.vmap(ml.jacrev(doubled), (None, 0))(X, STARTS), expected)
    gradient = ml.grad(lambda x: np.sum(ml.vmap(doubled, (None, 0))(x, STARTS)))(X)
    np.testing.assert_allclose(gradient, expected.sum((0, 1)))


def test_a_slice_that_ends_beyond_the_array() -> None:
    with pytest.raises(ml.ShapeError, match="result is a slice of length 2, and ends beyond the array"):
        ml.vmap(lambda x, i: x[i : i + 2], (None, 0))(X, np.array([2, 5, 0]))
    with pytest.raises(ml.ShapeError, match="result is a slice of length 2, and ends beyond the array"):
        ml.vmap(lambda x, i: x[i : i + 2], (None, 0))(X, np.array([2, -1, 0]))
    np.testing.assert_array_equal(ml.vmap(lambda x, i: np.sum(x[i : i + 2]), (None, 0))(X, np.array([2, 5])), [7, 6])
