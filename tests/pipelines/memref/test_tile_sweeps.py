"""Time loops over sweeps, tiled: bit for bit what the same loops give that are not."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import mlirml as ml
from mlirml.pipelines.memref import tile_sweeps
from mlirml.pipelines.memref.time_tiles import plan
from mlirml.pipelines.memref.time_tiles.match import TimeLoop

Function = Callable[..., Any]
RNG = np.random.default_rng(3)
f32 = np.float32


@pytest.fixture
def tiled(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[plan.Plan]]:
    """Arrays of any size are tiled, in small tiles; the list has the plans."""
    plans: list[plan.Plan] = []

    def small(time: TimeLoop, l2_bytes: int, least_bytes: int) -> plan.Plan:
        plans.append(plan.plan_tiles(time, l2_bytes, 0))
        return plans[-1]

    monkeypatch.setattr(tile_sweeps, "plan_tiles", small)
    monkeypatch.setattr(plan, "BAND_BYTES", 256)
    monkeypatch.setattr(plan, "MOST_ROUNDS", 3)
    monkeypatch.setattr(plan, "FEWEST_CHUNKS", 1)
    with ml.config.override(cache=False, checks=False):
        yield plans


def jacobi_2d(a: Any, b: Any, steps: int) -> None:
    for _ in range(steps):
        for i in range(1, a.shape[0] - 1):
            for j in range(1, a.shape[1] - 1):
                b[i, j] = f32(0.25) * (a[i - 1, j] + a[i + 1, j] + a[i, j - 1] + a[i, j + 1])
        for i in range(1, a.shape[0] - 1):
            for j in range(1, a.shape[1] - 1):
                a[i, j] = f32(0.25) * (b[i - 1, j] + b[i + 1, j] + b[i, j - 1] + b[i, j + 1])


def jacobi_1d(a: Any, b: Any, steps: int) -> None:
    for _ in range(steps):
        for i in range(2, a.shape[0] - 2):
            b[i] = f32(0.5) * a[i - 2] + f32(0.25) * (a[i] + a[i + 1])
        for i in range(2, a.shape[0] - 2):
            a[i] = f32(0.5) * b[i + 2] + f32(0.25) * (b[i] + b[i - 1])


def heat_3d(a: Any, b: Any, steps: int) -> None:
    for _ in range(steps):
        b[1:-1, 1:-1, 1:-1] = f32(0.125) * (
            a[:-2, 1:-1, 1:-1] + a[2:, 1:-1, 1:-1] + a[1:-1, 2:, 1:-1] - a[1:-1, 1:-1, :-2]
        )
        a[1:-1, 1:-1, 1:-1] = b[1:-1, 1:-1, 1:-1]


def fdtd(ex: Any, ey: Any, hz: Any, fict: Any, steps: int) -> None:
    for t in range(steps):
        for j in range(ey.shape[1]):
            ey[0, j] = fict[t]
        for i in range(1, ey.shape[0]):
            for j in range(ey.shape[1]):
                ey[i, j] = ey[i, j] - f32(0.5) * (hz[i, j] - hz[i - 1, j])
        for i in range(ex.shape[0]):
            for j in range(1, ex.shape[1]):
                ex[i, j] = ex[i, j] - f32(0.5) * (hz[i, j] - hz[i, j - 1])
        for i in range(hz.shape[0] - 1):
            for j in range(hz.shape[1] - 1):
                hz[i, j] = hz[i, j] - f32(0.7) * (ex[i, j + 1] - ex[i, j] + ey[i + 1, j] - ey[i, j])


def cavity(u: Any, v: Any, steps: int) -> None:
    """Slice statements with boundaries, some of them across the rows."""
    for t in range(0, steps, 2):
        u[1:-1, 1:-1] = u[1:-1, 1:-1] - f32(0.1) * v[1:-1, 1:-1] * (u[1:-1, 1:-1] - u[:-2, 1:-1]) + u[1:-1, 2:] * t
        v[1:-1, 1:-1] = v[1:-1, 1:-1] * f32(0.5) + f32(0.25) * (u[2:, 1:-1] - u[:-2, 1:-1])
        u[0, :] = 1
        u[-1, :] = u[-2, :]
        v[:, 0] = v[:, 1]


def periodic(a: Any, b: Any, steps: int) -> None:
    for _ in range(steps):
        b[1:-1] = f32(0.5) * (a[:-2] + a[2:])
        a[1:-1] = b[1:-1]
        a[0] = a[-2]
        a[-1] = a[1]


def swaps(a: Any, b: Any, steps: int) -> Any:
    for _ in range(steps):
        b[1:-1, 1:-1] = f32(0.25) * (a[:-2, 1:-1] + a[2:, 1:-1] + a[1:-1, :-2] + a[1:-1, 2:])
        a, b = b, a
    return a


CASES: dict[str, tuple[Function, tuple[tuple[int, ...], ...]]] = {
    "jacobi_2d": (jacobi_2d, ((61, 19),) * 2),
    "jacobi_2d of few rows": (jacobi_2d, ((4, 37),) * 2),
    "jacobi_1d": (jacobi_1d, ((301,),) * 2),
    "heat_3d": (heat_3d, ((45, 6, 7),) * 2),
    "fdtd": (fdtd, ((51, 18), (51, 18), (51, 18), (9,))),
    "swaps": (swaps, ((52, 17),) * 2),
    "periodic": (periodic, ((45, 8),) * 2),
    "cavity": (cavity, ((67, 9),) * 2),
}


@pytest.mark.parametrize("steps", [0, 1, 7])
@pytest.mark.parametrize("case", CASES)
def test_bits_do_not_change(case: str, steps: int, tiled: list[plan.Plan], monkeypatch: pytest.MonkeyPatch) -> None:
    function, shapes = CASES[case]
    arrays = [RNG.standard_normal(shape).astype(f32) for shape in shapes]
    here, there = [a.copy() for a in arrays], [a.copy() for a in arrays]
    ml.compile(function)(*here, steps)
    assert tiled
    monkeypatch.setattr(tile_sweeps, "build_tiles", lambda *_: None)
    ml.compile(function)(*there, steps)
    for one, other in zip(here, there, strict=True):
        np.testing.assert_array_equal(one, other)
    function(*arrays, steps)
    for one, other in zip(here, arrays, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("threads", [1, 2])
def test_chunks_run_on_threads(threads: int, tiled: list[plan.Plan], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ml.config, "threads", threads)
    a = RNG.standard_normal((301, 11)).astype(f32)
    b, c = np.zeros_like(a), a.copy()
    d = np.zeros_like(a)
    ml.compile(jacobi_2d)(a, b, 20)
    assert tiled[0].chunks >= 4
    jacobi_2d(c, d, 20)
    np.testing.assert_allclose(a, c, rtol=1e-5, atol=1e-6)


def test_overlapping_arguments(tiled: list[plan.Plan]) -> None:
    whole = RNG.standard_normal((40, 9)).astype(f32)
    expected = whole.copy()
    ml.compile(jacobi_2d)(whole[:30], whole[3:33], 4)
    jacobi_2d(expected[:30], expected[3:33], 4)
    np.testing.assert_allclose(whole, expected, rtol=1e-5, atol=1e-6)
    same, again = expected.copy(), expected.copy()
    ml.compile(jacobi_2d)(same, same, 4)
    jacobi_2d(again, again, 4)
    np.testing.assert_allclose(same, again, rtol=1e-5, atol=1e-6)


def rows_of_columns(a: Any, b: Any, steps: int) -> None:
    for _ in range(steps):
        b[:, :] = a.T
        a[:, :] = f32(0.5) * b


def first_row(a: Any, b: Any, steps: int) -> None:
    for _ in range(steps):
        b[1:] = a[0] * f32(0.5)
        a[1:] = b[1:] + f32(1)
        a[0] = b[5]


def backwards(a: Any, b: Any, steps: int) -> None:
    for _ in range(steps):
        b[:] = a[::-1]
        a[:] = b * f32(0.5)


@pytest.mark.parametrize("function", [rows_of_columns, first_row, backwards])
def test_what_reaches_far_is_not_tiled(function: Function, tiled: list[plan.Plan]) -> None:
    a, b = (RNG.standard_normal((24, 24)).astype(f32) for _ in range(2))
    c, d = a.copy(), b.copy()
    ml.compile(function)(a, b, 5)
    assert not tiled
    function(c, d, 5)
    np.testing.assert_allclose(a, c, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(b, d, rtol=1e-5, atol=1e-6)


def test_small_arrays_are_not_tiled(monkeypatch: pytest.MonkeyPatch) -> None:
    built: list[Any] = []
    monkeypatch.setattr(tile_sweeps, "build_tiles", lambda *given: built.append(given))
    with ml.config.override(cache=False):
        ml.compile(jacobi_2d)(np.zeros((64, 64), f32), np.zeros((64, 64), f32), 9)
    assert not built
