"""Initial values: their distributions, and orthogonal matrices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mlirml as ml
from mlirml import random
from mlirml.nn import functional as F
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


def test_a_convolution_by_dirac_is_its_input() -> None:
    x = np.random.default_rng(0).standard_normal((2, 4, 7, 6)).astype(np.float32)
    weight = initializers.dirac(None, (6, 4, 3, 5))
    same = F.conv2d(x, weight, padding=(1, 2))
    np.testing.assert_array_equal(same[:, :4], x)
    assert not same[:, 4:].any()
    grouped = initializers.dirac(None, (8, 2, 3), groups=4)
    torch = pytest.importorskip("torch")
    np.testing.assert_array_equal(grouped, torch.nn.init.dirac_(torch.empty(8, 2, 3), 4).numpy())


def test_identities_and_sparse_matrices() -> None:
    np.testing.assert_array_equal(initializers.eye(None, (3, 4), np.float64), np.eye(3, 4))
    drawn = ml.compile(lambda key: initializers.sparse(key, (50, 400), sparsity=0.33))(KEY)
    assert ((drawn == 0).sum(axis=0) == 17).all()
    assert drawn[drawn != 0].std() == pytest.approx(0.01, rel=0.05)
    assert len({tuple(column) for column in (drawn == 0).T.tolist()}) > 300


def test_shapes_that_do_not_fit() -> None:
    with pytest.raises(ml.ShapeError, match=r"eye: a weight has two dimensions"):
        initializers.eye(None, (3,))
    with pytest.raises(ml.ShapeError, match="outputs that 3 groups share"):
        initializers.dirac(None, (8, 2, 3), groups=3)
    with pytest.raises(ml.ArgumentError, match="a sparsity from 0 to 1"):
        initializers.sparse(KEY, (3, 4), sparsity=1.5)
