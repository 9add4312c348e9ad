"""Views of the bits of arrays, `x.view(dtype)`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mlirml as ml

RNG = np.random.default_rng(0)
DOUBLES = RNG.random(6) - 0.5
SINGLES = DOUBLES.astype(np.float32)
Function = Callable[[Any], Any]


def inverse_root(x: Any) -> Any:
    i = 0x5F3759DF - (x.view(np.int32) >> 1)
    y = i.view(np.float32)
    return y * (1.5 - 0.5 * x * y * y)


def stored(x: Any) -> Any:
    """Stores go through both ways."""
    y = x.copy()
    bits = y.view(np.int64)
    y[0] = 3.0
    first = bits[0] + 0
    bits[1] = 0
    bits[2:4] ^= np.int64(-(2**63))
    return first, y, bits


def combined(x: Any) -> Any:
    total = np.uint64(0)
    bits = x.view(np.uint64)
    for i in range(len(x)):
        total = total ^ bits[i]
    return total


def halved(x: Any) -> Any:
    y = x.copy()
    bits = y.view(np.uint64)
    for i in range(len(x)):
        bits[i] = bits[i] >> np.uint64(1)
    return y


def views_of_views(x: Any) -> Any:
    return x.view("u4").view("f4"), x[::2].view(np.uint32).reshape(3, 1).T, x.view(), x.view(np.uint32) >> 31


def of_numbers(x: Any) -> Any:
    return x[0].view(np.uint32) + np.uint32(1), x + np.float32(2.5).view(np.int32)


def of_bools(x: Any) -> Any:
    mask = x > 0
    return np.sum(mask.view(np.uint8) * np.uint8(3)), mask.view(np.int8)


@pytest.mark.parametrize("target", ["cpu", "reference"])
@pytest.mark.parametrize(
    ("function", "x"),
    [
        (inverse_root, np.abs(SINGLES)), (stored, DOUBLES), (combined, DOUBLES), (halved, DOUBLES),
        (views_of_views, SINGLES), (of_numbers, SINGLES), (of_bools, SINGLES),
        (lambda x: x.view(np.uint16), DOUBLES.astype(np.float16)),
        (lambda x: x.view(np.int8), np.arange(250, 256, dtype=np.uint8)),
    ],
)  # fmt: skip
def test_as_in_numpy(function: Function, x: np.ndarray, target: str) -> None:
    found, expected = ml.compile(function, target=target)(x.copy()), function(x.copy())
    pairs = zip(found, expected, strict=True) if isinstance(expected, tuple) else [(found, expected)]
    for one, other in pairs:
        assert one.dtype == other.dtype
        np.testing.assert_allclose(one, other, rtol=1e-6 if other.dtype == np.float32 else 0)


def test_of_batches_and_in_gradients() -> None:
    x = np.abs(SINGLES).reshape(2, 3)
    np.testing.assert_allclose(ml.vmap(inverse_root)(x), inverse_root(x), rtol=1e-6)
    gradient = ml.grad(lambda x: np.sum(np.where(x.view(np.int64) > 0, x * x, 0)))
    np.testing.assert_allclose(gradient(DOUBLES), np.where(DOUBLES > 0, 2 * DOUBLES, 0))


@pytest.mark.parametrize("dtype", [np.uint8, np.complex128, np.bool_])
def test_other_sizes_are_refused(dtype: Any) -> None:
    with pytest.raises(ml.UnsupportedSyntaxError, match="numbers of the same size"):
        ml.compile(lambda x: x.view(dtype))(DOUBLES)
