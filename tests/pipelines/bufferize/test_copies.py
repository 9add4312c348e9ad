"""Typical programs copy nothing that they could compute in place, and need no buffer that they could do without."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mlirml as ml
from mlirml.ir.bindings import operations, parse
from mlirml.passes import parse_pipeline
from mlirml.pipelines.bufferize import bufferize
from mlirml.pipelines.memref import elide_copies
from mlirml.pipelines.tensor import buffer_stores, fold_contract, fuse, move_reshapes, scalarize, schedule_contract

Array = np.ndarray
PASSES = (fuse, fold_contract, move_reshapes, schedule_contract, scalarize, buffer_stores, bufferize, elide_copies)
PIPELINE = (
    "canonicalize,cse,mlirml-fold-contract,mlirml-move-reshapes,mlirml-fuse,canonicalize,cse,mlirml-schedule-contract,mlirml-scalarize,"
    "mlirml-buffer-stores,mlirml-bufferize,mlirml-elide-copies"
)


def stencil(x: Array) -> Array:
    return x[1:-1] - 2 * x[:-2] + x[2:]


def five_points(x: Array) -> Array:
    return 0.25 * (x[1:-1, :-2] + x[1:-1, 2:] + x[:-2, 1:-1] + x[2:, 1:-1])


def relax(x: Array) -> None:
    x[1:-1] += 0.5 * x[1:-1]


def softmax(x: Array) -> Array:
    e = np.exp(x - np.max(x, axis=-1, keepdims=True))
    return e / np.sum(e, axis=-1, keepdims=True)


def mlp(x: Array, w: Array, v: Array) -> Array:
    return softmax(np.maximum(x @ w, 0) @ v)


def concatenation(x: Array, y: Array) -> Array:
    return np.concatenate([np.tanh(x), x * y, np.exp(y)], axis=1)


def stack(x: Array, y: Array) -> Array:
    return np.stack([np.tanh(x), x * y])


def rotary(x: Array, c: Array, s: Array) -> Array:
    a, b = x[:, :4], x[:, 4:]
    return np.concatenate([a * c - b * s, b * c + a * s], axis=1)


def gated(x: Array) -> Array:
    return x[:, :4] / (1 + np.exp(-x[:, 4:]))


def flipped(x: Array) -> Array:
    return x[::-1, ::2] + 1


def mean_and_variance(x: Array) -> tuple[Array, Array]:
    return x.mean(1), x.var(1)


def reshapes(x: Array) -> Array:
    return np.tanh((x * 2).reshape(8, 8, 8) + 1).reshape(64, 8) * 3


def split_heads(x: Array) -> Array:
    return (x * 2).reshape(8, 4, 4).transpose(1, 0, 2) + 1


def merge_heads(x: Array) -> Array:
    return (x.transpose(1, 0, 2) + 1).reshape(8, 16) * 2


def bias_of_rows(x: Array, b: Array, c: Array) -> Array:
    return np.exp((x * b + c[:, None]).reshape(4, 2, 8) - 1)


def slice_of_a_chain(x: Array, b: Array) -> Array:
    return np.exp(np.tanh(x + b)[2:5, ::2])


PROGRAMS: list[tuple[Callable[..., Any], list[tuple[int, ...]], int]] = [
    (stencil, [(20,)], 0),
    (five_points, [(8, 8)], 0),
    (relax, [(8, 8)], 0),
    (softmax, [(8, 8)], 2),
    (mlp, [(4, 8), (8, 8), (8, 8)], 5),
    (concatenation, [(4, 8), (4, 8)], 0),
    (stack, [(4, 8), (4, 8)], 0),
    (rotary, [(4, 8), (4, 4), (4, 4)], 0),
    (gated, [(4, 8)], 0),
    (flipped, [(8, 8)], 0),
    (mean_and_variance, [(8, 8)], 1),
    (reshapes, [(512,)], 0),
    (split_heads, [(8, 16)], 0),
    (merge_heads, [(4, 8, 4)], 0),
    (bias_of_rows, [(8, 8), (8,), (8,)], 0),
    (slice_of_a_chain, [(8, 8), (8,)], 0),
]


@pytest.mark.parametrize("function, shapes, buffers", PROGRAMS, ids=[f.__name__ for f, *_ in PROGRAMS])
def test_no_copies(function: Callable[..., Any], shapes: list[tuple[int, ...]], buffers: int) -> None:
    rng = np.random.default_rng(0)
    given = [rng.standard_normal(shape, dtype=np.float32) for shape in shapes]
    module = parse(ml.trace(function, *given).text)
    parse_pipeline(PIPELINE).run(module)
    names = [op.name for op in operations(module)]
    assert names.count("memref.copy") == 0
    assert names.count("memref.alloc") <= buffers
    compiled, kept = ml.compile(function), [x.copy() for x in given]
    expected = function(*kept)
    result = compiled(*given)
    for new, old in zip(given, kept, strict=True):
        np.testing.assert_allclose(new, old, rtol=1e-5)
    if expected is not None:
        for one, other in zip(result, expected, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)


def smoothed(x: Array) -> None:
    x[1:-1, 1:-1] = 0.25 * (x[1:-1, :-2] + x[1:-1, 2:] + x[:-2, 1:-1] + x[2:, 1:-1])


def coupled(u: Array, v: Array) -> None:
    for _ in range(5):
        old, other = u.copy(), v.copy()
        u[1:-1, 1:-1] = old[1:-1, 2:] - old[1:-1, :-2] + other[1:-1, 2:] * other[:-2, 1:-1] - old[2:, 1:-1]
        v[1:-1, 1:-1] = other[1:-1, 2:] - other[1:-1, :-2] + old[1:-1, 2:] * old[:-2, 1:-1] - other[2:, 1:-1]
        u[0], v[0] = 0, 1


def from_few(x: Array) -> None:
    x[1:-1] = x[1:-1] * x[0] + x[2]


@pytest.mark.parametrize(
    ("function", "arrays", "copied"),
    [(smoothed, 1, [(6, 6)]), (coupled, 2, [(6, 6), (6, 6)]), (from_few, 1, [(6, 8)])],
    ids=lambda x: getattr(x, "__name__", ""),
)
def test_a_result_is_copied_instead_of_what_it_is_computed_from(
    function: Callable[..., Any], arrays: int, copied: list[tuple[int, ...]]
) -> None:
    """Where slices around a slice are read, and the result is stored into it."""
    given = [np.random.default_rng(seed).standard_normal((8, 8)) for seed in range(arrays)]
    module = parse(ml.trace(function, *given).text)
    parse_pipeline(PIPELINE).run(module)
    shapes = [tuple(op.operands[0].type.shape) for op in operations(module) if op.name == "memref.copy"]
    assert shapes == copied
    kept = [x.copy() for x in given]
    function(*kept)
    ml.compile(function)(*given)
    for one, other in zip(given, kept, strict=True):
        np.testing.assert_allclose(one, other)
