"""Kernels of contractions, run on a Vulkan driver and compared with NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

pytest.importorskip("wgpu")
from tests.codegen.gpu.gpu_harness import device, run_traced, traced

try:
    device()
except Exception as reason:  # wgpu raises what its backend raises
    pytest.skip(f"no Vulkan driver: {reason}", allow_module_level=True)


def draw(*shape: int, seed: int = 0, dtype: str = "f4") -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def check(function: Callable[..., Any], *arguments: np.ndarray, tolerance: float = 3e-6) -> None:
    expected = function(*(a.astype(np.float64) if a.dtype == np.float32 else a for a in arguments))
    launches: list[str] = []
    (result,) = run_traced(function, *arguments, launches=launches)
    assert abs(result - expected).max() <= tolerance * max(1.0, float(abs(expected).max()))
    assert [name.rpartition("_")[2] for name in launches] == ["contract"]


@pytest.mark.parametrize(("m", "n", "k"), [(100, 50, 37), (520, 516, 24)])
def test_matmul(m: int, n: int, k: int) -> None:
    check(lambda a, b: a @ b, draw(m, k), draw(k, n, seed=1))


def test_a_thread_for_each_element() -> None:
    a, b, out = draw(100, 37), draw(37, 50, seed=1), np.zeros((100, 50), np.float32)
    program = traced(lambda a, b: a @ b, a, b, options="naive=true")
    program.load(a, b, out)
    program.run()
    np.testing.assert_allclose(program.read(2, out), a @ b, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", ["tt", "out"])
def test_transposed(name: str) -> None:
    functions = {
        "tt": lambda a, b: a.T @ b.T,
        "out": lambda a, b: (a @ b).T,
    }
    a, b = draw(70, 45), draw(45, 66, seed=1)
    if name == "tt":
        a, b = a.T.copy(), b.T.copy()
    check(functions[name], a, b)


def test_batched() -> None:
    check(lambda a, b: a @ b, draw(2, 3, 40, 36), draw(2, 3, 36, 44, seed=1))


def test_bias_and_activation_are_one_kernel() -> None:
    check(lambda a, b, c: np.tanh(a @ b + c), draw(72, 40), draw(40, 68, seed=1), draw(68, seed=2))


def test_two_results() -> None:
    a, b, c = draw(64, 32), draw(32, 64, seed=1), draw(64, seed=2)

    def both(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        h = a @ b + c
        return h, np.maximum(h, 0)

    for result, want in zip(run_traced(both, a, b, c), both(a, b, c), strict=True):
        np.testing.assert_allclose(result, want, rtol=1e-4, atol=1e-5)


def test_half_and_integers() -> None:
    check(lambda a, b: a @ b, draw(40, 48, dtype="f2"), draw(48, 40, seed=1, dtype="f2"), tolerance=1e-3)
    a = np.random.default_rng(0).integers(-9, 9, (40, 48)).astype(np.int32)
    check(lambda a, b: a @ b, a, a.T.copy(), tolerance=0)
