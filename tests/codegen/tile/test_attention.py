"""Attention as one tile kernel, run without a GPU: its text in NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from mlirml.codegen.tile import attention
from mlirml.dialects.mlirml import TILE
from mlirml.ir.bindings import operations
from tests.codegen.tile.cutile_numpy import simulate
from tests.codegen.tile.test_contract import scheduled


def softmax(x: Any) -> Any:
    e = np.exp(x - np.max(x, axis=-1, keepdims=True))
    return e / np.sum(e, axis=-1, keepdims=True)


def plain(q: Any, k: Any, v: Any) -> Any:
    return softmax(q @ np.swapaxes(k, -1, -2) * q.dtype.type(0.125)) @ v


def masked(q: Any, k: Any, v: Any, mask: Any) -> Any:
    return softmax(np.where(mask, q @ np.swapaxes(k, -1, -2), -np.inf)) @ v


def biased(q: Any, k: Any, v: Any, bias: Any) -> Any:
    return softmax(np.tanh(q @ np.swapaxes(k, -1, -2)) + bias) @ v


def heads(q: Any, k: Any, v: Any) -> Any:
    weights = softmax(np.einsum("bihd,bjhd->bhij", q, k) * q.dtype.type(0.125))
    return np.einsum("bhij,bjhd->bihd", weights, v)


def with_an_epilogue(q: Any, k: Any, v: Any, x: Any) -> Any:
    return x + plain(q, k, v) * 2


CASES: dict[str, tuple[Callable[..., Any], list[tuple[int, ...]]]] = {
    "plain": (plain, [(3, 64, 32), (3, 64, 32), (3, 64, 32)]),
    "one head": (plain, [(64, 32), (48, 32), (48, 16)]),
    "two batches": (plain, [(2, 3, 32, 16), (2, 3, 48, 16), (2, 3, 48, 16)]),
    "heads inside of rows": (heads, [(2, 32, 3, 16), (2, 48, 3, 16), (2, 48, 3, 16)]),
    "ends within tiles": (plain, [(2, 50, 40), (2, 71, 40), (2, 71, 24)]),
    "a bias": (biased, [(2, 32, 32), (2, 48, 32), (2, 48, 16), (32, 48)]),
    "an epilogue": (with_an_epilogue, [(2, 32, 32), (2, 48, 32), (2, 48, 16), (2, 32, 16)]),
}


@pytest.fixture(autouse=True)
def small_tiles(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attention, "ROWS", (16,))
    monkeypatch.setattr(attention, "KEYS", 16)


def run(function: Callable[..., Any], arrays: list[np.ndarray]) -> np.ndarray:
    """What the kernels compute; there is one, which is of tiles."""
    with np.errstate(all="ignore"):
        expected = function(*(array.astype(np.float64) if array.dtype != bool else array for array in arrays))
    module = scheduled(function, arrays)
    kernels = [op for op in operations(module) if op.name == "gpu.func"]
    assert [TILE in op.attributes for op in kernels] == [True]
    (found,) = simulate(module, "k", *arrays, np.zeros(expected.shape, arrays[0].dtype))
    return found


def draw(shapes: list[tuple[int, ...]], dtype: Any = np.float16) -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    return [rng.standard_normal(shape).astype(dtype) for shape in shapes]


@pytest.mark.parametrize("case", CASES)
def test_attention(case: str) -> None:
    function, shapes = CASES[case]
    arrays = draw(shapes)
    expected = function(*(array.astype(np.float64) for array in arrays))
    np.testing.assert_allclose(run(function, arrays), expected, atol=4e-3 * max(1, np.abs(expected).max()))


def test_scores_are_exact_where_f16_would_overflow() -> None:
    """What is between the products is computed in f32: products of 300 are far apart, not infinite."""
    q, k, v = draw([(32, 64), (48, 64), (48, 16)])
    q, k = (300 * q).astype(np.float16), (30 * k).astype(np.float16)
    expected = plain(*(x.astype(np.float64) for x in (q, k, v)))
    assert np.abs(q.astype(np.float64) @ k.T.astype(np.float64)).max() > np.finfo(np.float16).max
    np.testing.assert_allclose(run(plain, [q, k, v]), expected, atol=2e-3)


def test_masks() -> None:
    """Rows whose first tiles are masked, and one that is masked whole, whose results are NaN as in NumPy."""
    q, k, v = draw([(2, 40, 32), (2, 56, 32), (2, 56, 16)])
    rng = np.random.default_rng(1)
    mask = rng.random((40, 56)) < 0.3
    mask[3, :40] = False
    mask[4, 16:] = False
    mask[3, 50], mask[4, 2] = True, True
    mask[7] = False
    with np.errstate(all="ignore"):
        expected = masked(*(x.astype(np.float64) for x in (q, k, v)), mask)
    found = run(masked, [q, k, v, mask])
    assert np.isnan(found[:, 7]).all()
    np.testing.assert_allclose(found, expected, atol=4e-3)


TRIANGLES = {
    "causal": (80, 80, 0, True),
    "ends within tiles": (75, 83, 0, True),
    "more keys": (70, 90, 20, True),
    "fewer keys": (90, 70, -3, True),
    "rows without keys": (80, 80, -33, True),
    "all keys": (70, 70, 69, True),
    "strictly above": (70, 90, 3, False),
}


@pytest.mark.parametrize("scale", [1.0, 0.125])
@pytest.mark.parametrize("case", TRIANGLES)
def test_triangles(case: str, scale: float) -> None:
    """Tiles beyond the diagonal are skipped, those before it are not masked; rows without keys are NaN, as in NumPy."""
    rows, keys, offset, below = TRIANGLES[case]

    def causal(q: Any, k: Any, v: Any) -> Any:
        mask = np.tri(rows, keys, offset, dtype=bool)
        scores = q @ np.swapaxes(k, -1, -2) * q.dtype.type(scale)
        return softmax(np.where(mask if below else ~mask, scores, -np.inf)) @ v

    q, k, v = draw([(2, rows, 32), (2, keys, 32), (2, keys, 16)])
    with np.errstate(all="ignore"):
        expected = causal(*(x.astype(np.float64) for x in (q, k, v)))
    module = scheduled(causal, [q, k, v])
    loops = [op for op in operations(module) if op.name == "scf.for"]
    assert len(loops) == (2 if below and offset < 69 else 1)
    (found,) = simulate(module, "k", q, k, v, np.zeros(expected.shape, np.float16))
    np.testing.assert_allclose(found, expected, atol=4e-3)


def test_nan_scores_give_nan() -> None:
    q, k, v = draw([(32, 32), (48, 32), (48, 16)])
    q[5, 3] = np.nan
    found = run(plain, [q, k, v])
    assert np.isnan(found[5]).all()
    assert np.isfinite(np.delete(found, 5, axis=0)).all()


def test_weights_of_f32_are_not_rounded() -> None:
    """A product of f32 weights with values of bf16 is one of f32: the tensor cores would round the weights."""
    arrays = draw([(2, 32, 32), (2, 48, 32), (2, 48, 16)], ml_dtypes.bfloat16)
    module = scheduled(plain, arrays)
    assert "k_attention" not in [op.attributes["sym_name"].value for op in operations(module) if op.name == "gpu.func"]
