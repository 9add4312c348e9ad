"""`np.quantile` and `np.percentile` for shares that are known only at run time."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mlirml as ml
from tests.fuzz.oracle import TARGETS, assert_same

X = np.random.default_rng(0).standard_normal((4, 9))


@pytest.mark.parametrize("target", TARGETS)
def test_gives_what_numpy_gives(target: str) -> None:
    def both(x: Any, q: Any, axis: Any, keepdims: bool) -> Any:
        return np.quantile(x, q, axis=axis, keepdims=keepdims), np.percentile(x, q * 100, axis=axis, keepdims=keepdims)

    compiled = ml.compile(both, target, static_argnums=(2, 3))
    broken = np.where(X > 1.5, np.nan, X)
    for x in (X, X.astype(np.float32), X.astype(np.float16), (X * 9).astype(np.int32), broken):
        for q in (0.3, np.array([[0.1, 1], [0.5, 0]])):
            for axis, keepdims in ((None, False), (1, True), ((0, 1), True)):
                arguments = (x, q, axis, keepdims)
                assert_same(
                    compiled(*arguments),
                    both(*arguments),
                    f"{x.dtype}, {q}, {axis}",
                    4 * np.finfo(np.float16 if x.dtype == np.float16 else np.float32).eps,
                )


def test_lists_of_shares() -> None:
    found = ml.compile(lambda x, q: np.quantile(x, [q, 0.5, 1 - q]), "reference")(X, 0.25)
    np.testing.assert_allclose(found, np.quantile(X, [0.25, 0.5, 0.75]), rtol=1e-14)


def test_shares_outside_give_nan() -> None:
    compiled = ml.compile(lambda x, q: np.quantile(x, q), "reference")
    np.testing.assert_array_equal(np.isnan(compiled(X, np.array([-0.1, 0.5, 1.1]))), [True, False, True])


def test_derivatives_of_elements_and_shares() -> None:
    of_x, of_q = ml.compile(ml.grad(lambda x, q: np.quantile(x, q), (0, 1)), "reference")(X[0], 0.3)
    low, high = np.sort(X[0])[2:4]
    np.testing.assert_allclose(of_q, 8 * (high - low), rtol=1e-12)
    np.testing.assert_allclose(np.sort(of_x)[-2:], [0.4, 0.6], rtol=1e-12)
