"""Loops split at the edges of masks have NumPy's numbers: any mask, infinities and NaN, lengths of any size."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mlirml as ml
from tests.pipelines.tensor.test_skip_masked import MASKS, random_mask

Array = Any
COLUMNS = 300


def softmax(x: Array, keep: Array) -> Array:
    x = np.where(keep, x, -np.inf)
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def sums(x: Array, keep: Array) -> Array:
    return np.where(keep, x, 0).sum(-1)


def largest_and_mean(x: Array, keep: Array) -> Array:
    return np.where(keep, x, -3).max(-1), np.where(keep, x, 0).sum(-1) / keep.sum(-1)


def elements(x: Array, keep: Array) -> Array:
    return np.where(keep, np.exp(x), x * 2)


def counts(x: Array, keep: Array) -> Array:
    return np.where(keep, x > 0, False).sum(-1), np.any(keep & (x > 2), axis=-1)


FUNCTIONS = (softmax, sums, largest_and_mean, elements, counts)


def with_mask(function: Callable[..., Any], mask: Callable[..., Any], rows: int) -> Callable[..., Any]:
    def masked(x: Array, w: Array) -> Any:
        return function(x, mask(np.arange(rows)[:, None], np.arange(COLUMNS), w))

    return masked


def check(function: Callable[..., Any], *inputs: Array) -> Any:
    compiled = ml.compile(function)
    with np.errstate(all="ignore"):
        expected = function(*inputs)
        found = compiled(*inputs)
    pairs = zip(*(r if isinstance(r, tuple) else (r,) for r in (found, expected)), strict=True)
    for got, right in pairs:
        np.testing.assert_allclose(got, right, rtol=1e-11, atol=1e-11)
    return compiled


def values(*shape: int, special: bool = False) -> Array:
    rng = np.random.default_rng(0)
    x = rng.standard_normal(shape)
    if special:
        places = rng.random(shape)
        x[places < 0.003] = np.inf
        x[places > 0.997] = np.nan
    return x


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("name", MASKS)
def test_every_mask(name: str, function: Callable[..., Any]) -> None:
    for w in (0, 70):
        check(with_mask(function, MASKS[name], 170), values(170, COLUMNS), np.int64(w))


SPLIT = ("causal", "after", "window", "band", "blocks", "padding", "negative", "window of a length")


@pytest.mark.parametrize("name", SPLIT)
def test_loops_are_split(name: str) -> None:
    compiled = check(with_mask(softmax, MASKS[name], 170), values(170, COLUMNS), np.int64(50))
    assert "split at the edges of its mask" in str(compiled.explain())


@pytest.mark.parametrize("seed", range(12))
def test_random_masks(seed: int) -> None:
    rng = np.random.default_rng(seed)
    mask = random_mask(rng)
    lengths = rng.integers(-20, COLUMNS + 20, 131)
    for function in FUNCTIONS:
        check(with_mask(function, mask, 130), values(130, COLUMNS), lengths)


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_special_numbers_are_selected_as_in_numpy(function: Callable[..., Any]) -> None:
    for name in ("causal", "band", "padding"):
        check(with_mask(function, MASKS[name], 170), values(170, COLUMNS, special=True), np.int64(70))


EXTREME = np.array([0, 1, -1, COLUMNS, COLUMNS + 1, 2**63 - 1, -(2**63), 2**40, -(2**40) - 1, 64, 127, 128])


@pytest.mark.parametrize("shift", [0, 1, -1, 5])
def test_lengths_of_any_size(shift: int) -> None:
    def padded(x: Array, lengths: Array) -> Array:
        keep = np.arange(COLUMNS) < lengths[:, None] + shift
        return sums(x, keep), softmax(x, keep)

    check(padded, values(len(EXTREME), COLUMNS), EXTREME)


def test_batches_and_gradients() -> None:
    x, lengths = values(3, 40, COLUMNS), np.arange(120).reshape(3, 40) * 3

    def loss(x: Array, lengths: Array) -> Array:
        keep = np.arange(COLUMNS) < lengths[..., None]
        y = np.where(keep, x, -1e9)
        e = np.exp(y - y.max(-1, keepdims=True))
        return np.sum(np.where(keep, e / e.sum(-1, keepdims=True), 0) ** 2)

    names = [name for name in ml.optional_passes() if name not in ("mlirml-split-masked", "mlirml-recompute-masks")]
    gradient = ml.grad(loss)
    found, expected = ml.compile(gradient)(x, lengths), ml.compile(gradient, pipeline=names)(x, lengths)
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-14)


def test_loops_that_store_what_they_load_are_right() -> None:
    def in_place(x: Array) -> Array:
        for i in range(x.shape[0]):
            for j in range(1, x.shape[1]):
                x[i, j] = x[i, j - 1] + (x[i, j] if j <= 2 * i else 0.5)
        return x

    x = values(170, COLUMNS)
    np.testing.assert_allclose(ml.compile(in_place)(x.copy()), in_place(x.copy()), rtol=1e-12)


@pytest.mark.parametrize("shape", [(260, 1), (1, 260), (260, 3), (3, 260), (70, 300), (300, 300)])
@pytest.mark.parametrize("function", [np.triu, np.tril])
def test_masks_that_hold_nowhere_or_everywhere(function: Callable[..., Any], shape: tuple[int, int]) -> None:
    x = values(*shape)
    offsets = (-400, -300, -70, -1, 0, 1, 2, 69, 299, 400)
    found = ml.compile(lambda x: [function(x, k) for k in offsets])(x)
    for k, one in zip(offsets, found, strict=True):
        np.testing.assert_array_equal(one, function(x, k), err_msg=f"{k}")


@pytest.mark.parametrize("bound", [-5, 0, 1, 64, 130, 256, 257, 400])
def test_bounds_on_one_side(bound: int) -> None:
    x, i = values(257), np.arange(257)
    masks = [i < bound, i >= bound, i + bound <= 0, bound - i > 3, (i < bound) & (i > 7), (i < bound) | (i > 200)]

    def function(x: Array, bound: int) -> list[Array]:
        i = np.arange(257)
        tests = [i < bound, i >= bound, i + bound <= 0, bound - i > 3, (i < bound) & (i > 7), (i < bound) | (i > 200)]
        return [np.where(test, x, 0) for test in tests]

    for given in (ml.compile(function), ml.compile(function, static_argnums=1)):
        for one, mask in zip(given(x, bound), masks, strict=True):
            np.testing.assert_array_equal(one, np.where(mask, x, 0))


def test_conditions_on_what_the_loop_carries() -> None:
    """They have no edges that are known before the loop."""

    def packed(x: Array) -> Any:
        out, total, count = np.zeros(len(x)), 0, 0
        for i in range(len(x)):
            total += i
            if total > 3:
                out[count] = x[i]
                count += 1
        return out, total, count

    def halved(x: Array) -> Any:
        best, last = np.zeros(len(x)), 0
        for i in range(len(x)):
            best[i] = x[i] if 2 * last <= i else 0.0
            last = last + 1 if x[i] > 0 else last
        return best, last

    x = values(COLUMNS)
    for function in (packed, halved):
        for found, expected in zip(ml.compile(function, frontend="loops")(x), function(x), strict=True):
            np.testing.assert_array_equal(found, expected)
