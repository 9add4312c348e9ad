"""Joins of equal arrays, which CSE gives one empty tensor: each has a buffer of its own, and none is copied."""

from __future__ import annotations

from typing import Any

import numpy as np

import mlirml as ml

RNG = np.random.default_rng(0)
X, H, W = RNG.standard_normal((5, 3, 4)), RNG.standard_normal((3, 4)), RNG.standard_normal((8, 4))


def recurrent(x: Any, h: Any, w: Any) -> Any:
    joined = []
    for t in range(5):
        joined.append(np.concatenate([x[t], h], 1))
        h = np.tanh(joined[-1] @ w)
    return h, joined[1][:, 3:5] - joined[3][:, :2]


def test_steps_that_join_anew() -> None:
    compiled = ml.compile(recurrent, frontend="trace")
    for found, expected in zip(compiled(X, H, W), recurrent(X, H, W)):
        np.testing.assert_allclose(found, expected, rtol=1e-13)


def test_the_earlier_join_is_not_copied() -> None:
    text = ml.compile(recurrent, frontend="trace").ir("schedule", X, H, W)
    assert not [line for line in text.splitlines() if "memref.copy" in line and "memref<3x8xf64> to" in line]
