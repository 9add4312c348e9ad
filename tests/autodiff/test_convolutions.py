"""Derivatives of convolutions: both operands, all geometries, and that the gradient of an image is a convolution."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mlirml as ml
from mlirml.nn import functional as F

RNG = np.random.default_rng(0)
CONVOLUTIONS: dict[int, Callable[..., Any]] = {1: F.conv1d, 2: F.conv2d, 3: F.conv3d}
SIZES, KERNEL = (7, 6, 5), (3, 2, 2)
GEOMETRIES = [
    (1, 1, 2, 1, 1), (1, 2, 0, 1, 2), (1, 1, 0, 2, 4), (2, 1, 0, 1, 1), (2, 1, 2, 2, 1), (2, 2, 2, 1, 1),
    (2, 1, 2, 1, 2), (2, 2, 0, 1, 4), (3, 1, 2, 1, 1), (3, 2, 0, 1, 1), (3, 1, 0, 2, 2),
]  # fmt: skip


@pytest.mark.parametrize(("rank", "stride", "padding", "dilation", "groups"), GEOMETRIES)
def test_both_modes_agree(rank: int, stride: int, padding: int, dilation: int, groups: int) -> None:
    x = RNG.standard_normal((2, 4, *SIZES[:rank]))
    w = RNG.standard_normal((8, 4 // groups, *KERNEL[:rank]))
    tangents = RNG.standard_normal(x.shape), RNG.standard_normal(w.shape)

    def convolve(x: Any, w: Any) -> Any:
        return CONVOLUTIONS[rank](x, w, stride=stride, padding=padding, dilation=dilation, groups=groups)

    def both(x: Any, w: Any, dx: Any, dw: Any) -> Any:
        y, change = ml.jvp(convolve, (x, w), (dx, dw))
        return change, ml.vjp(convolve, x, w)[1](np.cos(y)), np.cos(y)

    change, (gx, gw), cotangent = ml.compile(both)(x, w, *tangents)
    expected = np.sum(gx * tangents[0]) + np.sum(gw * tangents[1])
    np.testing.assert_allclose(np.sum(change * cotangent), expected, rtol=1e-10)
    # The function is linear in each operand.
    f = ml.compile(convolve)
    np.testing.assert_allclose(change, f(tangents[0], w) + f(x, tangents[1]), rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("groups", [1, 2])
def test_second_order(groups: int) -> None:
    x, w = RNG.standard_normal((2, 4, 5, 5)), RNG.standard_normal((6, 4 // groups, 3, 3))
    dx, dw = RNG.standard_normal(x.shape), RNG.standard_normal(w.shape)

    def loss(x: Any, w: Any) -> Any:
        return np.sum(np.tanh(F.conv2d(x, w, padding=1, groups=groups)))

    gradient = ml.grad(loss, argnums=(0, 1))
    found = ml.compile(lambda x, w, dx, dw: ml.jvp(gradient, (x, w), (dx, dw))[1])(x, w, dx, dw)
    step, compiled = 1e-6, ml.compile(gradient)
    above, below = compiled(x + step * dx, w + step * dw), compiled(x - step * dx, w - step * dw)
    for value, a, b in zip(found, above, below):
        np.testing.assert_allclose(value, (a - b) / (2 * step), atol=1e-6)


def test_the_gradient_of_an_image_is_a_convolution() -> None:
    x, w = np.ones((2, 3, 8, 8), np.float32), np.ones((4, 3, 3, 3), np.float32)
    gradient = ml.compile(ml.grad(lambda x, w: np.sum(F.conv2d(x, w, padding=1) ** 2)))
    text = gradient.ir("transform", x, w)
    assert text.count("linalg.conv_2d_nchw_fchw") == 2
    assert "scf.for" not in text
