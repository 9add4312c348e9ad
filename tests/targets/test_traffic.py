"""Loads of kernels for NVIDIA's processors: 16 bytes a thread, whole sectors a warp, no conflicts in shared memory.

The kernels are executed in NumPy, so that accesses are counted and not guessed from the text.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from mlirml.codegen.gpu.streamed import mma
from tests.targets.emulation.memory import Fault
from tests.targets.emulation.run import run
from tests.targets.emulation.traffic import Traffic


def draw(*shape: int, dtype: Any = np.float32) -> np.ndarray:
    return np.random.default_rng(0).standard_normal(shape).astype(dtype)


def softmax(x: Any) -> Any:
    e = np.exp(x - np.max(x, axis=-1, keepdims=True))
    return e / np.sum(e, axis=-1, keepdims=True)


def set_at(x: Any, i: Any, v: Any) -> Any:
    x = x.copy()
    x[i] = v
    return x


HALF = np.float16
INDICES = np.random.default_rng(1).permutation(96)
MANY = np.random.default_rng(2).permutation(400)[:300]
PROGRAMS: dict[str, tuple[Callable[..., Any], tuple[np.ndarray, ...]]] = {
    "chain": (lambda x: np.tanh(x) * 2 + 1, (draw(64, 256),)),
    "chain of f16": (lambda x: np.tanh(x) * 2 + 1, (draw(64, 256, dtype=HALF),)),
    "sum along rows": (lambda x: np.sum(x, axis=1), (draw(64, 512),)),
    "sum along rows of f16": (lambda x: np.sum(x.astype(np.float32), axis=1), (draw(64, 512, dtype=HALF),)),
    "sum along columns": (lambda x: np.sum(x, axis=0), (draw(128, 512),)),
    "sum along columns of f16": (lambda x: np.sum(x.astype(np.float32), axis=0), (draw(128, 512, dtype=HALF),)),
    "argmax of rows": (lambda x: np.argmax(x, axis=1), (draw(64, 512),)),
    "argmax of columns": (lambda x: np.argmax(x, axis=0), (draw(128, 512),)),
    "softmax": (softmax, (draw(64, 512),)),
    "softmax of f16": (softmax, (draw(64, 512, dtype=HALF),)),
    "matrix times vector": (lambda a, x: a @ x, (draw(128, 512), draw(512))),
    "vector times matrix": (lambda x, a: x @ a, (draw(256), draw(256, 512))),
    "row of f16 times matrix": (lambda x, a: x @ a, (draw(1, 256, dtype=HALF), draw(256, 512, dtype=HALF))),
    "row of bf16 times transpose": (
        lambda x, a: x @ a.T,
        (draw(1, 256, dtype=ml_dtypes.bfloat16), draw(512, 256, dtype=ml_dtypes.bfloat16)),
    ),
    "one query of attention": (
        lambda p, v: np.einsum("hj,hjd->hd", p, v), (draw(4, 256, dtype=HALF), draw(4, 256, 64, dtype=HALF)),
    ),
    "gather of rows": (lambda x, i: x[i], (draw(96, 128), INDICES)),
    "gather of rows of f16": (lambda x, i: x[i], (draw(96, 128, dtype=HALF), INDICES)),
    "product": (lambda a, b: a @ b, (draw(64, 64), draw(64, 64))),
    "product of f16": (lambda a, b: a @ b, (draw(64, 512, dtype=HALF), draw(512, 64, dtype=HALF))),
    "attention": (lambda q, k, v: softmax(q @ k.T) @ v, (draw(64, 32), draw(64, 32), draw(64, 32))),
    "attention of f16": (lambda q, k, v: softmax(q @ np.swapaxes(k, 1, 2)) @ v, (draw(2, 64, 32, dtype=HALF),) * 3),
    "running sums": (lambda x: np.cumsum(x, axis=1), (draw(32, 512),)),
    "transpose": (lambda x: x.T.copy(), (draw(128, 96),)),
    "transpose of f16": (lambda x: x.T * 2, (draw(192, 128, dtype=HALF),)),
    "transpose of f64": (lambda x: x.T.copy(), (draw(40, 68, dtype=np.float64),)),
    "scatter": (set_at, (draw(96, 64), INDICES, draw(96, 64))),
    "scatter of many rows": (set_at, (draw(400, 64), MANY, draw(300, 64))),
    "scatter of many rows of f16": (set_at, (draw(400, 64, dtype=HALF), MANY, draw(300, 64, dtype=HALF))),
    "sort": (lambda x: np.sort(x, axis=1), (draw(8, 512),)),
    "sort of a long row": (np.sort, (draw(4096),)),
    "sort of f64": (np.sort, (draw(2048, dtype=np.float64),)),
    "order": (lambda x: np.argsort(x, axis=1), (draw(8, 512),)),
}  # fmt: skip
SCALAR = ("running sums", "scatter")
"""Adjacent threads have adjacent elements, one each."""
SMALL_RESULTS = 0.7
"""The share of bytes in accesses of 16: the rest are results, and the vector that a matrix is multiplied by."""


@cache
def measured(name: str) -> dict[str, Traffic]:
    """The traffic of the kernels of a program, whose results are right."""
    function, arrays = PROGRAMS[name]
    wide = [array if array.dtype.kind == "i" else array.astype(np.float64) for array in arrays]
    expected = function(*wide)
    like = np.asarray(function(*arrays))
    dtype = np.float32 if like.dtype == ml_dtypes.bfloat16 else like.dtype
    (found,), traffic, _ = run(function, *arrays, outs=[np.zeros(like.shape, dtype)])
    tolerance = {2: 4e-3, 4: 1e-5, 8: 1e-15}[min(array.dtype.itemsize for array in arrays if array.dtype.kind != "i")]
    np.testing.assert_allclose(found.astype(np.float64), expected, atol=tolerance * np.abs(expected).max(), rtol=0)
    return traffic


@pytest.mark.parametrize("name", PROGRAMS)
def test_sectors_are_whole(name: str) -> None:
    """The first kernel reads the arrays; those after it add a few partial results, which lie apart.

    Running sums begin at the second element of a row, so that each warp reads a part of one sector more. Sums of tensor
    cores are stored as f16 in halves of sectors.
    """
    traffic = next(iter(measured(name).values()))
    some = len(measured(name)) > 1 or name in ("product of f16", "attention of f16", "running sums")
    assert traffic.coalesced >= (0.7 if some else 0.99)


@pytest.mark.parametrize("name", [name for name in PROGRAMS if name not in SCALAR])
def test_accesses_have_16_bytes(name: str) -> None:
    assert next(iter(measured(name).values())).share(16) >= SMALL_RESULTS


@pytest.mark.parametrize("name", [name for name in PROGRAMS if name.startswith(("sort", "order", "scatter of"))])
def test_all_kernels_of_sorts_and_scatters_have_accesses_of_16_bytes(name: str) -> None:
    """But the positions of updates, the kernels that clear and claim targets, and numbers beside those of 8 bytes."""
    for kernel, traffic in measured(name).items():
        if not kernel.endswith(("clear", "claim")):
            least = 0.6 if name in ("order", "sort of f64") or "scatter" in name else 0.99
            assert traffic.share(16) >= least, kernel


@pytest.mark.parametrize("name", [name for name in PROGRAMS if not name.startswith(("sort", "order"))])
def test_banks_do_not_conflict(name: str) -> None:
    """Networks of sorts exchange at distances below 32, where two threads of a warp share a bank."""
    for traffic in measured(name).values():
        assert traffic.conflicts <= (1.25 if name == "attention" else 1.01)


def causal(q: Any, k: Any, v: Any) -> Any:
    return softmax(np.where(np.tri(len(q[0]), dtype=bool), q @ np.swapaxes(k, -1, -2), -np.inf)) @ v


@pytest.mark.parametrize(
    ("function", "dtype", "share", "parts"),
    [
        (lambda q, k, v: softmax(q @ np.swapaxes(k, -1, -2)) @ v, HALF, 1, 1),
        (lambda q, k, v: softmax(q @ np.swapaxes(k, -1, -2)) @ v, ml_dtypes.bfloat16, 1, 3),
        (causal, HALF, (1 + 1 + 2 + 2 + 3 + 3 + 4 + 4 + 5 + 5) / 50, 1),
    ],
    ids=["f16", "bf16", "causal"],
)
def test_attention_computes_each_product_once(function: Any, dtype: Any, share: float, parts: int) -> None:
    """Products of 16x16 and 16x8 elements for scores and sums, in three parts for weights of f32; a causal mask leaves
    the tiles of 64 columns that a block of 32 rows needs.
    """
    heads, rows, depth = 2, 320, 32
    arrays = [draw(heads, rows, depth, dtype=dtype)] * 3
    wanted = function(*(array.astype(np.float64) for array in arrays))
    (found,), traffic, _ = run(function, *arrays, outs=[np.zeros(wanted.shape, HALF if dtype == HALF else np.float32)])
    np.testing.assert_allclose(found.astype(np.float64), wanted, atol=8e-3 if dtype == HALF else 1e-5, rtol=0)
    (counts,) = traffic.values()
    scores, sums = (heads * rows * rows * depth // (16 * 8 * 16),) * 2
    assert counts.products == int((scores + parts * sums) * share)
    assert counts.conflicts == 1


def test_a_launch_asks_for_shared_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """More than 48 KiB; a launch that asks for less is a fault."""
    monkeypatch.setattr(mma, "LAYOUTS", (mma.MmaLayout(4, 1, 16),))
    arrays = [draw(2, 70, 256, dtype=HALF) * HALF(0.25)] * 3
    function = PROGRAMS["attention of f16"][0]
    (found,), traffic, text = run(function, *arrays, outs=[np.zeros(arrays[0].shape, HALF)])
    wanted = function(*(array.astype(np.float64) for array in arrays))
    np.testing.assert_allclose(found.astype(np.float64), wanted, atol=4e-3, rtol=0)
    (counts,) = traffic.values()
    assert counts.conflicts == 1 and ".extern .shared" in text
    monkeypatch.setattr("tests.targets.emulation.run.dynamic_bytes", lambda kernel: 60 << 10)
    with pytest.raises(Fault, match="outside of shared memory"):
        run(function, *arrays, outs=[np.zeros(arrays[0].shape, HALF)])
    monkeypatch.setattr("tests.targets.emulation.run.dynamic_bytes", lambda kernel: 100 << 10)
    with pytest.raises(Fault, match="bytes of shared memory"):
        run(function, *arrays, outs=[np.zeros(arrays[0].shape, HALF)])
