"""Factorizations, and Fourier transforms of other lengths than powers of two, in programs for devices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mlirml as ml
from mlirml import linalg
from mlirml.errors import LinAlgError
from tests.targets.drivers import on_devices

PROGRAMS: dict[str, Callable[..., Any]] = {
    "qr": lambda a: np.linalg.qr(np.tanh(a))[1] * 2 + a,
    "eigvalsh": lambda a: np.linalg.eigvalsh(a @ a.T),
    "svdvals": lambda a: np.sum(np.linalg.svdvals(a) ** 2),
    "solve": lambda a: np.linalg.solve(a @ a.T + 9 * np.eye(9, dtype=np.float32), a),
    "triangular": lambda a: linalg.solve_triangular(a + 9 * np.eye(9, dtype=np.float32), a, lower=True),
    "gradient": lambda a: ml.grad(lambda a: np.sum(np.linalg.svdvals(a)))(a),
    "batched": lambda a: ml.vmap(np.linalg.eigvalsh)(a.reshape(1, 9, 9) + a.T),
    "transform": lambda a: np.fft.irfft(np.fft.rfft(a + 1) * np.float32(0.5), 9) + a,
    "spectrum": lambda a: np.abs(np.fft.fft2(a)) ** 2,
}


@on_devices
@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(name: str, target: str) -> None:
    a = np.random.default_rng(0).standard_normal((9, 9)).astype(np.float32)
    found = ml.compile(PROGRAMS[name], target=target)(a)
    expected = ml.compile(PROGRAMS[name])(a)
    np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-4)


@on_devices
def test_an_error(target: str) -> None:
    with pytest.raises(LinAlgError, match="Singular matrix"):
        ml.compile(np.linalg.inv, target=target)(np.ones((4, 4), np.float32))


@on_devices
def test_the_host_work_is_explained(target: str) -> None:
    compiled = ml.compile(PROGRAMS["spectrum"], target=target)
    compiled(np.ones((9, 9), np.float32))
    assert "host" in compiled.explain()
