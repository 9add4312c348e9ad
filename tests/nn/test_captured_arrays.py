"""Arrays from outside of a compiled function, at positions that are its arguments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mlirml as ml
from mlirml import nn, random
from mlirml.nn import functional as F

TABLE = np.linspace(-1, 1, 10).reshape(5, 2)
FACTORS = np.linspace(0.1, 1, 5)
SCORES = np.random.default_rng(0).standard_normal((3, 5))

CASES: dict[str, Callable[[Any], Any]] = {
    "embedding": lambda x: F.embedding(x, TABLE),
    "embedding with padding": lambda x: F.embedding(x, TABLE, 1),
    "embedding bag": lambda x: F.embedding_bag(x[None], TABLE),
    "cross entropy": lambda x: F.cross_entropy(SCORES, x, weight=FACTORS),
    "nll loss": lambda x: F.nll_loss(SCORES, x, weight=FACTORS),
    "take": lambda x: np.take(FACTORS, x),
    "take by name": lambda x: np.take(TABLE, indices=x, axis=0),
    "take along axis": lambda x: np.take_along_axis(SCORES, x[:, None], axis=1),
    "choose": lambda x: np.choose(x, [FACTORS[:3], FACTORS[1:4], FACTORS[2:]], mode="clip"),
    "index": lambda x: TABLE[x],
}


@pytest.mark.parametrize("name", CASES)
def test_positions_may_be_arguments(name: str) -> None:
    x = np.array([1, 4, 2])
    np.testing.assert_allclose(ml.compile(CASES[name])(x), CASES[name](x), rtol=1e-14)


def test_a_layer_is_compiled_by_itself() -> None:
    layer = nn.Embedding.init(random.key(0), 4, 2)
    compiled = ml.compile(layer)
    np.testing.assert_array_equal(compiled(np.array([3, 1])), layer.weight[[3, 1]])
    with pytest.raises(ml.IndexOutOfBoundsError, match="index 5 is out of bounds for axis 0 with size 4"):
        compiled(np.array([5, 1]))
