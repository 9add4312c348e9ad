"""Kernels of rows, run on a Vulkan driver and compared with NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

pytest.importorskip("wgpu")
from tests.codegen.gpu.gpu_harness import device, run_traced

try:
    device()
except Exception as reason:  # wgpu raises what its backend raises
    pytest.skip(f"no Vulkan driver: {reason}", allow_module_level=True)

Function = Callable[..., Any]


def draw(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def check(function: Function, *arguments: np.ndarray, tolerance: float = 2e-6, launches: int | None = None) -> None:
    wide = [a.astype(np.float64) if a.dtype == np.float32 else a for a in arguments]
    expected = function(*wide)
    expected = expected if isinstance(expected, tuple) else (expected,)
    names: list[str] = []
    for result, want in zip(run_traced(function, *arguments, launches=names), expected, strict=True):
        scale = max(1.0, float(np.max(np.abs(np.asarray(want, np.float64)))))
        np.testing.assert_allclose(result, want, rtol=tolerance * 10, atol=tolerance * scale)
    if launches is not None:
        assert len(names) == launches


def softmax(x: np.ndarray) -> np.ndarray:
    e = np.exp(x - np.max(x, axis=-1, keepdims=True))
    return e / np.sum(e, axis=-1, keepdims=True)


def layer_norm(x: np.ndarray, gain: np.ndarray, bias: np.ndarray) -> np.ndarray:
    centred = x - np.mean(x, axis=-1, keepdims=True)
    variance = np.mean(centred**2, axis=-1, keepdims=True)
    return centred / np.sqrt(variance + np.float32(1e-5)) * gain + bias


@pytest.mark.parametrize("shape", [(5, 7), (64, 1024), (9, 4099), (2, 3, 40)])
def test_softmax_is_one_kernel(shape: tuple[int, ...]) -> None:
    check(softmax, draw(*shape), launches=1)


@pytest.mark.parametrize("shape", [(3, 12), (33, 300), (4, 9000)])
def test_layer_norm_is_one_kernel(shape: tuple[int, ...]) -> None:
    n = shape[-1]
    check(layer_norm, draw(*shape), draw(n, seed=1), draw(n, seed=2), launches=1)


def test_softmax_over_the_first_axis() -> None:
    check(lambda x: np.exp(x) / np.sum(np.exp(x), axis=0), draw(50, 37), launches=1)


@pytest.mark.parametrize("axis", [0, 1, 2, (0, 1), (0, 2), (1, 2), None])
def test_sum(axis: int | tuple[int, ...] | None) -> None:
    check(lambda x: np.sum(x * x, axis=axis), draw(6, 35, 20), launches=1 if axis is not None else None)


@pytest.mark.parametrize("shape", [(1 << 17,), (3, 1 << 15), (1 << 13, 24)])
def test_long_reductions_are_cut(shape: tuple[int, ...]) -> None:
    axis = 0 if len(shape) == 1 or shape[0] > shape[1] else 1
    check(lambda x: np.sum(x, axis=axis), draw(*shape), launches=2)


def test_extrema_keep_nan() -> None:
    x = draw(6, 333)
    x[2, 300] = np.nan
    x[4] = -np.inf
    check(lambda x: (np.max(x, axis=1), np.min(x, axis=1)), x)


@pytest.mark.parametrize("axis", [0, 1])
def test_argmax_takes_the_first(axis: int) -> None:
    x = np.random.default_rng(0).integers(0, 4, (300, 41)).astype(np.float32)
    x[7, 5] = x[9, 30] = np.nan
    check(lambda x: (np.argmax(x, axis=axis), np.argmin(x, axis=axis)), x)


def test_whole_argmax_is_cut() -> None:
    x = np.random.default_rng(0).integers(0, 50, 1 << 16).astype(np.float32)
    check(lambda x: np.argmax(x), x, launches=2)


def test_results_for_each_row_and_each_element() -> None:
    check(lambda x: (x - np.mean(x, axis=1, keepdims=True), np.std(x, axis=1)), draw(20, 100), launches=1)


def test_integers_and_booleans() -> None:
    x = np.random.default_rng(0).integers(-9, 9, (40, 70)).astype(np.int32)
    check(lambda x: (np.sum(x, axis=0), np.any(x > 8, axis=1), np.max(x, axis=1)), x)
