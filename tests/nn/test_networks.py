"""Small networks, compiled, against the same in float64 on real arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mlirml as ml
from mlirml.nn import functional as F
from tests.fuzz.oracle import TARGETS

Parameters = dict[str, np.ndarray]


def parameters(shapes: dict[str, tuple[int, ...]]) -> Parameters:
    rng = np.random.default_rng(3)
    scale = {name: 0.5 / np.sqrt(np.prod(shape[1:], initial=1)) for name, shape in shapes.items()}
    return {name: rng.standard_normal(shape) * scale[name] for name, shape in shapes.items()}


def lenet(x: Any, p: Parameters) -> Any:
    """LeCun, Bottou, Bengio and Haffner, "Gradient-based learning applied to document recognition", figure 2."""
    h = F.max_pool2d(F.relu(F.conv2d(x, p["conv1"], p["bias1"], padding=2)), 2)
    h = F.max_pool2d(F.relu(F.conv2d(h, p["conv2"], p["bias2"])), 2)
    h = F.relu(F.linear(h.reshape(len(h), -1), p["dense1"], p["bias3"]))
    return F.log_softmax(F.linear(h, p["dense2"], p["bias4"]))


LENET: dict[str, tuple[int, ...]] = {
    "conv1": (6, 1, 5, 5), "bias1": (6,), "conv2": (16, 6, 5, 5), "bias2": (16,), "dense1": (84, 400), "bias3": (84,),
    "dense2": (10, 84), "bias4": (10,),
}  # fmt: skip


def residual(x: Any, p: Parameters) -> Any:
    """A block with a depthwise convolution, batch normalization and a shortcut."""
    h = F.conv2d(x, p["first"], stride=2)
    h = F.relu6(F.batch_norm(h, p["mean"], p["variance"] ** 2, p["gain"], p["bias"]))
    h = F.conv2d(h, p["depthwise"], padding=1, groups=12)
    h = F.conv2d(F.silu(h), p["last"])
    return F.adaptive_avg_pool2d(h + F.avg_pool2d(x, 2), 1)[..., 0, 0]


RESIDUAL: dict[str, tuple[int, ...]] = {
    "first": (12, 8, 2, 2), "mean": (12,), "variance": (12,), "gain": (12,), "bias": (12,), "depthwise": (12, 1, 3, 3),
    "last": (8, 12, 1, 1),
}  # fmt: skip


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(
    ("network", "shapes", "x"), [(lenet, LENET, (3, 1, 28, 28)), (residual, RESIDUAL, (2, 8, 10, 14))]
)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_network(network: Any, shapes: dict[str, tuple[int, ...]], x: tuple[int, ...], dtype: Any, target: str) -> None:
    image = np.random.default_rng(4).standard_normal(x)
    exact = parameters(shapes)
    expected = network(image, exact)
    given = ml.compile(network, target)(image.astype(dtype), {k: v.astype(dtype) for k, v in exact.items()})
    assert given.dtype == dtype
    np.testing.assert_allclose(given, expected, rtol=0, atol=2e-6 if dtype == np.float32 else 1e-13)


def test_parameters_may_be_globals() -> None:
    weight = np.ones((2, 1, 3, 3), np.float32)
    compiled = ml.compile(lambda x: F.relu(F.conv2d(x, weight)))
    x = np.arange(25, dtype=np.float32).reshape(1, 1, 5, 5)
    np.testing.assert_array_equal(compiled(x), F.conv2d(x, weight))
    weight[:] = 2
    np.testing.assert_array_equal(compiled(x), F.conv2d(x, weight))


def test_known_arrays_are_computed_while_tracing() -> None:
    def f(x: Any) -> Any:
        return x + F.softmax(np.ones(4, np.float32))

    assert ml.compile(f)(np.zeros(4, np.float32)).tolist() == [0.25] * 4


def test_stores_into_a_result() -> None:
    def f(x: Any) -> Any:
        y = F.max_pool1d(x, 2)
        y[0, 0] = 7
        return y

    x = np.arange(8, dtype=np.float32).reshape(2, 4)
    assert ml.compile(f)(x).tolist() == [[7, 3], [5, 7]]


def test_in_a_loop_and_in_branches() -> None:
    def layers(x: Any, p: Parameters) -> Any:
        return ml.fori_loop(0, 3, lambda i, y: F.relu(F.conv2d(y, p["conv"], p["bias"], padding=1)) + y, x)

    def pooled(deep: Any, x: Any, p: Parameters) -> Any:
        y = layers(x, p)
        return ml.cond(
            deep, lambda y: F.max_pool2d(F.conv2d(y, p["conv"]), 2), lambda y: F.avg_pool2d(y[..., 2:, 2:], 2), y
        )

    x, p = np.random.default_rng(5).standard_normal((1, 8, 8, 20)), parameters({"conv": (8, 8, 3, 3), "bias": (8,)})
    y = x
    for _ in range(3):
        y = F.relu(F.conv2d(y, p["conv"], p["bias"], padding=1)) + y
    compiled = ml.compile(pooled)
    np.testing.assert_allclose(compiled(np.True_, x, p), F.max_pool2d(F.conv2d(y, p["conv"]), 2), atol=1e-13)
    np.testing.assert_allclose(compiled(np.False_, x, p), F.avg_pool2d(y[..., 2:, 2:], 2), atol=1e-13)


def test_a_group_norm_reads_its_input_three_times() -> None:
    """Two sums for the statistics, and one loop for the rest, weights included: no array of that size is kept."""
    x, w, b = (np.random.default_rng(0).standard_normal(shape) for shape in ((2, 6, 5, 7), 6, 6))
    function = ml.compile(lambda x, w, b: F.group_norm(x, 3, w, b))
    groups = x.reshape(2, 3, -1)
    expected = (groups - groups.mean(2, keepdims=True)) / np.sqrt(groups.var(2, keepdims=True) + 1e-5)
    expected = expected.reshape(x.shape) * w[:, None, None] + b[:, None, None]
    np.testing.assert_allclose(function(x, w, b), expected, rtol=1e-12)
    loops = function.ir("optimize", x, w, b).split("linalg.generic")[1:]
    assert sum("tensor<2x3x2x35xf64>" in loop.partition("outs(")[0] for loop in loops) == 3
    assert sum("-> tensor<2x3x2x35xf64>" in loop for loop in loops) == 1
