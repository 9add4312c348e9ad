"""Gradients of whole problems: a Gaussian mixture, as ADBench (Srajer, Kukelova, Fitzgibbon 2018) states it."""

from __future__ import annotations

from typing import Any

import numpy as np

import mlirml as ml


def mixture(alphas: Any, means: Any, icf: Any, x: Any) -> Any:
    """The log likelihood of `x` under a mixture; `icf` holds log diagonals and lower triangles of inverse factors."""
    n, d = x.shape
    scales = np.exp(icf[:, :d])
    triangles = (icf[:, d:] @ PLACES).reshape(len(alphas), d, d)
    centred = x[:, None, :] - means[None]
    rotated = scales[None] * centred + np.einsum("kij,nkj->nki", triangles, centred)
    inner = alphas + np.sum(icf[:, :d], 1) - 0.5 * np.sum(rotated**2, 2)
    top = np.max(inner, 1, keepdims=True)
    likelihood = np.sum(np.log(np.sum(np.exp(inner - top), 1)) + top[:, 0])
    most = np.max(alphas)
    weights = np.log(np.sum(np.exp(alphas - most))) + most
    return likelihood - n * weights - 0.5 * (np.sum(scales**2) + np.sum(triangles**2)) + np.sum(icf[:, :d])


ROWS, COLUMNS = np.tril_indices(4, -1)
PLACES = np.zeros((len(ROWS), 16))
PLACES[np.arange(len(ROWS)), ROWS * 4 + COLUMNS] = 1


def test_gaussian_mixture() -> None:
    rng = np.random.default_rng(0)
    args = (
        rng.standard_normal(3),
        rng.standard_normal((3, 4)),
        0.3 * rng.standard_normal((3, 10)),
        rng.standard_normal((20, 4)),
    )
    value, gradients = ml.value_and_grad(mixture, (0, 1, 2))(*args)
    np.testing.assert_allclose(value, mixture(*args), rtol=1e-12)
    directions = tuple(rng.standard_normal(a.shape) for a in args[:3])
    step = 1e-6
    ahead = mixture(*(a + step * t for a, t in zip(args, directions)), args[3])
    behind = mixture(*(a - step * t for a, t in zip(args, directions)), args[3])
    along = sum(np.sum(g * t) for g, t in zip(gradients, directions))
    np.testing.assert_allclose(along, (ahead - behind) / (2 * step), rtol=1e-6)
