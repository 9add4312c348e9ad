"""64-bit floats on devices that have them, and what takes their place on those that do not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import mlirml as ml
from mlirml.errors import ArgumentError, TargetError
from mlirml.targets.machine import processor
from mlirml.targets.registry import get_target
from mlirml.targets.vulkan import LEAST, target_for, wide_dtypes
from tests.targets.drivers import missing, needs_vulkan

X = np.random.default_rng(0).random((37, 41)) + 0.1
FUNCTIONS: dict[str, Callable[..., Any]] = {
    "log_softmax": lambda x: x - np.log(np.sum(np.exp(x), axis=-1, keepdims=True)),
    "product": lambda x: x @ x.T,
    "moments": lambda x: (np.mean(x), np.std(x, axis=0)),
    "roots": lambda x: np.hypot(np.sqrt(x), np.cbrt(x)) + np.log(x),
    "complex": lambda x: np.abs(x * (1 + 2j)),
    "sorted": lambda x: np.sort(x, axis=-1),
    "scan": lambda x: np.cumsum(x, axis=0),
}  # fmt: skip


def leaves(result: Any) -> list[np.ndarray]:
    return [np.asarray(each) for each in (result if isinstance(result, tuple) else (result,))]


def has_float64() -> bool:
    return not missing("vulkan") and "f64" in wide_dtypes(ml.device("vulkan").capabilities["features"])


@pytest.mark.skipif(not has_float64(), reason="no Vulkan device with 64-bit floats")
@pytest.mark.parametrize("name", FUNCTIONS)
def test_devices_that_have_them_compute_with_them(name: str) -> None:
    for result, want in zip(leaves(ml.compile(FUNCTIONS[name], target="vulkan")(X)), leaves(FUNCTIONS[name](X))):
        assert result.dtype == np.float64
        np.testing.assert_allclose(result, want, rtol=1e-13)


@pytest.mark.skipif(not has_float64(), reason="no Vulkan device with 64-bit floats")
@pytest.mark.parametrize("function", [np.sin, np.cos, np.tan, lambda x: np.fmod(x, 0.3), lambda x: x % 0.3])
def test_large_arguments_that_no_shader_reduces(function: Callable[..., Any]) -> None:
    x = np.array([0.5, -3.0, 1e7, 1e22, -1e300])
    compiled = ml.compile(function, target="vulkan")
    np.testing.assert_allclose(compiled(x), function(x), rtol=1e-13)
    assert "of float64" in compiled.explain()


@needs_vulkan
@pytest.mark.parametrize("name", FUNCTIONS)
def test_float32_takes_their_place(name: str) -> None:
    compiled = ml.compile(FUNCTIONS[name], target="webgpu", float64="float32")
    for result, want in zip(leaves(compiled(X)), leaves(FUNCTIONS[name](X))):
        assert result.dtype == np.float32
        np.testing.assert_allclose(result, want, rtol=1e-5, atol=1e-6)
    assert "float64 is computed as float32" in compiled.explain()


@needs_vulkan
def test_stores_and_results_that_are_given() -> None:
    def shift(x: np.ndarray) -> np.ndarray:
        x[0] = 3.25
        return x * 2

    x, out = np.ones(5), np.zeros(5)
    ml.compile(shift, target="webgpu", float64="float32")(x)
    np.testing.assert_array_equal(x, [3.25, 1, 1, 1, 1])
    result = ml.compile(lambda x: x * 2, target="webgpu", float64="float32")(x)
    assert result.dtype == np.float32
    with pytest.raises(ArgumentError, match="`out` is"):
        ml.compile(lambda x: x * 2, target="webgpu", float64="float32")(x, out=np.zeros(4))
    ml.compile(lambda x: x * 2, target="webgpu", float64="float32")(x, out=out)
    np.testing.assert_array_equal(out, x * 2)


@needs_vulkan
def test_arrays_from_outside_are_rounded_whenever_they_change() -> None:
    weights = np.arange(4.0)
    compiled = ml.compile(lambda x: x + weights, target="webgpu", float64="float32")
    np.testing.assert_array_equal(compiled(np.ones(4)), [1, 2, 3, 4])
    weights[0] = 8
    np.testing.assert_array_equal(compiled(np.ones(4)), [9, 2, 3, 4])


@needs_vulkan
def test_gradients_and_complex_numbers() -> None:
    gradient = ml.compile(ml.grad(lambda x: np.sum(np.tanh(x) ** 2)), target="webgpu", float64="float32")
    np.testing.assert_allclose(gradient(X), 2 * np.tanh(X) * (1 - np.tanh(X) ** 2), rtol=1e-4, atol=1e-6)
    z = ml.compile(lambda x: x * (2 - 1j), target="webgpu", float64="float32")(X + 0j)
    assert z.dtype == np.complex64
    np.testing.assert_allclose(z, X * (2 - 1j), rtol=1e-6)


@needs_vulkan
def test_arrays_that_lie_on_the_device_in_float64() -> None:
    there = ml.put(X, "vulkan")
    with pytest.raises(ArgumentError, match="lies on vulkan:0 as float64, and double computes with float32 there"):

        def double(x: Any) -> Any:
            return x * 2

        ml.compile(double, target="webgpu", float64="float32")(there)


def test_bits_are_refused() -> None:
    target = ml.compile(lambda x: np.nextafter(x, 2.0), target="webgpu", float64="float32")
    with pytest.raises(TargetError, match='the bits of a float64 are used, which float64="float32" does not keep'):
        target.lower(X)


def test_what_the_setting_changes() -> None:
    plain, narrow = (get_target("webgpu", choice) for choice in ("refuse", "float32"))
    assert plain.fingerprint() != narrow.fingerprint()
    assert get_target("cpu", "float32") is get_target("cpu") or not get_target("cpu", "float32").demotes
    assert target_for(replace(LEAST, dtypes=("f32", "f64", "i64")), 0, False, processor()).float64
    with ml.config.override(float64="float32"):
        assert ml.compile(np.exp, target="webgpu").target.demotes
        assert not ml.compile(np.exp, target="webgpu", float64="refuse").target.demotes
    with pytest.raises(ValueError, match=r"config.float64: expected 'refuse' or 'float32', got 'f32'"):
        ml.config.float64 = "f32"
    with pytest.raises(ArgumentError, match=r"compile: float64: expected 'refuse' or 'float32'"):
        ml.compile(np.exp, float64="half")


def step(x: np.ndarray, rate: float) -> np.ndarray:
    while np.sum(x) < 100.0 and rate < 50.0:
        x = x * rate
        rate = rate * 1.5
    return x


def falling(x: np.ndarray) -> np.ndarray:
    rate = 0.1
    for _ in range(100):
        x = x - rate * x
        rate = rate * 0.9
    return x


@needs_vulkan
@pytest.mark.parametrize(("function", "rest"), [(step, (1.5,)), (falling, ())])
@pytest.mark.parametrize("frontend", ["auto", "loops"])
def test_python_floats_of_a_loop_stay_on_the_host(function: Any, rest: tuple[float, ...], frontend: str) -> None:
    x = X.astype(np.float32)[0]
    result = ml.compile(function, target="webgpu", frontend=frontend)(x, *rest)
    assert result.dtype == np.float32
    np.testing.assert_allclose(result, function(x, *rest), rtol=1e-5)


def best(x: np.ndarray, n: int) -> np.ndarray:
    found = x[0] * 1
    for i in range(n):
        row = x[i] * 2 + 1
        found = row if np.sum(row) > np.sum(found) else found
        found = found * np.float32(0.99)
    return found


@needs_vulkan
def test_a_loop_that_keeps_the_best_row() -> None:
    x = X.astype(np.float32)
    np.testing.assert_allclose(ml.compile(best, target="vulkan")(x, 37), best(x, 37), rtol=1e-5)
