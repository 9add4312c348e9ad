"""A small convolutional network, written for one image: its batches and its gradient."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import mlirml as ml
from mlirml.nn import functional as F

RNG = np.random.default_rng(0)
IMAGES, FILTERS, BIAS = (RNG.standard_normal(shape) for shape in ((5, 2, 6, 6), (3, 2, 3, 3), (3,)))


def network(filters: Any, bias: Any, image: Any) -> Any:
    """A number for one image."""
    return np.sum(F.max_pool2d(F.relu(F.conv2d(image, filters, bias, padding=1)), 2) ** 2)


def mean(filters: Any, bias: Any, images: Any) -> Any:
    return np.mean(ml.vmap(network, in_axes=(None, None, 0))(filters, bias, images))


def test_a_batched_network_is_one_image_for_each() -> None:
    found = ml.compile(ml.vmap(network, in_axes=(None, None, 0)))(FILTERS, BIAS, IMAGES)
    np.testing.assert_allclose(found, [network(FILTERS, BIAS, image) for image in IMAGES], rtol=1e-12)


def test_a_bias_is_spread_once_over_all_images() -> None:
    def one(image: Any) -> Any:
        return F.conv2d(image, FILTERS, BIAS)

    text = ml.compile(ml.vmap(one)).ir("transform", IMAGES)
    init = re.search(r"linalg.conv_2d_nchw_fchw .* outs\((%\w+) : tensor<5x3x4x4xf64>\)", text)
    assert init and re.search(rf"{init[1]} = linalg.generic ", text)


@pytest.mark.parametrize("init", [np.float64(2), RNG.standard_normal((3, 1, 1))], ids=["number", "map"])
def test_other_sums_with_convolutions_are_batched(init: Any) -> None:
    def one(image: Any) -> Any:
        return F.conv2d(image[None], FILTERS) + init

    np.testing.assert_allclose(ml.vmap(one)(IMAGES), np.stack([one(image) for image in IMAGES]), rtol=1e-12)


def test_the_gradient_by_filters_behind_a_pooling_is_a_convolution() -> None:
    text = ml.compile(ml.grad(mean)).ir("optimize", FILTERS, BIAS, IMAGES)
    bodies = re.findall(
        r"linalg\.generic (?:(?!linalg\.generic).)*?tensor<3x2x3x3xf64>\) \{(.*?)linalg\.yield", text, re.S
    )
    assert len(bodies) == 1
    assert re.findall(r"= (\w+\.\w+)", bodies[0]) == ["arith.mulf", "arith.addf"]


def test_the_gradient_is_that_of_differences() -> None:
    found = ml.compile(ml.grad(mean, argnums=(0, 1)))(FILTERS, BIAS, IMAGES)
    value = ml.compile(mean)
    for argument, gradient in enumerate(found):
        direction = RNG.standard_normal(gradient.shape)
        ends = []
        for step in (1e-6, -1e-6):
            moved = [FILTERS, BIAS]
            moved[argument] = moved[argument] + step * direction
            ends.append(value(*moved, IMAGES))
        assert np.sum(gradient * direction) == pytest.approx((ends[0] - ends[1]) / 2e-6, rel=1e-6)
