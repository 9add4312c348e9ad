"""Jacobians of functions of arrays whose sizes are those of each call."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mlirml as ml


@pytest.mark.parametrize("transform", [ml.jacfwd, ml.jacrev])
def test_jacobians_of_any_size(transform: Any) -> None:
    vectors = ml.compile(transform(lambda x: np.cumsum(x) * x[0]), dynamic={"x": ("n",)})
    rows = ml.compile(transform(lambda x: x @ np.arange(2.0)), dynamic={"x": ("n", None)})
    for n in (3, 5, 2):
        x = np.arange(1.0, n + 1)
        expected = np.tril(np.full((n, n), x[0]))
        expected[:, 0] += np.cumsum(x)
        np.testing.assert_allclose(vectors(x), expected)
        np.testing.assert_allclose(rows(np.ones((n, 2))), np.einsum("ij,k->ijk", np.eye(n), np.arange(2.0)))
    assert "1 signature(s) compiled" in vectors.explain()


def test_hessians_of_any_size() -> None:
    hessian = ml.compile(ml.hessian(lambda x: np.sum(x**3) * x[0]), dynamic={"x": ("n",)})
    for n in (3, 5, 2):
        x = np.arange(1.0, n + 1)
        expected = np.diag(6 * x * x[0])
        expected[0] += 3 * x**2
        expected[:, 0] += 3 * x**2
        np.testing.assert_allclose(hessian(x), expected)
    assert "1 signature(s) compiled" in hessian.explain()
