"""Scales and shifts of channels that are folded into the weights of convolutions, against the program as written."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mlirml as ml
from mlirml.nn import functional as F

Function = Callable[..., Any]
TEXT = "the scale of channels is folded into the weights"


def arrays(shapes: list[tuple[int, ...]], dtype: Any) -> list[np.ndarray]:
    numbers = np.random.default_rng(5)
    return [numbers.standard_normal(shape).astype(dtype) for shape in shapes]


def algebra_of(compiled: Any) -> str:
    return str(compiled.explain()).partition("algebra of signature")[2]


def normalised(**options: Any) -> Function:
    def block(x: Any, w: Any, b: Any, gain: Any, shift: Any, mean: Any, variance: Any) -> Any:
        y = F.conv2d(x, w, b, padding=w.shape[-1] // 2, **options)
        return np.maximum(F.batch_norm(y, mean, variance**2, gain, shift), 0)

    return block


def written_out(x: Any, w: Any, b: Any, gain: Any, shift: Any, mean: Any, variance: Any) -> Any:
    """A batch norm in the order of its formula, without a bias: a difference first, then a quotient."""
    y = F.conv2d(x, w)
    y = (y - mean[:, None, None]) / np.sqrt(variance**2 + 1e-5)[:, None, None].astype(x.dtype)
    return y * gain[:, None, None] + shift[:, None, None]


def by_numbers(x: Any, w: Any, b: Any, gain: Any, *others: Any) -> Any:
    return (F.conv2d(x, w, b) * 2 - 3) * gain[:, None, None] / 1.5 + others[0][0]


def in_one_dimension(x: Any, w: Any, b: Any, gain: Any, shift: Any, *others: Any) -> Any:
    return F.conv1d(x[:, :, 0], w[:, :, 0], b) * gain[:, None] + shift[:, None]


def dense(x: Any, w: Any, b: Any, gain: Any, shift: Any, *others: Any) -> Any:
    return (x[:, 0].reshape(-1, w.shape[1]) @ w[:, :, 0, 0].T) * gain + shift


def channels(filters: int) -> list[tuple[int, ...]]:
    return [(filters,)] * 5


CASES: dict[str, tuple[Function, list[tuple[int, ...]]]] = {
    "3x3": (normalised(), [(2, 3, 20, 20), (8, 3, 3, 3), *channels(8)]),
    "strided": (normalised(stride=2), [(2, 3, 40, 40), (8, 3, 3, 3), *channels(8)]),
    "1x1": (normalised(), [(2, 3, 20, 20), (8, 3, 1, 1), *channels(8)]),
    "grouped": (normalised(groups=2), [(2, 4, 20, 20), (8, 2, 3, 3), *channels(8)]),
    "depthwise": (normalised(groups=8), [(2, 8, 20, 20), (8, 1, 3, 3), *channels(8)]),
    "written out": (written_out, [(2, 3, 20, 20), (8, 3, 3, 3), *channels(8)]),
    "by numbers": (by_numbers, [(2, 3, 20, 20), (8, 3, 3, 3), *channels(8)]),
    "one dimension": (in_one_dimension, [(2, 3, 1, 400), (8, 3, 1, 5), *channels(8)]),
    "dense": (dense, [(60, 1, 40, 10), (8, 10, 1, 1), *channels(8)]),
}


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", CASES)
def test_folded_scales(name: str, dtype: Any) -> None:
    function, shapes = CASES[name]
    given = arrays(shapes, dtype)
    with ml.config.override(algebra="exact"):
        compiled = ml.compile(function)
        expected = compiled(*[each.astype(np.float64) for each in given])
        assert TEXT not in algebra_of(compiled)
    compiled = ml.compile(function)
    bound = 30 * np.finfo(dtype).eps * np.abs(expected).max()
    np.testing.assert_allclose(compiled(*given), expected, rtol=0, atol=bound)
    assert TEXT in algebra_of(compiled)


def used_twice(x: Any, w: Any, gain: Any) -> Any:
    y = F.conv2d(x, w)
    return y * gain[:, None, None], y


def by_pixels(x: Any, w: Any, gain: Any) -> Any:
    return F.conv2d(x, w) * x[:1, :1, 2:, 2:]


def large_weights(x: Any, w: Any, gain: Any) -> Any:
    return F.conv2d(x[:, :, :4, :4], w) * gain[:, None, None]


def statistics(x: Any, w: Any, gain: Any) -> Any:
    y = F.conv2d(x, w)
    return y * gain[:, None, None] / y.std(axis=(0, 2, 3))[:, None, None]


def symmetric(x: Any, w: Any, gain: Any) -> Any:
    a = x.reshape(-1, 3)
    return (a @ a.T) * a[:, 0]


@pytest.mark.parametrize("function", [used_twice, by_pixels, large_weights, statistics, symmetric])
def test_what_is_not_folded(function: Function) -> None:
    given = arrays([(2, 3, 20, 20), (8, 3, 3, 3), (8,)], np.float64)
    compiled = ml.compile(function)
    results = compiled(*given)
    with ml.config.override(algebra="exact"):
        expected = ml.compile(function)(*given)
    for result, known in zip(*(r if isinstance(r, tuple) else (r,) for r in (results, expected)), strict=True):
        np.testing.assert_allclose(result, known, rtol=1e-10, atol=1e-12)
    assert TEXT not in algebra_of(compiled)


def test_gradients_of_folded_programs() -> None:
    function, shapes = CASES["3x3"]
    given = arrays(shapes, np.float64)
    gradient = ml.grad(lambda *a: np.sum(function(*a) ** 2), argnums=tuple(range(len(given))))
    found = ml.compile(gradient)(*given)
    with ml.config.override(algebra="exact"):
        expected = ml.compile(gradient)(*given)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-9 * np.abs(other).max())


def test_a_computed_bias_is_left_to_the_kernel() -> None:
    """The init of a convolution stays a broadcast, whatever is computed of its bias before."""
    x, w, b, gain = arrays([(2, 3, 20, 20), (8, 3, 3, 3), (8,), (8,)], np.float32)
    with ml.config.override(processor="x86-64-v3"):
        compiled = ml.compile(lambda x, w, b, gain: np.maximum(F.conv2d(x, w, b * gain + 1), 0))
        compiled(x, w, b, gain)
        assert "call @conv_" in compiled.ir("schedule", x, w, b, gain)
