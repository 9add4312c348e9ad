"""Kernels as NVIDIA's processors get them, with subgroups of 32 threads, in the simulator, against NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from mlirml.nn import functional as nn
from mlirml.passes import parse_pipeline
from tests.codegen.gpu.gpu_harness import as_kernel
from tests.codegen.gpu.simt import simulate


def draw(*shape: int) -> np.ndarray:
    return np.random.default_rng(len(shape)).standard_normal(shape).astype(np.float32)


def softmax(x: Any) -> Any:
    e = np.exp(x - np.max(x, axis=-1, keepdims=True))
    return e / np.sum(e, axis=-1, keepdims=True)


def layer_norm(x: Any) -> Any:
    centred = x - np.mean(x, axis=-1, keepdims=True)
    return centred / np.sqrt(np.mean(centred * centred, axis=-1, keepdims=True) + np.float32(1e-5))


def add_at(x: Any, i: Any, v: Any) -> Any:
    x = x.copy()
    np.add.at(x, i, v)
    return x


def set_at(x: Any, i: Any, v: Any) -> Any:
    x = x.copy()
    x[i] = v
    return x


PROGRAMS: dict[str, tuple[Callable[..., Any], tuple[np.ndarray, ...]]] = {
    "chain": (lambda x, y: np.tanh(x * y) + np.abs(x), (draw(37, 12), draw(37, 12))),
    "softmax": (softmax, (draw(5, 700),)),
    "narrow_softmax": (softmax, (draw(70, 20),)),
    "layer_norm": (layer_norm, (draw(6, 256),)),
    "sum_rows": (lambda x: np.sum(x, axis=1), (draw(9, 1000),)),
    "sum_columns": (lambda x: np.sum(x, axis=0), (draw(300, 40),)),
    "sum_middle": (lambda x: np.sum(x, axis=1), (draw(4, 33, 10),)),
    "sum_all": (lambda x: np.sum(x, keepdims=True), (draw(50, 60),)),
    "max": (lambda x: np.max(x, axis=1), (draw(7, 100),)),
    "argmax": (lambda x: np.argmax(x, axis=1), (draw(7, 300),)),
    "argmin_columns": (lambda x: np.argmin(x, axis=0), (draw(70, 40),)),
    "matvec": (lambda a, x: a @ x, (draw(40, 90), draw(90))),
    "matmul": (lambda a, b: np.maximum(a @ b, 0), (draw(70, 45), draw(45, 66))),
    "skinny": (lambda a, b: np.maximum(a @ b, 0), (draw(20, 512), draw(512, 18))),
    "skinny_transposed": (lambda a, b: (a @ b).T + 1, (draw(20, 512), draw(512, 18))),
    "batched": (lambda a, b: a @ b, (draw(3, 40, 20), draw(3, 20, 36))),
    "transpose": (lambda x: x.T.copy(), (draw(70, 50),)),
    "transpose of chunks": (lambda x: np.transpose(x, (0, 2, 1)) * 2 + 1, (draw(3, 44, 72),)),
    "transpose of odd rows": (lambda x: x.T + 1, (draw(69, 51),)),
    "cumsum": (lambda x: np.cumsum(x, axis=1), (draw(5, 90),)),
    "long_cumsum": (lambda x: np.cumsum(x, axis=1), (draw(2, 3000),)),
    "long_sum": (lambda x: np.sum(x, axis=1), (draw(1, 40000),)),
    "gather": (lambda x, i: x[i] * 2, (draw(20, 8), np.array([3, 1, 19, 0]))),
    "scatter": (add_at, (draw(20, 8), np.array([3, 1, 3, 0]), draw(4, 8))),
    "scatter_many": (add_at, (draw(20, 8), np.arange(300) % 7, draw(300, 8))),
    "scatter_last": (set_at, (draw(20, 8), np.arange(300) % 7, draw(300, 8))),
    "conv": (lambda x, w: nn.conv2d(x, w, padding=1), (draw(1, 3, 9, 8), draw(4, 3, 3, 3))),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_kernels(name: str) -> None:
    function, arguments = PROGRAMS[name]
    expected = np.asarray(function(*arguments))
    module = as_kernel(function, *arguments)
    parse_pipeline("mlirml-schedule-kernels{device=cuda deterministic=false}").run(module.operation)
    (found,) = simulate(module, "k", *arguments, np.zeros_like(expected))
    np.testing.assert_allclose(found, expected, rtol=2e-5, atol=2e-5)
