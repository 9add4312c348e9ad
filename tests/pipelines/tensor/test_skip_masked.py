"""Blocks that a mask excludes are left out, and the numbers are NumPy's: any mask, any fill, infinities and NaN too."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mlirml as ml
from mlirml.ir.bindings import operations, parse
from mlirml.pipelines.tensor import skip_masked
from mlirml.pipelines.tensor.tiling import masked

PASSES = (skip_masked,)
Array = Any
Mask = Callable[..., Any]

MASKS: dict[str, Mask] = {
    "causal": lambda i, j, w: j <= i,
    "after": lambda i, j, w: j > i,
    "window": lambda i, j, w: (j <= i) & (j > i - 37),
    "band": lambda i, j, w: np.abs(i - j) < 25,
    "no band": lambda i, j, w: np.abs(i - j) >= 3,
    "blocks": lambda i, j, w: i // 26 == j // 26,
    "other blocks": lambda i, j, w: (i // 26 != j // 26) | (i == j),
    "padding": lambda i, j, w: j < w,
    "negative": lambda i, j, w: ~(j >= w + i),
    "window of a length": lambda i, j, w: (j <= i) & (i - j < w),
    "blocks of the past": lambda i, j, w: (j + 2) // 4 <= i,
    "two": lambda i, j, w: (j < 4) | (np.abs(j - i) <= 2) | (j >= i + w),
    "one column": lambda i, j, w: (j == 3) | ((i > 8) & (j < i)),
    "nothing": lambda i, j, w: (j < 0) & (i > w),
    "everything": lambda i, j, w: (j >= 0) | (i == w),
    "even": lambda i, j, w: (j % 2 == 0) & (j <= i),
}


def softmax(x: Array) -> Array:
    e = np.exp(x - np.max(x, axis=-1, keepdims=True))
    return e / np.sum(e, axis=-1, keepdims=True)


def attention(mask: Mask, fill: float, *, added: bool = False) -> Callable[..., Array]:
    def function(q: Array, k: Array, v: Array, i: Array, j: Array, w: Array) -> Array:
        keep, scores = mask(i[:, None], j, w), q @ np.swapaxes(k, -1, -2) * q.dtype.type(0.5)
        if added:
            return softmax(scores + np.where(keep, q.dtype.type(0), q.dtype.type(fill))) @ v
        return softmax(np.where(keep, scores, q.dtype.type(fill))) @ v

    return function


def arrays(*shapes: tuple[int, ...], dtype: str = "f8", seed: int = 0) -> list[Array]:
    rng = np.random.default_rng(seed)
    return [rng.standard_normal(shape).astype(dtype) for shape in shapes]


def with_indices(function: Callable[..., Any], rows: int, columns: int, *, dynamic: bool = False) -> Callable[..., Any]:
    """The function with the indices of rows and columns; if `dynamic`, a mask is not a constant."""

    def of_arrays(*args: Array) -> Any:
        *others, w, zero = args
        i, j = np.arange(rows), np.arange(columns)
        return function(*others, i + zero if dynamic else i, j + zero if dynamic else j, w)

    return of_arrays


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small blocks and tiles, whose sizes do not divide the number of rows and columns."""
    monkeypatch.setattr(masked, "_FEWEST", 4)
    monkeypatch.setattr(masked, "_BLOCK", 24)
    monkeypatch.setattr(masked, "tile_width", lambda columns: 32)
    monkeypatch.setattr(masked, "block_rows", lambda rows, row_bytes: min(rows, 24))
    monkeypatch.setattr(masked, "most_elements", lambda group: 1 << 20)


def skipped(function: Callable[..., Any], inputs: list[Array]) -> tuple[list[Array], int]:
    """The results, and the number of loops that the pass has made."""
    with ml.config.override(cache=False):
        compiled = ml.compile(function)
        results = compiled(*inputs)
        loops = sum(op.name == "scf.for" for op in operations(parse(str(compiled.ir("optimize", *inputs)))))
    return list(results) if isinstance(results, tuple) else [results], loops


def compare(got: Array, right: Array, tolerance: float = 1e-11) -> None:
    np.testing.assert_allclose(got, right, rtol=tolerance, atol=tolerance)


CONSTANTS = {"other blocks", "blocks of the past", "one column", "nothing", "everything", "even"}
"""Masks that are arrays in memory where they are constants, as they are no intervals of columns between edges."""


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("fill", [-np.inf, -1e9, -3.0])
@pytest.mark.parametrize("name", MASKS)
def test_every_mask(small: None, name: str, fill: float, dynamic: bool) -> None:
    q, k, v = arrays((2, 130, 3), (2, 141, 3), (2, 141, 5))
    function = with_indices(attention(MASKS[name], fill), 130, 141, dynamic=dynamic)
    for w in (0, 40, 200):
        inputs = [q, k, v, np.int64(w), np.int64(0)]
        (got,), loops = skipped(function, inputs)
        with np.errstate(invalid="ignore"):
            compare(got, function(*inputs))
    assert loops > 0 or (name in CONSTANTS and not dynamic)
