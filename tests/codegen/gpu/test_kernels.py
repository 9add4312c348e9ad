"""Kernels of elementwise programs, views, transposes and convolutions, run on a Vulkan driver against NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

pytest.importorskip("wgpu")
from mlirml.nn import functional as nn
from tests.codegen.gpu.gpu_harness import device, run_traced

try:
    device()
except Exception as reason:  # wgpu raises what its backend raises
    pytest.skip(f"no Vulkan driver: {reason}", allow_module_level=True)


def draw(*shape: int) -> np.ndarray:
    return np.random.default_rng(len(shape)).standard_normal(shape).astype(np.float32)


def check(function: Callable[..., Any], *arguments: np.ndarray, kernels: list[str] | None = None) -> None:
    expected = function(*arguments)
    names: list[str] = []
    for result, want in zip(run_traced(function, *arguments, launches=names), np.atleast_1d([expected]), strict=True):
        np.testing.assert_allclose(result, want, rtol=1e-5, atol=1e-5)
    if kernels is not None:
        assert [name.rpartition("_")[2] for name in names] == kernels


def test_ten_operations_are_one_kernel() -> None:
    check(
        lambda x: np.tanh(x * 2 + 1) * np.exp(-x * x) / (1 + np.abs(x)) - np.sqrt(x * x + 1),
        draw(40, 52), kernels=["elementwise"],
    )  # fmt: skip


@pytest.mark.parametrize("shape", [(7,), (5, 3), (4, 6, 10), ()])
def test_odd_shapes(shape: tuple[int, ...]) -> None:
    check(lambda x, y: x * y + 1, draw(*shape), draw(*shape))


def test_broadcast_and_views() -> None:
    check(lambda x, y: x[1:5, ::2] * y[:, None] + x[3:7, 1::2][::-1], draw(8, 16), draw(4))


@pytest.mark.parametrize(
    "function", [lambda x, y: np.concatenate([x, y * 2], axis=1), lambda x, y: np.pad(x, ((1, 2), (0, 3))) + 1]
)
def test_pieces(function: Any) -> None:
    check(function, draw(6, 10), draw(6, 7))


def test_reshapes_need_no_memory() -> None:
    check(lambda x: (x.reshape(6, 10) + 1).reshape(3, 20) * 2, draw(5, 12), kernels=["elementwise"])


@pytest.mark.parametrize(
    ("function", "shape"),
    [
        (lambda x: x.T.copy(), (70, 100)),
        (lambda x: np.transpose(x, (0, 2, 1)) * 2 + 1, (3, 40, 50)),
        (lambda x: np.transpose(x, (2, 1, 0)).reshape(50, -1) + 1, (40, 33, 50)),
    ],
)
def test_transposes_go_through_shared_memory(function: Any, shape: tuple[int, ...]) -> None:
    check(function, draw(*shape), kernels=["transpose"])


def test_gather() -> None:
    check(lambda x, i: x[i] + 1, draw(20, 12), np.array([3, -1, 0, 3]))


@pytest.mark.parametrize(
    ("groups", "options"), [(1, {"padding": 1}), (1, {"stride": 2}), (8, {"padding": 1})]
)  # fmt: skip
def test_convolution(groups: int, options: dict[str, int]) -> None:
    weights = draw(16 if groups == 1 else 8, 8 // groups, 3, 3)
    kernels = ["contract" if groups == 1 else "rows"]
    check(lambda x, w: np.maximum(nn.conv2d(x, w, groups=groups, **options), 0), draw(2, 8, 14, 14), weights,
          kernels=kernels)  # fmt: skip


def test_pooling() -> None:
    check(lambda x: nn.max_pool2d(x, 2), draw(2, 8, 14, 14), kernels=["rows"])


def test_signs_of_integers() -> None:
    x, y = np.array([-7, 7, -1, 5, -100, 3], np.int32), np.array([3, -3, 2, 2, 7, -7], np.int32)
    check(lambda x, y: (x // y) * 1000 + (x % y) * 10 + np.maximum(x, y) + (x >> 1), x, y)
    check(lambda x: x.astype(np.int64) * 3 - np.abs(x).astype(np.int8), x)
    check(lambda x: x.astype(np.float32) / 2, x)
