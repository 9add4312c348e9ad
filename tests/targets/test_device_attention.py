"""Attention on devices, forward and backward: its scores are computed tile by tile, and never in memory."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import mlirml as ml
from mlirml.codegen.gpu.streamed import mma
from mlirml.nn import functional as nn
from tests.targets.drivers import needs_cuda, needs_vulkan, on_devices

Shapes = list[tuple[int, ...]]


def softmax(x: Any) -> Any:
    e = np.exp(x - np.max(x, axis=-1, keepdims=True))
    return e / np.sum(e, axis=-1, keepdims=True)


def plain(q: Any, k: Any, v: Any) -> Any:
    return softmax(q @ np.swapaxes(k, -1, -2) * q.dtype.type(0.125)) @ v


def causal(q: Any, k: Any, v: Any) -> Any:
    rows, keys = q.shape[-2], k.shape[-2]
    scores = q @ np.swapaxes(k, -1, -2) * q.dtype.type(0.25)
    return softmax(np.where(np.tri(rows, keys, keys - rows, dtype=bool), scores, -np.inf)) @ v


def grouped(q: Any, k: Any, v: Any) -> Any:
    return plain(q, k[:, :, None], v[:, :, None])


def biased(q: Any, k: Any, v: Any, bias: Any) -> Any:
    return softmax(np.tanh(q @ np.swapaxes(k, -1, -2)) + bias) @ v


def masked(q: Any, k: Any, v: Any, mask: Any) -> Any:
    return softmax(np.where(mask, q @ np.swapaxes(k, -1, -2), -np.inf)) @ v


def heads(q: Any, k: Any, v: Any) -> Any:
    weights = softmax(np.einsum("bihd,bjhd->bhij", q, k) * q.dtype.type(0.125))
    return np.einsum("bhij,bjhd->bihd", weights, v)


def rotary(q: Any, k: Any, v: Any) -> Any:
    """The gradients of queries and keys are stored into slices of zeros."""
    positions = np.arange(q.shape[-2], dtype=np.int32)
    return causal(nn.rotary_embedding(q, positions), nn.rotary_embedding(k, positions), v)


def with_an_epilogue(q: Any, k: Any, v: Any, x: Any) -> Any:
    return x + plain(q, k, v) * 2


CASES: dict[str, tuple[Callable[..., Any], Shapes]] = {
    "plain": (plain, [(9, 128, 16), (9, 128, 16), (9, 128, 16)]),
    "ends within tiles": (plain, [(9, 100, 20), (9, 141, 20), (9, 141, 12)]),
    "causal": (causal, [(12, 96, 16), (12, 128, 16), (12, 128, 16)]),
    "grouped heads": (grouped, [(3, 4, 2, 48, 16), (3, 4, 80, 16), (3, 4, 80, 16)]),
    "heads inside of rows": (heads, [(3, 96, 4, 16), (3, 80, 4, 16), (3, 80, 4, 16)]),
    "one head of one batch": (plain, [(1, 1, 1100, 4), (1, 1, 1100, 4), (1, 1, 1100, 4)]),
    "rotary": (rotary, [(12, 96, 16), (12, 96, 16), (12, 96, 16)]),
    "a bias": (biased, [(12, 96, 32), (12, 128, 32), (12, 128, 32), (96, 128)]),
    "an epilogue": (with_an_epilogue, [(12, 96, 32), (12, 80, 32), (12, 80, 48), (12, 96, 48)]),
}


GRADIENTS = ("plain", "ends within tiles", "causal", "grouped heads", "rotary", "a bias")


def draw(shapes: Shapes, dtype: Any = np.float32) -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    return [rng.standard_normal(shape).astype(dtype) for shape in shapes]


def compare(function: Callable[..., Any], arrays: list[np.ndarray], target: str, tolerance: float = 3e-6) -> Any:
    """Compare with the interpreter, in twice the precision; returns the compiled function."""
    wide = [array if array.dtype.kind == "b" else array.astype(np.float64) for array in arrays]
    expected = ml.compile(function, target="reference")(*wide)
    compiled = ml.compile(function, target=target)
    found = compiled(*arrays)
    for a, b in zip(*((x if isinstance(x, tuple) else (x,)) for x in (found, expected)), strict=True):
        narrow = np.asarray(a).astype(np.float64)
        np.testing.assert_allclose(narrow, b, rtol=0, atol=tolerance * max(1, np.nanmax(np.abs(b))))
    return compiled


def check(function: Callable[..., Any], arrays: list[np.ndarray], target: str, tolerance: float = 3e-6) -> str:
    """Compare, and see that no array is as large as the scores; returns the kernels."""
    compiled = compare(function, arrays, target, tolerance)
    scores = arrays[0].size // arrays[0].shape[-1] * (arrays[1].shape[1 if function is heads else -2])
    assert max(sizes_in_main(compiled.ir("offload", *arrays))) < scores
    text: str = compiled.ir("schedule", *arrays)
    kernels = re.findall(r"gpu.func @(\w*contract\w*)", text)
    assert kernels and all(name.endswith(("streamed", "merge")) for name in kernels)
    return text


def sizes_in_main(text: str) -> list[int]:
    """The numbers of elements of the tensors of a program between its kernels."""
    shapes = re.findall(r"tensor<([\dx]+)x[bf]+\d+>", text.partition("func.func private")[0])
    return [int(np.prod([int(n) for n in shape.split("x")])) for shape in shapes]


def test_scores_are_stored_where_they_are_too_few_to_fill_the_device() -> None:
    arrays = draw([(2, 64, 16)] * 3)
    assert max(sizes_in_main(ml.compile(plain, target="cuda").ir("offload", *arrays))) == 2 * 64 * 64


@on_devices
@pytest.mark.parametrize("case", CASES)
def test_attention(case: str, target: str) -> None:
    function, shapes = CASES[case]
    check(function, draw(shapes), target)


@pytest.mark.parametrize(
    ("case", "target"),
    [
        *(pytest.param(case, "vulkan", marks=needs_vulkan) for case in GRADIENTS),
        *(pytest.param(case, "cuda", marks=needs_cuda) for case in ("ends within tiles", "grouped heads")),
    ],
)
def test_gradients(case: str, target: str) -> None:
    function, shapes = CASES[case]
    numbers = tuple(range(3))

    def loss(*arrays: Any) -> Any:
        return np.sum(function(*arrays) ** 2)

    check(ml.grad(loss, argnums=numbers), draw(shapes), target)


@on_devices
def test_masks(target: str) -> None:
    """A mask that is an argument; a row of it masks every key, and is NaN as in NumPy."""
    q, k, v = draw([(9, 100, 32), (9, 141, 32), (9, 141, 16)])
    mask = np.random.default_rng(1).random((100, 141)) < 0.3
    mask[3, :70], mask[4, 16:], mask[7] = False, False, False
    check(masked, [q, k, v, mask], target)


def torch_like(q: Any, k: Any, v: Any) -> Any:
    return nn.scaled_dot_product_attention(q, k, v)


def torch_like_causal(q: Any, k: Any, v: Any) -> Any:
    return nn.scaled_dot_product_attention(q, k, v, is_causal=True)


SMALL = {np.float16: 4e-3, ml_dtypes.bfloat16: 3e-2}
"""Types of 16 bits, and the tolerance of results that are rounded to them."""


def torch_like_grouped(q: Any, k: Any, v: Any) -> Any:
    return nn.scaled_dot_product_attention(q, k[:, :, None], v[:, :, None])


SMALL_CASES: dict[str, tuple[Callable[..., Any], Shapes]] = {
    "plain": (plain, [(9, 128, 16), (9, 128, 16), (9, 128, 16)]),
    "causal": (causal, [(12, 96, 16), (12, 128, 16), (12, 128, 16)]),
    "as in torch": (torch_like, [(9, 100, 24), (9, 141, 24), (9, 141, 40)]),
    "causal as in torch": (torch_like_causal, [(12, 96, 32)] * 3),
    "grouped heads as in torch": (torch_like_grouped, [(3, 4, 2, 48, 16), (3, 4, 80, 16), (3, 4, 80, 16)]),
}


@pytest.mark.parametrize("dtype", SMALL, ids=["f16", "bf16"])
@pytest.mark.parametrize("case", [pytest.param(case, marks=needs_cuda) for case in SMALL_CASES])
def test_small_floats_are_multiplied_on_tensor_cores(case: str, dtype: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where there are no kernels of tiles, all products, and all those of the gradient, are of fragments."""
    monkeypatch.setattr(ml.config, "tiles", "off")
    function, shapes = SMALL_CASES[case]
    arrays = draw(shapes, dtype)
    assert "nvgpu.mma.sync" in check(function, arrays, "cuda", SMALL[dtype])

    def loss(*arrays: Any) -> Any:
        return np.sum(function(*arrays).astype(np.float32) ** 2)

    if "torch" not in case or "grouped" in case:
        return  # the results of bf16 are f32, and so are the factors of their derivatives
    text = check(ml.grad(loss, argnums=(0, 1, 2)), arrays, "cuda", SMALL[dtype])
    bodies = text.split("gpu.func @")[1:]
    assert len(bodies) == 3
    assert all("nvgpu.mma.sync" in body and body.split("(")[0].endswith("streamed") for body in bodies)


@pytest.mark.parametrize("dtype", SMALL, ids=["f16", "bf16"])
@pytest.mark.parametrize("queries", [pytest.param(n, marks=needs_cuda) for n in (1, 4)])
def test_decoding_splits_the_keys(queries: int, dtype: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two launches: blocks have parts of the keys, which are merged."""
    monkeypatch.setattr(ml.config, "tiles", "off")
    arrays = draw([(3, queries, 32), (3, 1500, 32), (3, 1500, 32)], dtype)
    text = compare(torch_like, arrays, "cuda", SMALL[dtype]).ir("schedule", *arrays)
    kernels = re.findall(r"gpu.func @(\w+)", text)
    assert [name.rpartition("_")[2] for name in kernels] == ["streamed", "merge"]


@pytest.mark.parametrize("depth", [pytest.param(256, marks=needs_cuda)])
def test_launches_ask_for_shared_memory(depth: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """More than the 48 KiB that every kernel has."""
    monkeypatch.setattr(ml.config, "tiles", "off")
    monkeypatch.setattr(ml.config, "cache", False)
    monkeypatch.setattr(mma, "LAYOUTS", (mma.MmaLayout(4, 1, 16),))
    arrays = draw([(12, 20, depth)] + [(12, 520, depth)] * 2, np.float16)
    compiled = compare(torch_like, arrays, "cuda", SMALL[np.float16])
    assert ".extern .shared" in ml.lower(torch_like, *arrays, target="cuda").emit("ptx")
    assert "streamed" in compiled.ir("schedule", *arrays)
