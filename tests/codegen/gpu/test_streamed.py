"""Kernels that compute scores tile by tile, run in NumPy: their results, their passes, and the tiles that they skip."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from mlirml.codegen.gpu.streamed import fma as streamed
from mlirml.ir.bindings import defining_op, mlir, operations
from mlirml.passes import parse_pipeline
from tests.codegen.gpu.gpu_harness import as_kernel
from tests.codegen.gpu.simt import simulate

Function = Callable[..., Any]
Shapes = list[tuple[int, ...]]


def softmax(x: Any) -> Any:
    e = np.exp(x - np.max(x, axis=-1, keepdims=True))
    return e / np.sum(e, axis=-1, keepdims=True)


def plain(q: Any, k: Any, v: Any) -> Any:
    return softmax(q @ np.swapaxes(k, -1, -2) * q.dtype.type(0.125)) @ v


def sigmoids(q: Any, k: Any, v: Any) -> Any:
    """Scores that nothing is reduced of."""
    return 1 / (1 + np.exp(-(q @ np.swapaxes(k, -1, -2)))) @ v


def normalised(q: Any, k: Any, v: Any) -> Any:
    """Scores that are divided by the sums of their squares."""
    s = q @ np.swapaxes(k, -1, -2)
    return s / np.sqrt(np.sum(s * s, axis=-1, keepdims=True)) @ v


def transposed(q: Any, k: Any, v: Any) -> Any:
    """The gradient of the values: a sum over the rows of the scores."""
    return np.swapaxes(np.exp(q @ np.swapaxes(k, -1, -2) * q.dtype.type(0.125)), -1, -2) @ v


def sums(q: Any, k: Any) -> Any:
    """Nothing but reductions, and what is computed of them."""
    s = q @ np.swapaxes(k, -1, -2)
    most = np.max(s, axis=-1)
    return most, np.log(np.sum(np.exp(s - most[..., None]), axis=-1)) + most


def band(low: int | None, high: int | None) -> Function:
    """Attention to the keys from `low` to `high` positions after a query."""

    def function(q: Any, k: Any, v: Any) -> Any:
        rows, keys = q.shape[-2], k.shape[-2]
        distance = np.arange(keys)[None, :] - np.arange(rows)[:, None]
        scores = q @ np.swapaxes(k, -1, -2) * q.dtype.type(0.25)
        if high is not None:
            scores = np.where(distance <= high, scores, -np.inf)
        if low is not None:
            scores = np.where(distance >= low, scores, -np.inf)
        return softmax(scores) @ v

    return function


CASES: dict[str, tuple[Function, Shapes]] = {
    "plain": (plain, [(2, 64, 16), (2, 64, 16), (2, 64, 16)]),
    "ends within tiles": (plain, [(2, 50, 20), (2, 71, 20), (2, 71, 36)]),
    "heads share keys": (plain, [(2, 3, 24, 16), (2, 1, 70, 16), (2, 1, 70, 16)]),
    "sigmoids": (sigmoids, [(2, 40, 16), (2, 70, 16), (2, 70, 8)]),
    "normalised": (normalised, [(2, 40, 16), (2, 70, 16), (2, 70, 8)]),
    "sums over rows": (transposed, [(2, 40, 16), (2, 70, 16), (2, 40, 8)]),
    "sums": (sums, [(2, 40, 16), (2, 70, 16)]),
}
BANDS = {
    "causal": (50, 50, None, 0),
    "anticausal": (50, 50, 0, None),
    "window": (70, 70, -9, 4),
    "more keys": (40, 100, None, 60),
    "keys before": (50, 40, None, -3),
    "rows without keys": (60, 60, 5, None),
}


def draw(shapes: Shapes, dtype: Any = np.float32) -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    return [rng.standard_normal(shape).astype(dtype) for shape in shapes]


def scheduled(function: Function, arrays: list[np.ndarray], device: str) -> mlir.Module:
    module = as_kernel(function, *arrays)
    parse_pipeline(f"mlirml-schedule-kernels{{device={device}}}").run(module.operation)
    names = [op.attributes["sym_name"].value for op in operations(module.operation) if op.name == "gpu.func"]
    assert names == ["k_streamed"]
    return module


def check(function: Function, arrays: list[np.ndarray], device: str, tolerance: float = 2e-6) -> mlir.Module:
    with np.errstate(all="ignore"):
        wanted = function(*(array.astype(np.float64) for array in arrays))
    wanted = wanted if isinstance(wanted, tuple) else (wanted,)
    module = scheduled(function, arrays, device)
    outs = [np.zeros(each.shape, arrays[0].dtype) for each in wanted]
    found = simulate(module, "k", *arrays, *outs, results=len(outs))
    for a, b in zip(found, wanted, strict=True):
        np.testing.assert_allclose(a.astype(np.float64), b, rtol=0, atol=tolerance * max(1, np.nanmax(np.abs(b))))
    return module


@pytest.mark.parametrize(
    ("case", "device"), [*((case, "cuda") for case in CASES), ("plain", "webgpu"), ("sums", "vulkan")]
)
def test_streamed(case: str, device: str) -> None:
    function, shapes = CASES[case]
    check(function, draw(shapes), device)


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16], ids=["f16", "bf16"])
def test_small_floats(dtype: Any) -> None:
    check(plain, draw([(2, 40, 16), (2, 70, 16), (2, 70, 8)], dtype), "cuda", 4e-3 if dtype == np.float16 else 4e-2)


def loops_over_tiles(module: mlir.Module) -> list[mlir.Operation]:
    """The loops over columns: those of a kernel that are in no other."""
    found = [op for op in operations(module.operation) if op.name == "scf.for"]
    return [op for op in found if op.parent.operation.name == "gpu.func"]


@pytest.mark.parametrize("device", ["cuda", "vulkan"])
@pytest.mark.parametrize("case", BANDS)
def test_masked_tiles_are_skipped(case: str, device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The loops have bounds that depend on the block, unless a row has no key: its results are NaN, as in NumPy."""
    monkeypatch.setattr(streamed, "LAYOUTS", (streamed.Layout(4, 8, 8),))
    rows, keys, low, high = BANDS[case]
    module = check(band(low, high), draw([(2, rows, 16), (2, keys, 16), (2, keys, 8)]), device)
    loops = loops_over_tiles(module)
    assert len(loops) == (1 if device == "cuda" else 3)
    for loop in loops:
        lower, upper = (defining_op(value).name for value in list(loop.operands)[:2])  # type: ignore[union-attr]
        whole = case in ("keys before", "rows without keys")
        assert (lower != "arith.constant") == (low is not None and not whole)
        assert (upper != "arith.constant") == (high is not None and not whole)


def test_attention_is_one_pass_where_threads_shuffle() -> None:
    """Each thread computes 16 exponentials in a tile, and four for the sums before it, and no maximum waits for another
    pass.
    """
    arrays = draw([(2, 64, 16), (2, 64, 16), (2, 64, 16)])
    module = scheduled(plain, arrays, "cuda")
    assert len(loops_over_tiles(module)) == 1
    parse_pipeline("cse").run(module.operation)
    assert sum(op.name == "math.exp" for op in operations(module.operation)) == 20 + 1  # and one of the function
    assert len(loops_over_tiles(scheduled(plain, arrays, "vulkan"))) == 3


def test_scores_as_large_as_f32_has() -> None:
    """A row of -inf, rows that begin with -inf, and rows whose maximum grows by hundreds."""
    q, k, v = draw([(40, 16), (130, 16), (130, 8)])
    q *= 30
    mask = np.random.default_rng(1).random((40, 130)) < 0.3
    mask[3, :100], mask[4, 16:], mask[7] = False, False, False
    mask[3, 120] = mask[4, 2] = True

    def masked(q: Any, k: Any, v: Any, mask: Any) -> Any:
        return softmax(np.where(mask, q @ k.T, -np.inf)) @ v

    with np.errstate(all="ignore"):
        wanted = masked(*(x.astype(np.float64) for x in (q, k, v)), mask)
    (found,) = simulate(scheduled(masked, [q, k, v, mask], "cuda"), "k", q, k, v, mask, np.zeros((40, 8), np.float32))
    assert np.isnan(found[7]).all()
    np.testing.assert_allclose(found, wanted, rtol=0, atol=2e-5)
