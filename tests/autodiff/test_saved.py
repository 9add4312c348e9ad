"""What loops save for the way back: contractions are not computed again, what is cheap is."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

import mlirml as ml

RNG = np.random.default_rng(0)
W, X = RNG.standard_normal((6, 24, 24)) / 5, RNG.standard_normal((16, 24))


def layer(h: Any, w: Any) -> Any:
    p = h @ w
    return np.tanh(p) * p + h, None


def stacked(W: Any, x: Any) -> Any:
    return np.sum(ml.scan(layer, x, W)[0] ** 2)


def unrolled(W: Any, x: Any) -> Any:
    for w in W:
        x = layer(x, w)[0]
    return np.sum(x**2)


def products(compiled: Any, *args: Any) -> int:
    return len(re.findall(r"linalg\.(matmul|contract)\b", compiled.ir("optimize", *args)))


def test_contractions_in_a_loop_are_saved() -> None:
    gradient = ml.compile(ml.grad(stacked))
    assert products(gradient, W, X) == 3  # one forwards, two backwards
    assert gradient.ir("optimize", W, X).count("math.tanh") == 2
    np.testing.assert_allclose(gradient(W, X), ml.grad(unrolled)(W, X), rtol=1e-10)


def test_what_does_not_fit_is_computed_again() -> None:
    with ml.config.override(checkpoint_bytes=6 * 16 * 24 * 8 * 3 // 2):  # for what is carried, not for twice as much
        gradient = ml.compile(ml.grad(stacked))
    assert products(gradient, W, X) == 4
    np.testing.assert_allclose(gradient(W, X), ml.grad(unrolled)(W, X), rtol=1e-10)


def test_sums_of_products_are_saved() -> None:
    V = RNG.standard_normal((24, 24)) * 0.3

    def step(i: Any, c: Any) -> Any:
        # The product is costly, and read by nothing but its own sums.
        return np.sum(np.tanh(np.outer(c, c) @ V), 1) * 0.1 + 0.5 * c

    def unrolled(x: Any) -> Any:
        for i in range(4):
            x = step(i, x)
        return np.sum(x)

    x = np.linspace(0, 1, 24)
    gradient = ml.grad(lambda x: np.sum(ml.fori_loop(0, 4, step, x)))(x)
    np.testing.assert_allclose(gradient, ml.grad(unrolled)(x), rtol=1e-9)


def test_second_derivatives_of_loops_that_save() -> None:
    w, x = W[:3, :12, :12], X[:, :12] * 30
    direction = np.cos(np.arange(w.size)).reshape(w.shape)
    along = [ml.hvp(lambda w, f=f: f(w, x), (w,), (direction,)) for f in (stacked, unrolled)]
    np.testing.assert_allclose(along[0], along[1], rtol=1e-9)
    reverse = ml.grad(lambda w: np.sum(ml.grad(stacked)(w, x) * direction))(w)
    np.testing.assert_allclose(reverse, along[0], rtol=1e-8, atol=1e-8 * np.max(np.abs(along[0])))
