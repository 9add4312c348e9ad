"""Transforms of functions whose arguments and results hold names and functions beside arrays."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import mlirml as ml


@dataclass
class Layer:
    w: Any
    b: Any
    name: str = "layer"


ONE = Layer(np.array([3.0, 2.0]), np.array(1.0))
MOVED = Layer(np.array([1.0, 0.5]), np.array(2.0))


def squared(layer: Layer) -> Layer:
    assert layer.name == "layer"
    return Layer(layer.w**2, layer.b * layer.w[0], layer.name)


def test_tangents() -> None:
    value, tangent = ml.jvp(squared, (ONE,), (MOVED,))
    assert value.name == tangent.name == "layer"
    np.testing.assert_allclose(tangent.w, [6, 2])
    np.testing.assert_allclose(tangent.b, 2 * 3 + 1 * 1)
    doubled = ml.jvp(
        lambda d: d["x"] * 2 if d["mode"] == "twice" else d["x"], *[({"x": np.ones(2), "mode": "twice"},)] * 2
    )
    np.testing.assert_array_equal(doubled, [[2, 2], [2, 2]])
    with pytest.raises(ml.ArgumentError, match="the tangents have another structure"):
        ml.jvp(squared, (ONE,), (Layer(MOVED.w, MOVED.b, "another"),))


def test_cotangents() -> None:
    (found,) = ml.compile(lambda one, moved: ml.vjp(squared, one)[1](moved))(ONE, MOVED)
    np.testing.assert_allclose(found.w, [6 + 2, 2])
    np.testing.assert_allclose(found.b, 6)


@pytest.mark.parametrize("transform", [ml.jacfwd, ml.jacrev])
def test_jacobians(transform: Any) -> None:
    found = transform(squared)(ONE)
    np.testing.assert_allclose(found.w.w, [[6, 0], [0, 4]])
    np.testing.assert_allclose(found.w.b, [0, 0])
    np.testing.assert_allclose(found.b.w, [1, 0])
    np.testing.assert_allclose(found.b.b, 3)
    hessian = ml.hessian(lambda layer: np.sum(layer.w**3) * layer.b)(ONE)
    np.testing.assert_allclose(hessian.w.w, [[18, 0], [0, 12]])
    np.testing.assert_allclose(hessian.w.b, [27, 12])


def test_batches() -> None:
    many = Layer(np.array([[3.0, 2.0], [1.0, 4.0]]), np.array([1.0, 2.0]))
    found = ml.vmap(squared)(many)
    assert found.name == "layer"
    np.testing.assert_allclose(found.w, many.w**2)
    np.testing.assert_allclose(found.b, [3, 2])
    tangents = ml.vmap(lambda one: ml.jvp(squared, (one,), (MOVED,))[1])(many)
    np.testing.assert_allclose(tangents.w, 2 * many.w * MOVED.w)
    np.testing.assert_allclose(ml.vmap(lambda function, x: function(x), (None, 0))(np.sin, many.b), np.sin(many.b))
    np.testing.assert_allclose(ml.vmap(lambda d: d["x"], ({"x": 0, "mode": None},))({"x": many.b, "mode": "a"}), many.b)
