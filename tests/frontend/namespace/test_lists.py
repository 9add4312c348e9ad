"""NumPy's functions of lists with traced items, as NumPy takes lists for arrays."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy import dot as imported_dot

import mlirml as ml

X = np.array([0.3, -1.5, 2.0, 0.7])
FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "sum": lambda x: np.sum([x[0], x[1]]),
    "sum of rows": lambda x: np.sum([x, x * 2], axis=0),
    "max": lambda x: np.max([x[0], 1.0, x[2]]),
    "amax of a tuple": lambda x: np.amax((x[0], 1.0)),
    "mean": lambda x: np.mean([x[0], 2]),
    "keyword": lambda x: np.sum(a=[x[0], x[1]]),
    "dot": lambda x: np.dot([x[0], x[1]], [x[2], 1.0]),
    "imported": lambda x: imported_dot([x[0], x[1]], [1, 2]),
    "ufunc": lambda x: np.sin([x[0], 1.0]),
    "ufunc of two": lambda x: np.maximum([x[0], 1.0], x[:2]),
    "reduce": lambda x: np.add.reduce([x[0], 1.0, x[2]]),
    "accumulate": lambda x: np.multiply.accumulate([x[0], 2.0, x[2]]),
    "outer": lambda x: np.subtract.outer([x[0], 1.0], x),
    "norm": lambda x: np.linalg.norm([x[0], 1.0, x[2]]),
    "cross": lambda x: np.cross([x[0], 1.0, x[2]], [1, 0, x[1]]),
    "solve": lambda x: np.linalg.solve([[x[0], 1], [1, -2]], [1, x[1]]),
    "where": lambda x: np.where([True, False], [x[0], x[1]], [0, 1]),
    "clip": lambda x: np.clip([x[0], x[1]], 0, 0.1),
    "argsort": lambda x: np.argsort([x[0], x[1], x[3]]),
    "ones_like": lambda x: np.ones_like([x[0], x[1]]),
    "shape": lambda x: x * np.shape([x, x])[1] + np.size([x[0], 1]),
    "diag": lambda x: np.diag([x[0], x[1]]),
    "concatenate": lambda x: np.concatenate([[x[0], x[1]], x[:3]]),
    "einsum": lambda x: np.einsum("i,i", [x[0], x[1]], [1, x[1]]),
    "any": lambda x: np.any([x[0] > 1, x[1] > 0.001]),
    "nested": lambda x: np.transpose([[x[0], 1], [2, x[1]]]),
    "take": lambda x: np.take([x[0], x[1] * 3], [1, 1, 0]),
    "cumsum": lambda x: np.cumsum([v * 2 for v in x]),
    "functions as values": lambda x: functools.reduce(np.add, [x, x * 2, 1.0]),
    "apply_along_axis": lambda x: np.apply_along_axis(np.sum, 0, x.reshape(2, 2)),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_as_in_numpy(name: str) -> None:
    function = FUNCTIONS[name]
    found, expected = ml.compile(function)(X), function(X)
    np.testing.assert_allclose(found, expected, rtol=1e-14)
    assert np.asarray(found).dtype == np.asarray(expected).dtype


def test_in_loops() -> None:
    def largest_pairs(x: Any) -> Any:
        total = 0.0
        for i in range(len(x) - 1):
            total += np.max([x[i], x[i + 1], 0.5]) + np.linalg.norm((x[i], 1.0))
        return total

    np.testing.assert_allclose(ml.compile(largest_pairs)(X), largest_pairs(X), rtol=1e-14)


def test_functions_given_as_arguments() -> None:
    np.testing.assert_allclose(ml.compile(lambda x, f: f([x[0], x[1]]))(X, sum), X[0] + X[1])


def test_derivatives() -> None:
    found = ml.compile(ml.grad(lambda x: np.max([x[0] * x[1], x[2] * x[3]])))(X)
    np.testing.assert_allclose(found, [0, 0, X[3], X[2]])


def of_another_kind(x: Any) -> Any:
    n = (x * 10).astype(np.int64)
    bits = np.array([(n[1] >> i) & 1 for i in range(8)], dtype=np.uint8)
    table = np.array([[x[0], 1], [2, x[2] * 200]], np.int16)
    truth = np.array([v > 0 for v in x], dtype=np.float32)
    return bits, table, truth, np.asarray([n[0], n[2] + 300], np.uint8), np.array([x[:2], x[2:]], int)


@pytest.mark.parametrize("frontend", ["trace", "loops"])
def test_items_are_cast_to_a_dtype_of_another_kind(frontend: str) -> None:
    for found, expected in zip(ml.compile(of_another_kind, frontend=frontend)(X), of_another_kind(X), strict=True):
        assert found.dtype == expected.dtype
        np.testing.assert_array_equal(found, expected)


def test_items_that_do_not_fit_are_an_error() -> None:
    with pytest.raises(OverflowError, match="out of bounds"):
        ml.compile(lambda x: np.array([x[0], 300], np.uint8))(X)
