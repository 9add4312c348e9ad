"""Streamed scores on tensor cores, run in NumPy: each instruction does what PTX's manual says that it does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from mlirml.codegen.gpu.streamed import mma
from mlirml.ir.bindings import operations
from mlirml.passes import parse_pipeline
from tests.codegen.gpu.gpu_harness import as_kernel, read_plan
from tests.codegen.gpu.simt import simulate
from tests.codegen.gpu.test_streamed import (
    BANDS,
    band,
    draw,
    loops_over_tiles,
    normalised,
    plain,
    scheduled,
    sigmoids,
    softmax,
    sums,
    transposed,
)

Function = Callable[..., Any]
Shapes = list[tuple[int, ...]]
HALF, SHORT = np.float16, ml_dtypes.bfloat16


def wide_softmax(q: Any, k: Any, v: Any) -> Any:
    """Attention as `nn.functional` has it: what is between the products is f32."""
    return softmax(q.astype(np.float32) @ np.swapaxes(k, -1, -2).astype(np.float32)) @ v.astype(np.float32)


def wide_sigmoids(q: Any, k: Any, v: Any) -> Any:
    return 100 * sigmoids(*(each.astype(np.float32) for each in (q, k, v)))


CASES: dict[str, tuple[Function, Shapes, Any]] = {
    "one tile": (plain, [(2, 40, 16), (2, 60, 16), (2, 60, 8)], HALF),
    "many tiles": (plain, [(2, 70, 64), (2, 200, 64), (2, 200, 64)], HALF),
    "ends within tiles": (plain, [(2, 50, 24), (2, 141, 24), (2, 141, 40)], HALF),
    "rows that are not aligned": (plain, [(2, 50, 20), (2, 141, 20), (2, 141, 36)], HALF),
    "odd widths": (plain, [(2, 40, 16), (2, 80, 16), (2, 80, 13)], HALF),
    "weights of f32": (plain, [(2, 50, 32), (2, 141, 32), (2, 141, 24)], SHORT),
    "weights of f32, and values of f16": (wide_softmax, [(2, 50, 32), (2, 141, 32), (2, 141, 24)], HALF),
    "weights of f32 without a bound": (wide_sigmoids, [(2, 40, 16), (2, 70, 16), (2, 70, 24)], HALF),
    "deep": (plain, [(2, 40, 160), (2, 70, 160), (2, 70, 96)], HALF),
    "heads share keys": (plain, [(2, 3, 24, 16), (2, 1, 70, 16), (2, 1, 70, 16)], HALF),
    "sigmoids": (sigmoids, [(2, 40, 16), (2, 70, 16), (2, 70, 8)], HALF),
    "normalised": (normalised, [(2, 40, 16), (2, 150, 16), (2, 150, 8)], SHORT),
    "sums over rows": (transposed, [(2, 90, 16), (2, 70, 16), (2, 90, 24)], SHORT),
    "sums": (sums, [(2, 40, 16), (2, 70, 16)], SHORT),
}


def check(function: Function, arrays: list[np.ndarray], tolerance: float | None = None) -> int:
    """The number of products of fragments, in a kernel whose results are right and that has no bank conflicts."""
    with np.errstate(all="ignore"):
        wide = [array.astype(np.float64) if array.dtype.kind != "b" else array for array in arrays]
        wanted, like = function(*wide), function(*arrays)
    wanted, like = (each if isinstance(each, tuple) else (each,) for each in (wanted, like))
    module = scheduled(function, arrays, "cuda")
    outs = [np.zeros(each.shape, each.dtype) for each in like]
    conflicts: list[int] = []
    found = simulate(module, "k", *arrays, *outs, results=len(outs), conflicts=conflicts)
    if tolerance is None:
        tolerance = 4e-3 if like[0].dtype == HALF else 2e-6
    for a, b in zip(found, wanted, strict=True):
        np.testing.assert_allclose(a.astype(np.float64), b, rtol=0, atol=tolerance * max(1, np.nanmax(np.abs(b))))
    assert max(conflicts) == 1
    return sum(op.name == "nvgpu.mma.sync" for op in operations(module.operation))


@pytest.mark.parametrize("case", CASES)
def test_numbers(case: str) -> None:
    function, shapes, dtype = CASES[case]
    assert check(function, draw(shapes, dtype)) > 0


@pytest.mark.parametrize("case", BANDS)
def test_masked_tiles_are_skipped(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The loop has bounds that depend on the block, unless a row has no key: its results are NaN, as in NumPy."""
    monkeypatch.setattr(mma, "LAYOUTS", (mma.MmaLayout(2, 1, 16),))
    rows, keys, low, high = BANDS[case]
    arrays = draw([(2, rows, 16), (2, keys, 16), (2, keys, 8)], SHORT)
    assert check(band(low, high), arrays) == 2 + 3 * 2
    module = scheduled(band(low, high), arrays, "cuda")
    (loop,) = loops_over_tiles(module)
    whole = case in ("keys before", "rows without keys")
    for operand, bound in zip(loop.operands, (low, high), strict=False):
        assert (operand.owner.operation.name != "arith.constant") == (bound is not None and not whole)


def test_tiles_with_two_fragments_of_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mma, "LAYOUTS", (mma.MmaLayout(2, 2, 32),))
    assert check(plain, draw([(2, 100, 32), (2, 70, 32), (2, 70, 48)], HALF)) == 2 * (4 * 2 + 2 * 6)


def test_scores_as_large_as_f32_has() -> None:
    """A row of -inf, rows that begin with -inf, and rows whose maximum grows by hundreds."""
    q, k, v = draw([(40, 16), (130, 16), (130, 8)], SHORT)
    q = (q.astype(np.float32) * 30).astype(SHORT)
    mask = np.random.default_rng(1).random((40, 130)) < 0.3
    mask[3, :100], mask[4, 16:], mask[7] = False, False, False
    mask[3, 120] = mask[4, 2] = True

    def masked(q: Any, k: Any, v: Any, mask: Any) -> Any:
        return softmax(np.where(mask, q @ k.T, -np.inf)) @ v

    assert check(masked, [q, k, v, mask], 2e-5) > 0


@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan, 3.4e38, -3.4e38, 1e-30, 1 / 3])
def test_weights_of_f32_keep_their_bits(value: float) -> None:
    """Infinities, NaN and numbers that would overflow as a bf16 are no other numbers in three parts."""
    q, k, v = (np.zeros(shape, SHORT) for shape in ((16, 16), (64, 16), (64, 8)))
    v[5] = 0.5
    w = np.zeros((16, 64), np.float32)
    w[:, 5] = value

    def function(q: Any, k: Any, v: Any, w: Any) -> Any:
        s = q @ k.T + w
        return np.max(s, axis=-1), s @ v

    module = scheduled(function, [q, k, v, w], "cuda")
    with np.errstate(all="ignore"):
        most, found = simulate(module, "k", q, k, v, w, np.zeros(16, "f4"), np.zeros((16, 8), "f4"), results=2)
    assert any(op.name == "nvgpu.mma.sync" for op in operations(module.operation))
    np.testing.assert_array_equal(most, w.max(axis=1))
    np.testing.assert_array_equal(found, np.full((16, 8), np.float32(value) * np.float32(0.5)))


def test_large_scores_take_large_tiles() -> None:
    """Rows of 128 in a block, if the registers and the shared memory of a processor have room for them."""
    sizes = {}
    for depth in (64, 128):
        module = scheduled(plain, draw([(96, 256, depth)] * 3, HALF), "cuda")
        sizes[depth] = sum(op.name == "nvgpu.mma.sync" for op in operations(module.operation))
    assert sizes == {64: 2 * (4 * 8 + 4 * 8), 128: 1 * (8 * 4 + 2 * 16)}


def one_query(q: Any, k: Any, v: Any) -> Any:
    """Scores of a vector."""
    return np.einsum("hj,hjd->hd", softmax(np.einsum("hd,hjd->hj", q, k) * q.dtype.type(0.125)), v)


def before(count: int) -> Function:
    """Attention of the last queries of a cache, which has room for more keys."""

    def function(q: Any, k: Any, v: Any) -> Any:
        scores = q @ np.swapaxes(k, -1, -2)
        keys = np.arange(k.shape[-2])[None, :] <= np.arange(q.shape[-2])[:, None] + count
        return softmax(np.where(keys, scores, -np.inf)) @ v

    return function


def statistics(q: Any, k: Any, v: Any) -> Any:
    s = q @ np.swapaxes(k, -1, -2)
    most = np.max(s, axis=-1)
    power = np.exp(s - most[..., None])
    total = np.sum(power, axis=-1)
    return most, total, (power / total[..., None]) @ v


SPLIT: dict[str, tuple[Function, Shapes, Any]] = {
    "one query": (plain, [(2, 1, 32), (2, 700, 32), (2, 700, 24)], HALF),
    "one query of a vector": (one_query, [(2, 32), (2, 700, 32), (2, 700, 32)], HALF),
    "few queries": (plain, [(2, 5, 32), (2, 700, 32), (2, 700, 13)], SHORT),
    "heads share keys": (plain, [(2, 3, 1, 16), (2, 1, 700, 16), (2, 1, 700, 16)], HALF),
    "a mask leaves parts without keys": (before(200), [(2, 3, 16), (2, 900, 16), (2, 900, 16)], SHORT),
    "statistics": (statistics, [(2, 20, 16), (2, 700, 16), (2, 700, 16)], SHORT),
    "multiply-adds": (plain, [(2, 20, 16), (2, 700, 16), (2, 700, 16)], np.float32),
}


@pytest.mark.parametrize("case", SPLIT)
def test_parts_of_many_keys_are_merged(case: str) -> None:
    """Blocks have parts of the keys, and a second kernel adds them: the same numbers in each call."""
    function, shapes, dtype = SPLIT[case]
    arrays = draw(shapes, dtype)
    with np.errstate(all="ignore"):
        wanted = function(*(array.astype(np.float64) for array in arrays))
        like = function(*arrays)
    wanted, like = (each if isinstance(each, tuple) else (each,) for each in (wanted, like))
    module = as_kernel(function, *arrays, target="cuda")
    parse_pipeline("mlirml-schedule-kernels{device=cuda}").run(module.operation)
    launches = read_plan(module, "k").launches
    assert [launch.name for launch in launches] == ["k_streamed", "k_2_merge"]
    assert launches[0].grid[0] >= 2 * 3
    outs = [np.zeros(each.shape, each.dtype) for each in like]
    found = simulate(module, "k", *arrays, *outs, results=len(outs))
    for a, b in zip(found, wanted, strict=True):
        tolerance = 4e-3 if dtype == HALF else 2e-6
        np.testing.assert_allclose(a.astype(np.float64), b, rtol=0, atol=tolerance * max(1, np.abs(b).max()))
