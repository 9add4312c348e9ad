"""First and second derivatives of layers, in both modes and by differences, on the reference target."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mlirml as ml
import mlirml.nn.functional as F

H = 1e-6

CASES: dict[str, tuple[Callable[..., Any], list[tuple[int, ...]]]] = {
    "conv1d": (lambda x, w: F.conv1d(x, w, stride=2, padding=1, dilation=2), [(1, 2, 8), (2, 2, 3)]),
    "conv2d in groups": (
        lambda x, w: F.conv2d(x, w, groups=2, stride=2, padding=1, dilation=(1, 2)),
        [(1, 2, 4, 5), (2, 1, 2, 2)],
    ),
    "depthwise": (lambda x, w: F.conv2d(x, w, groups=2, padding=1), [(1, 2, 3, 3), (2, 1, 3, 3)]),
    "conv3d": (lambda x, w: F.conv3d(x, w, stride=(1, 2, 1)), [(1, 1, 2, 4, 3), (1, 1, 2, 2, 2)]),
    "conv_transpose2d": (lambda x, w: F.conv_transpose2d(x, w, stride=2), [(1, 2, 2, 2), (2, 1, 2, 2)]),
    "pooling": (lambda x: F.max_pool2d(x, 3, stride=1, padding=1) * F.avg_pool2d(x, 3, 1, 1), [(1, 1, 4, 4)]),
    "norms": (lambda x: F.layer_norm(x, (4,)) * F.rms_norm(x, (4,)) + F.group_norm(x, 2), [(2, 4)]),
    "attention": (F.scaled_dot_product_attention, [(1, 1, 3, 2)] * 3),
    "cross entropy": (lambda x: F.cross_entropy(x, np.array([0, 2, 1])), [(3, 4)]),
}


@pytest.mark.parametrize("name", CASES)
def test_two_orders(name: str) -> None:
    layer, shapes = CASES[name]
    rng = np.random.default_rng(0)
    xs, ds = ([rng.standard_normal(shape) for shape in shapes] for _ in range(2))

    def total(*xs: Any) -> Any:
        y = layer(*xs)
        return np.sum(np.sin(y) * (1 + 0.1 * np.arange(y.size).reshape(y.shape)))

    def along(parts: Any) -> Any:
        return sum(np.sum(part * d) for part, d in zip(parts, ds))

    def every(*xs: Any) -> Any:
        gradient = ml.grad(total, tuple(range(len(shapes))))
        ahead, behind = ([x + sign * H * d for x, d in zip(xs, ds)] for sign in (1, -1))
        return (
            along(gradient(*xs)), ml.jvp(total, xs, tuple(ds))[1], (total(*ahead) - total(*behind)) / (2 * H),
            along(ml.jvp(gradient, xs, tuple(ds))[1]),
            along(ml.grad(lambda *xs: along(gradient(*xs)), tuple(range(len(shapes))))(*xs)),
            (along(gradient(*ahead)) - along(gradient(*behind))) / (2 * H),
        )  # fmt: skip

    reverse, forward, difference, twice, reverse_twice, difference_twice = ml.compile(every, "reference")(*xs)
    np.testing.assert_allclose(forward, reverse, rtol=1e-9)
    np.testing.assert_allclose(difference, reverse, rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(reverse_twice, twice, rtol=1e-8)
    np.testing.assert_allclose(difference_twice, twice, rtol=1e-5, atol=1e-6)
