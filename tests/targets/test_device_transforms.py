"""Fourier transforms as kernels: lengths that are powers of two along any axes, against NumPy in double precision."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mlirml as ml
from tests.targets.drivers import needs_cuda, on_devices

RNG = np.random.default_rng(0)


def numbers(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape) + 1j * RNG.standard_normal(shape)


def close(found: Any, expected: np.ndarray, bits: float) -> None:
    assert found.shape == expected.shape
    assert np.max(np.abs(found - expected)) <= bits * np.max(np.abs(expected))


PROGRAMS: dict[str, tuple[tuple[int, ...], Callable[[Any], Any]]] = {
    "a thread has whole lines": (
        (3, 8), lambda x: tuple(np.fft.fft(x[:, :n], axis=axis) for n in (1, 2, 4, 8) for axis in (1, -1))
    ),
    "a block has several lines": ((5, 128), lambda x: (np.fft.fft(x[:, :16]), np.fft.ifft(x[:, :32]), np.fft.fft(x))),
    "a block has a line": ((2, 2048), lambda x: (np.fft.fft(x), np.fft.ifft(x[:, :1024], norm="ortho"))),
    "a long line": ((2, 8192), lambda x: (np.fft.fft(x), np.fft.ifft(x[:, :4096], norm="forward"))),
    "across": ((16, 5, 3), lambda x: (np.fft.fft(x, axis=0), np.fft.ifft(x, 32, axis=0), np.fft.fft(x, 4, axis=1))),
    "a long line across": ((4096, 3), lambda x: np.fft.fft(x, axis=0)),
    "several axes": ((4, 8, 16), lambda x: (np.fft.fft2(x), np.fft.ifftn(x), np.fft.fftn(x, axes=(0, 2)))),
    "real numbers": (
        (3, 64),
        lambda x: tuple(
            y for n in (1, 2, 4, 16, 64) for y in (np.fft.rfft(x.real, n), np.fft.irfft(x[:, : n // 2 + 1], n))
        ),
    ),
    "real numbers on a long line": (
        (2, 4096), lambda x: (np.fft.rfft(x.real), np.fft.irfft(x[:, :2049]), np.fft.hfft(x[:, :2049]))
    ),
    "real numbers along several axes": (
        (4, 8, 16), lambda x: (np.fft.rfftn(x.real), np.fft.irfftn(x[:, :, :9]), np.fft.rfft2(x.imag, axes=(2, 0)))
    ),
    "fused with what is around them": ((4, 64), lambda x: np.abs(np.fft.ifft(np.fft.fft(x * 2, 128) * 3)) + 1),
}  # fmt: skip


@on_devices
@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(name: str, target: str) -> None:
    shape, program = PROGRAMS[name]
    x = numbers(*shape)
    compiled = ml.compile(program, target=target)
    found, expected = compiled(x.astype(np.complex64)), program(x)
    assert "no power of two" not in compiled.explain() and "points" not in compiled.explain()
    pairs = zip(found, expected, strict=True) if isinstance(found, tuple) else [(found, expected)]
    for one, other in pairs:
        assert one.dtype == (np.complex64 if other.dtype.kind == "c" else np.float32)
        close(one, other, 1e-6)


@pytest.mark.parametrize("target", [pytest.param("cuda", marks=needs_cuda)])
def test_double_precision(target: str) -> None:
    x = numbers(2, 4096)
    found = ml.compile(lambda x: (np.fft.fft(x), np.fft.ifft(x[:, :512]), np.fft.rfft(x.real)), target=target)(x)
    for one, other in zip(found, (np.fft.fft(x), np.fft.ifft(x[:, :512]), np.fft.rfft(x.real)), strict=True):
        close(one, other, 1e-15)


@on_devices
def test_gradients_and_batches(target: str) -> None:
    def power(x: Any) -> Any:
        return np.sum(np.abs(np.fft.rfft(x)[:5]) ** 2)

    x = RNG.standard_normal((3, 16)).astype(np.float32)
    found = ml.compile(lambda x: ml.vmap(ml.grad(power))(x), target=target)(x)
    np.testing.assert_allclose(found, ml.vmap(ml.grad(power))(x.astype(np.float64)), rtol=1e-4, atol=1e-4)


@on_devices
def test_other_lengths_are_transformed_on_the_host(target: str) -> None:
    compiled = ml.compile(lambda x: np.fft.fft(x + 1) * 2, target=target)
    x = numbers(2, 9).astype(np.complex64)
    close(compiled(x), np.fft.fft(x.astype(complex) + 1) * 2, 1e-6)
    assert "a transform of 9 points, which is no power of two" in compiled.explain()
