"""Initial values: their distributions, and orthogonal matrices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mlirml as ml
from mlirml import random
from mlirml.nn import initializers

KEY = random.key(3)
SHAPE = (200, 50, 3, 2)  # fan_in 300, fan_out 1200
SPREADS: dict[str, tuple[Callable[..., Any], float, float]] = {
    # the standard deviation, and the largest number
    "xavier_uniform": (initializers.xavier_uniform, np.sqrt(2 / 1500), np.sqrt(6 / 1500)),
    "xavier_normal": (lambda *given: initializers.xavier_normal(*given, gain=2.0), 2 * np.sqrt(2 / 1500), np.inf),
    "he_uniform": (initializers.he_uniform, np.sqrt(2 / 300), np.sqrt(6 / 300)),
    "he_normal": (lambda *given: initializers.he_normal(*given, nonlinearity="linear"), np.sqrt(1 / 300), np.inf),
    "leaky": (
        lambda *given: initializers.he_normal(*given, nonlinearity="leaky_relu", slope=1.0), np.sqrt(1 / 300), np.inf
    ),
    "uniform": (lambda *given: initializers.uniform(*given, low=-2, high=2), 2 / np.sqrt(3), 2),
    "normal": (lambda *given: initializers.normal(*given, std=0.3), 0.3, np.inf),
    "truncated_normal": (lambda *given: initializers.truncated_normal(*given, std=0.1), 0.0879626, 0.2),
}  # fmt: skip


@pytest.mark.parametrize("name", SPREADS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16])
def test_mean_spread_and_range(name: str, dtype: Any) -> None:
    function, deviation, most = SPREADS[name]
    drawn = function(KEY, SHAPE, dtype)
    assert drawn.dtype == dtype and drawn.shape == SHAPE
    wide = drawn.astype(float)
    assert wide.std() == pytest.approx(deviation, rel=0.02) and abs(wide.mean()) < 0.02 * deviation
    assert np.abs(wide).max() <= most * 1.001
    compiled = ml.compile(lambda key: function(key, SHAPE, dtype))(KEY)
    np.testing.assert_allclose(compiled, drawn, rtol=2e-3 if dtype == np.float16 else 1e-4, atol=1e-6)


def test_constants() -> None:
    assert np.array_equal(initializers.zeros(None, (2, 3)), np.zeros((2, 3)))
    assert np.array_equal(initializers.ones(None, (2,), np.float16), np.ones(2))
    assert np.array_equal(ml.compile(lambda: initializers.constant(None, (3,), value=2.5))(), [2.5] * 3)


@pytest.mark.parametrize("shape", [(5, 5), (4, 9), (30, 7), (6, 2, 2, 2), (1, 3)])
@pytest.mark.parametrize("compiled", [False, True])
def test_orthogonal(shape: tuple[int, ...], compiled: bool) -> None:
    def drawn(key: Any) -> Any:
        return initializers.orthogonal(key, shape, gain=2.0)

    found = (ml.compile(drawn) if compiled else drawn)(KEY)
    matrix = found.reshape(shape[0], -1).astype(float)
    small = matrix @ matrix.T if len(matrix) <= matrix.shape[1] else matrix.T @ matrix
    np.testing.assert_allclose(small, 4 * np.eye(len(small)), atol=4e-6)


def test_orthogonal_matrices_are_equally_likely() -> None:
    """Each element has mean 0 and variance 1 / n, the diagonal too: no sign is preferred."""
    many = np.stack([initializers.orthogonal(key, (3, 3), np.float64) for key in random.split(KEY, 1000)])
    assert np.abs(many.mean(0)).max() < 0.08
    np.testing.assert_allclose(many.var(0), 1 / 3, atol=0.05)


def test_errors() -> None:
    with pytest.raises(ml.ShapeError, match=r"xavier_uniform: a weight has at least two dimensions, .* got \[3\]"):
        initializers.xavier_uniform(KEY, (3,))
    with pytest.raises(ml.ArgumentError, match="he_normal: nonlinearity 'swish' is not known"):
        initializers.he_normal(KEY, (3, 3), nonlinearity="swish")
