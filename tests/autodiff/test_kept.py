"""Gradients that random programs found to fail: grouped convolutions, and large graphs of shared scalars."""

from __future__ import annotations

from typing import Any

import numpy as np

import mlirml as ml
import mlirml.nn.functional as F
from tests.autodiff.random_kept import _minors


def test_gradients_of_a_grouped_convolution_of_three_dimensions() -> None:
    rng = np.random.default_rng(0)
    z, w, d = rng.standard_normal((1, 8, 6, 6, 6)), rng.standard_normal((8, 2, 3, 5, 7)), 1e-5

    def f(z: Any, w: Any) -> Any:
        return np.sum(np.sin(F.conv3d(z, w, None, stride=1, padding=(1, 2, 3), groups=4)))

    one, gradients = ml.compile(f), ml.compile(ml.grad(f, argnums=(0, 1)))(z, w)
    for position, gradient in enumerate(gradients):
        change = [np.zeros_like(z), np.zeros_like(w)]
        change[position][...] = rng.standard_normal(gradient.shape) * d
        difference = one(z + change[0], w + change[1]) - one(z - change[0], w - change[1])
        np.testing.assert_allclose(np.sum(gradient * change[position]) * 2, difference, rtol=1e-5)


def test_gradient_of_a_determinant_by_minors() -> None:
    x = np.random.default_rng(0).standard_normal((6, 6))
    f = ml.grad(lambda x: _minors([[x[i, j] for j in range(6)] for i in range(6)]))
    np.testing.assert_allclose(f(x), np.linalg.det(x) * np.linalg.inv(x).T, rtol=1e-10)
