"""Convolutions and poolings of random shapes, strides, dilations, paddings and groups, alone and with what follows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mlirml as ml
from mlirml.nn import functional as F

Function = Callable[..., Any]
FOLLOWING: list[Callable[[Any, Any], Any]] = [
    lambda y, s: y,
    lambda y, s: F.relu(y),
    lambda y, s: y * s.reshape(1, -1, *[1] * (y.ndim - 2)) + 1,
    lambda y, s: y - y.sum(),
]


def draw(seed: int) -> tuple[Function, list[np.ndarray]]:
    """A function of an input, a weight, a bias and a scale of each channel of the result."""
    rng = np.random.default_rng(seed)

    def pick(*choices: int) -> int:
        return int(rng.choice(choices))

    rank, batch, groups = pick(1, 2, 2, 2, 3), pick(1, 1, 3), pick(1, 1, 2, 3, 8)
    channels, filters = pick(1, 2, 3, 16), pick(1, 2, 3, 7, 16, 33)
    kernel, stride = rng.integers(1, 5 if rank < 3 else 4, rank), rng.integers(1, 4, rank)
    dilation, padding = rng.integers(1, 3, rank), rng.integers(0, 3, rank)
    reach = (kernel - 1) * dilation + 1
    size = np.maximum(rng.integers(1, [80, 40, 8][rank - 1], rank), reach)
    following = FOLLOWING[pick(0, 1, 2, 3)]
    window = tuple(tuple(int(v) for v in values) for values in (stride, padding, dilation))
    if pick(0, 0, 1):
        padding = np.minimum(padding, kernel // 2)
        arguments = tuple(int(v) for v in kernel), window[0], tuple(int(v) for v in padding)
        pool = getattr(F, f"{'max' if pick(0, 1) else 'avg'}_pool{rank}d")
        shapes: list[tuple[int, ...]] = [(batch, channels, *size), (1,), (1,), (channels,)]
        function: Function = lambda x, w, b, s: following(pool(x, *arguments), s)  # noqa: E731
    else:
        convolve = getattr(F, f"conv{rank}d")
        shapes = [(batch, groups * channels, *size), (groups * filters, channels, *kernel)]
        shapes += [(groups * filters,), (groups * filters,)]
        bias = bool(pick(0, 1))
        function = lambda x, w, b, s: following(convolve(x, w, b if bias else None, *window, groups), s)  # noqa: E731
    return function, [rng.standard_normal(shape) for shape in shapes]


@pytest.mark.parametrize("seed", range(24))
def test_random(seed: int) -> None:
    function, arrays = draw(seed)
    dtype = [np.float32, np.float32, np.float64][seed % 3]
    given = ml.compile(function)(*(a.astype(dtype) for a in arrays))
    expected = function(*(a.astype(dtype).astype(np.float64) for a in arrays))
    assert (given.dtype, given.shape) == (dtype, expected.shape)
    unit = float(np.finfo(dtype).eps) * np.max(np.abs(expected), initial=1)
    np.testing.assert_allclose(given, expected, rtol=0, atol=32 * unit)
