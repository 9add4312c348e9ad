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
    monkeypatch.setattr(masked, "_MOST_ROWS", 24)
    monkeypatch.setattr(masked, "tile_width", lambda columns: 32)
    monkeypatch.setattr(masked, "block_rows", lambda rows, row_bytes: min(rows, 24))
    monkeypatch.setattr(masked, "most_elements", lambda group: 1 << 20)


def skipped(function: Callable[..., Any], *calls: list[Array]) -> tuple[list[list[Array]], int]:
    """The results of calls, and the number of loops that the pass has made."""
    with ml.config.override(cache=False):
        compiled = ml.compile(function)
        results = [compiled(*inputs) for inputs in calls]
        loops = sum(op.name == "scf.for" for op in operations(parse(str(compiled.ir("optimize", *calls[0])))))
    return [list(found) if isinstance(found, tuple) else [found] for found in results], loops


def compare(got: Array, right: Array, tolerance: float = 1e-11) -> None:
    np.testing.assert_allclose(got, right, rtol=tolerance, atol=tolerance)


CONSTANTS = {"other blocks", "blocks of the past", "one column", "nothing", "everything", "even"}
"""Masks that are arrays in memory where they are constants, as they are no intervals of columns between edges."""


FILLS = (-np.inf, -1e9, -3.0)


@pytest.mark.parametrize(
    ("name", "fill", "dynamic"),
    [(name, FILLS[(number + dynamic) % 3], dynamic) for number, name in enumerate(MASKS) for dynamic in (False, True)],
)
def test_every_mask(small: None, name: str, fill: float, dynamic: bool) -> None:
    q, k, v = arrays((2, 130, 3), (2, 141, 3), (2, 141, 5))
    function = with_indices(attention(MASKS[name], fill), 130, 141, dynamic=dynamic)
    calls = [[q, k, v, np.int64(w), np.int64(0)] for w in (0, 40, 200)]
    results, loops = skipped(function, *calls)
    for (got,), inputs in zip(results, calls, strict=True):
        with np.errstate(invalid="ignore"):
            compare(got, function(*inputs))
    assert loops > 0 or (name in CONSTANTS and not dynamic)


def random_mask(rng: np.random.Generator) -> Mask:
    """A random combination of comparisons of indices, a length `w[0]` and lengths of rows, `w[1:]`."""
    c = [int(n) for n in rng.integers(-40, 180, 4)]
    b = int(rng.integers(2, 60))
    simple: list[Mask] = [
        lambda i, j, w: j <= i + c[0],
        lambda i, j, w: j > i - c[1],
        lambda i, j, w: np.abs(i - j) < c[2],
        lambda i, j, w: np.abs(i - j) >= c[2],
        lambda i, j, w: i // b == j // b,
        lambda i, j, w: i // b >= j // b,
        lambda i, j, w: j < w[0],
        lambda i, j, w: j < w[1:][:, None],
        lambda i, j, w: (j >= c[3]) | (i > c[0]),
        lambda i, j, w: j == i - c[1],
        lambda i, j, w: j != i + c[0],
        lambda i, j, w: (j + 3) // b < (i + c[2]) // 7,
    ]
    x, y, z = (simple[int(n)] for n in rng.integers(0, len(simple), 3))
    forms: list[Mask] = [
        lambda i, j, w: x(i, j, w),
        lambda i, j, w: ~x(i, j, w),
        lambda i, j, w: x(i, j, w) & y(i, j, w),
        lambda i, j, w: x(i, j, w) | y(i, j, w),
        lambda i, j, w: (x(i, j, w) & y(i, j, w)) | z(i, j, w),
        lambda i, j, w: x(i, j, w) & ~(y(i, j, w) & z(i, j, w)),
    ]
    return forms[int(rng.integers(0, len(forms)))]


PROGRAMS: dict[str, Callable[[Mask, float], Callable[..., Any]]] = {
    "chosen": lambda mask, fill: attention(mask, fill),
    "added": lambda mask, fill: attention(mask, fill, added=True),
    "weights too": lambda mask, fill: weights_too(mask, fill),
    "product": lambda mask, fill: lambda q, k, v, i, j, w: np.where(mask(i[:, None], j, w), q @ k.mT, 0.0),
    "factor": lambda mask, fill: (
        lambda q, k, v, i, j, w: np.where(mask(i[:, None], j, w), q[:, :, :1] + k.mT[:, :1], 0) @ v
    ),
    "normalised later": lambda mask, fill: normalised_later(mask, fill),
}


def weights_too(mask: Mask, fill: float) -> Callable[..., Any]:
    def function(q: Array, k: Array, v: Array, i: Array, j: Array, w: Array) -> Any:
        p = softmax(np.where(mask(i[:, None], j, w), q @ k.mT, q.dtype.type(fill)))
        return p, p @ v

    return function


def normalised_later(mask: Mask, fill: float) -> Callable[..., Any]:
    def function(q: Array, k: Array, v: Array, i: Array, j: Array, w: Array) -> Any:
        s = np.where(mask(i[:, None], j, w), q @ k.mT, q.dtype.type(fill))
        e = np.exp(s - s.max(axis=-1, keepdims=True))
        return (e @ v) / e.sum(axis=-1, keepdims=True)

    return function


def random_case(seed: int) -> tuple[Callable[..., Any], list[Array]]:
    """A program with a random mask, and arrays of which some have infinities, NaN or large numbers."""
    rng = np.random.default_rng(seed)
    form = sorted(PROGRAMS)[seed % len(PROGRAMS)]
    fill = float(rng.choice([-np.inf, -np.inf, -1e9, -1e4, -5.0]))
    function = PROGRAMS[form](random_mask(rng), fill)
    q, k, v = arrays((2, 130, 3), (2, 141, 3), (2, 141, 5), dtype="f8", seed=seed)
    if seed % 3 == 0:
        odd = [np.inf, -np.inf, np.nan, 1e300, 1e5][int(rng.integers(0, 5))]
        x = [q, k, v][int(rng.integers(0, 3))]
        x[int(rng.integers(0, 2)), int(rng.integers(0, 130)), int(rng.integers(0, 3))] = odd
    lengths = rng.integers(0 if seed % 2 else 1, 150, 131)
    return with_indices(function, 130, 141, dynamic=seed % 4 == 1), [q, k, v, lengths, np.int64(0)]


@pytest.mark.parametrize("seed", range(24))
def test_random_masks(small: None, seed: int) -> None:
    function, inputs = random_case(seed)
    (results,), _ = skipped(function, inputs)
    with np.errstate(all="ignore"):
        right = function(*inputs)
    for got, expected in zip(results, right if isinstance(right, tuple) else (right,), strict=True):
        compare(got, expected)


@pytest.mark.parametrize("seed", range(30, 40))
def test_gradients_of_random_masks(small: None, monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    function, inputs = random_case(seed)

    def total(q: Array, k: Array, v: Array, w: Array, zero: Array) -> Array:
        found = function(q, k, v, w, zero)
        return sum(np.sum(x**2) for x in (found if isinstance(found, tuple) else (found,)))

    gradient = ml.grad(total, argnums=(0, 1, 2))
    (results,), _ = skipped(gradient, inputs)
    monkeypatch.setattr(skip_masked.SkipMaskedPass, "run", lambda self, module: None)
    for got, expected in zip(results, skipped(gradient, inputs)[0][0], strict=True):
        compare(got, expected, 1e-9)


@pytest.mark.parametrize("dtype", ["f4", "f2"])
def test_every_dtype(small: None, dtype: str) -> None:
    q, k, v = arrays((2, 130, 8), (2, 141, 8), (2, 141, 5), dtype=dtype)
    function = with_indices(attention(MASKS["window"], -1e4), 130, 141)
    ((got,),), loops = skipped(function, [q, k, v, np.int64(0), np.int64(0)])
    right = function(*(x.astype("f8") for x in (q, k, v)), 0, 0)
    assert loops > 0
    np.testing.assert_allclose(got, right, rtol=0, atol=1e-5 if dtype == "f4" else 2e-2)


def test_lengths_of_a_batch() -> None:
    q, k, v = arrays((3, 2, 300, 16), (3, 2, 400, 16), (3, 2, 400, 16), dtype="f4")

    def padded(q: Array, k: Array, v: Array, lengths: Array) -> Array:
        keep = np.arange(400) < lengths[:, None, None, None]
        return softmax(np.where(keep, q @ np.swapaxes(k, -1, -2), np.float32(-1e9))) @ v

    lengths = ([400, 128, 1], [0, 399, 129])  # all positions of no length have the same weight
    calls = [[q, k, v, np.array(numbers)] for numbers in lengths]
    results, loops = skipped(padded, *calls)
    assert loops > 0
    for (got,), inputs in zip(results, calls, strict=True):
        np.testing.assert_allclose(got, padded(*(x.astype("f8") for x in (q, k, v)), inputs[3]), rtol=0, atol=2e-5)


def test_a_mask_that_excludes_no_block_is_left_alone() -> None:
    q, k, v = arrays((300, 16), (300, 16), (300, 16))
    function = with_indices(attention(lambda i, j, w: np.abs(i - j) < 299, -np.inf), 300, 300)
    assert skipped(function, [q, k, v, np.int64(0), np.int64(0)])[1] == 0


def test_explain_counts_the_blocks() -> None:
    q, k, v = arrays((512, 16), (512, 16), (512, 16), dtype="f4")
    compiled = ml.compile(with_indices(attention(MASKS["causal"], -np.inf), 512, 512))
    compiled(q, k, v, np.int64(0), np.int64(0))
    text = compiled.explain()
    assert "masks of signature 1:" in text
    assert "a matrix of 512x512 by blocks of 256x128: 6 of 8 are computed, 4 of them with the mask" in text


@pytest.mark.parametrize("form", PROGRAMS)
def test_every_form_is_found(small: None, form: str) -> None:
    q, k, v = arrays((2, 130, 3), (2, 141, 3), (2, 141, 5))
    function = with_indices(PROGRAMS[form](MASKS["window"], -np.inf), 130, 141)
    inputs = [q, k, v, np.int64(0), np.int64(0)]
    (results,), loops = skipped(function, inputs)
    right = function(*inputs)
    for got, expected in zip(results, right if isinstance(right, tuple) else (right,), strict=True):
        compare(got, expected)
    assert loops > 0
