"""Attention by blocks of rows is the same attention in every form, and what is none is left alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mlirml as ml
from mlirml.interpreter.interpreter import interpret
from mlirml.ir.bindings import operations, parse
from mlirml.nn import functional as F
from mlirml.pipelines.tensor import fuse_attention
from mlirml.pipelines.tensor.fuse_attention import FuseAttentionPass
from mlirml.pipelines.tensor.tiling import attention as tiles
from mlirml.targets.machine import Processor

PASSES = (fuse_attention,)
Array = Any


def softmax(x: Array) -> Array:
    e = np.exp(x - np.max(x, axis=-1, keepdims=True))
    return e / np.sum(e, axis=-1, keepdims=True)


def attention(q: Array, k: Array, v: Array) -> Array:
    return softmax(q @ np.swapaxes(k, -1, -2) * q.dtype.type(0.3)) @ v


def added_mask(q: Array, k: Array, v: Array, mask: Array) -> Array:
    return softmax(q @ np.swapaxes(k, -1, -2) + mask) @ v


def chosen_mask(q: Array, k: Array, v: Array, mask: Array) -> Array:
    return softmax(np.where(mask, q @ np.swapaxes(k, -1, -2), -np.inf)) @ v


def causal(q: Array, k: Array, v: Array) -> Array:
    rows, columns = np.arange(q.shape[-2])[:, None], np.arange(k.shape[-2])
    return softmax(np.where(rows >= columns, q @ np.swapaxes(k, -1, -2), -np.inf)) @ v


def normalised_later(q: Array, k: Array, v: Array) -> Array:
    s = q @ np.swapaxes(k, -1, -2)
    e = np.exp(s - np.max(s, axis=-1, keepdims=True))
    return (e @ v) / np.sum(e, axis=-1, keepdims=True)


def transposed(q: Array, k: Array, v: Array) -> Array:
    """Keys by queries, so that softmax goes over the first axis."""
    s = k @ np.swapaxes(q, -1, -2)
    e = np.exp(s - np.max(s, axis=-2, keepdims=True))
    p = e / np.sum(e, axis=-2, keepdims=True)
    return np.swapaxes(v, -1, -2) @ p


def norm_between(q: Array, k: Array, v: Array) -> Array:
    s = q @ np.swapaxes(k, -1, -2)
    return (s - np.mean(s, axis=-1, keepdims=True)) @ v


def arrays(*shapes: tuple[int, ...], dtype: str = "f8") -> list[Array]:
    rng = np.random.default_rng(0)
    return [rng.standard_normal(shape).astype(dtype) for shape in shapes]


def fused(function: Callable[..., Any], inputs: list[Array], l2_bytes: int) -> tuple[list[Array], int]:
    """The results after the pass, as the reference computes them, and how many loops it has made."""
    module = parse(str(ml.compile(function).ir("optimize", *inputs)))
    before = count_loops(module)
    FuseAttentionPass(Processor(l2_bytes=l2_bytes)).run(module.operation)
    return interpret(module, inputs), count_loops(module) - before


def count_loops(module: Any) -> int:
    return sum(op.name == "scf.for" for op in operations(module))


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tiles, "BLOCK_BYTES", 1)
    monkeypatch.setattr(tiles, "FEWEST_ROWS", 5)
    monkeypatch.setattr(tiles, "STEP", 2)


@pytest.mark.parametrize("lead", [(), (3,), (1, 3), (2, 3), (2, 1, 2)])
@pytest.mark.parametrize("function", [attention, causal, transposed])
def test_every_batch(small: None, function: Callable[..., Any], lead: tuple[int, ...]) -> None:
    q, k, v = arrays((*lead, 13, 4), (*lead, 11, 4), (*lead, 11, 3))
    (got,), loops = fused(function, [q, k, v], 900)
    assert loops == 1
    np.testing.assert_allclose(got, function(q, k, v), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(
    "shape", [(13, 11), (1, 11), (13, 1), (3, 13, 11), (2, 1, 13, 11), (2, 1, 1, 11), (2, 3, 13, 11)]
)
def test_every_mask(small: None, shape: tuple[int, ...]) -> None:
    q, k, v, mask = arrays((2, 3, 13, 4), (2, 3, 11, 4), (2, 3, 11, 5), shape)
    (got,), loops = fused(added_mask, [q, k, v, mask], 900)
    np.testing.assert_allclose(got, added_mask(q, k, v, mask), rtol=1e-12, atol=1e-12)
    (chosen,), more = fused(chosen_mask, [q, k, v, mask > -1], 900)
    with np.errstate(invalid="ignore"):
        np.testing.assert_allclose(chosen, chosen_mask(q, k, v, mask > -1), rtol=1e-12, atol=1e-12)
    assert loops == more == 1


def test_another_reduction_between(small: None) -> None:
    q, k, v = arrays((3, 13, 4), (3, 11, 4), (3, 11, 3))
    (got,), loops = fused(norm_between, [q, k, v], 900)
    assert loops == 1
    np.testing.assert_allclose(got, norm_between(q, k, v), rtol=1e-12, atol=1e-12)


def test_scores_in_cache_are_left_alone() -> None:
    q, k, v = arrays((13, 4), (11, 4), (11, 4))
    assert fused(attention, [q, k, v], 1 << 20)[1] == 0


def test_big_operands_are_left_alone(small: None) -> None:
    q, k, v = arrays((60, 40), (50, 40), (50, 40))
    assert fused(attention, [q, k, v], 10_000)[1] == 0


def weights_too(q: Array, k: Array, v: Array) -> tuple[Array, Array]:
    p = softmax(q @ np.swapaxes(k, -1, -2))
    return p, p @ v


def scores_used_later(q: Array, k: Array, v: Array) -> tuple[Array, Array]:
    s = q @ np.swapaxes(k, -1, -2)
    p = softmax(s)
    return p @ v + np.sum(s, axis=-1, keepdims=True), p.T


def largest_from_the_first(q: Array, k: Array, v: Array) -> Array:
    """As loops write it: the maximum starts from the first score."""
    s = q @ np.swapaxes(k, -1, -2)
    e = np.exp(s - np.max(s[..., 1:], axis=-1, initial=-1e9)[..., None] - s[..., :1])
    return e / np.sum(e, axis=-1, keepdims=True) @ v


@pytest.mark.parametrize("lead", [(), (2, 3)])
@pytest.mark.parametrize("function", [weights_too, scores_used_later, normalised_later, largest_from_the_first])
def test_what_is_used_behind(small: None, function: Callable[..., Any], lead: tuple[int, ...]) -> None:
    q, k, v = arrays((*lead, 13, 4), (*lead, 11, 4), (*lead, 11, 3))
    results, loops = fused(function, [q, k, v], 900)
    expected = function(q, k, v)
    for got, right in zip(results, expected if isinstance(expected, tuple) else (expected,), strict=True):
        np.testing.assert_allclose(got, right, rtol=1e-11, atol=1e-12)
    assert loops == 1


@pytest.mark.parametrize(
    "function",
    [
        lambda q, k, v: np.tanh(q @ k.T) @ v,
        lambda q, k, v: softmax((q @ k.T).T).T @ v,
        lambda q, k, v: softmax(np.cumsum(q @ k.T, axis=0)) @ v,
    ],
    ids=["no reduction", "softmax across rows", "rows that depend on rows"],
)
def test_what_is_no_attention_is_left_alone(small: None, function: Callable[..., Any]) -> None:
    q, k, v = arrays((13, 4), (11, 4), (11, 4))
    results, loops = fused(function, [q, k, v], 900)
    expected = function(q, k, v)
    for got, right in zip(results, expected if isinstance(expected, tuple) else (expected,), strict=True):
        np.testing.assert_allclose(got, right, rtol=1e-12, atol=1e-12)
    assert loops == 0


@pytest.mark.parametrize(("function", "dtype"), [(attention, "f8"), (causal, "f4"), (normalised_later, "f4")])
def test_compiled(function: Callable[..., Any], dtype: str) -> None:
    q, k, v = arrays((2, 5, 333, 40), (2, 5, 411, 40), (2, 5, 411, 33), dtype=dtype)
    q *= q.dtype.type(0.2)
    expected = function(*(x.astype("f8") for x in (q, k, v)))
    with ml.config.override(threads=2):
        got = ml.compile(function)(q, k, v)
    np.testing.assert_allclose(got, expected, rtol=0, atol=3e-6 if dtype == "f4" else 1e-13)


def test_rows_masked_whole_are_nan_as_in_numpy() -> None:
    q, k, v = arrays((4, 400, 16), (4, 500, 16), (4, 500, 16), dtype="f4")
    mask = np.tri(400, 500, -7, dtype=bool)
    got = ml.compile(chosen_mask)(q, k, v, mask)
    with np.errstate(invalid="ignore"):
        np.testing.assert_allclose(got, chosen_mask(q, k, v, mask), rtol=1e-5, atol=1e-5)
    assert np.isnan(got[:, :7]).all() and np.isfinite(got[:, 7:]).all()


def test_the_attention_of_nn() -> None:
    q, k, v = arrays((1, 4, 512, 32), (1, 4, 512, 32), (1, 4, 512, 32), dtype="f4")
    compiled = ml.compile(lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True))
    assert "mlirml.parallel_for" in str(compiled.ir("schedule", q, k, v))
    scores = np.where(np.tri(512, dtype=bool), q.astype("f8") @ np.swapaxes(k, -1, -2) / np.sqrt(32), -np.inf)
    np.testing.assert_allclose(compiled(q, k, v), softmax(scores) @ v, rtol=0, atol=2e-6)
