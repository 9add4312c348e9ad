"""Joins of arrays that are views of larger joins."""

from __future__ import annotations

from typing import Any

import numpy as np

import mlirml as ml

X, W = np.random.default_rng(0).standard_normal((2, 3, 40, 5))


def dense(x: Any, w: Any) -> Any:
    """Layers of which each reads all that come before it."""
    features = [x]
    for _ in range(4):
        features.append(np.tanh(np.concatenate(features, 1).mean(1, keepdims=True) * w))
    return np.concatenate(features, 1)


def stacks(x: Any, w: Any) -> Any:
    """Stacks, which have a new dimension, their last parts, and one that is stored into."""
    rows = [x, w, x * w]
    first = np.stack(rows[:2])
    rows.append(first.sum(0))
    last = np.stack(rows[2:])
    first[0] = 1
    return np.stack(rows), first, last


def test_numbers() -> None:
    for function in (dense, stacks):
        for found, expected in zip(ml.compile(function)(X, W), function(X, W)):
            np.testing.assert_allclose(found, expected, rtol=1e-14)


def test_derivatives() -> None:
    def total(x: Any, w: Any) -> Any:
        return np.sum(dense(x, w) ** 2)

    found = ml.compile(ml.grad(total, argnums=(0, 1)))(X, W)
    for one, other in zip(found, ml.compile(ml.grad(total, argnums=(0, 1)), target="reference")(X, W)):
        np.testing.assert_allclose(one, other, rtol=1e-12)


def test_each_array_is_stored_once() -> None:
    text = ml.compile(dense).ir("optimize", X, W)
    assert text.count("tensor.insert_slice") == 5
    assert "tensor<3x120x5xf64> to tensor<3x80x5xf64>" not in text
    assert "tensor<3x200x5xf64> to tensor<3x80x5xf64>" in text
