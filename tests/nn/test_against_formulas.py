"""What `mlirml.nn.functional` means on real arrays, against definitions written as plainly as possible."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest

import mlirml as ml
from mlirml.nn import functional as F

RNG = np.random.default_rng(7)


def plain_convolution(
    x: np.ndarray,
    w: np.ndarray,
    stride: tuple[int, ...],
    padding: tuple[int, ...],
    dilation: tuple[int, ...],
    groups: int,
) -> np.ndarray:
    """The sum over channels and taps at each place, one element at a time."""
    x = np.pad(x, [(0, 0), (0, 0), *((p, p) for p in padding)])
    kernel = w.shape[2:]
    sizes = [(n - d * (k - 1) - 1) // s + 1 for n, k, s, d in zip(x.shape[2:], kernel, stride, dilation)]
    out = np.zeros((x.shape[0], w.shape[0], *sizes))
    each = w.shape[0] // groups
    for n, f, *place in itertools.product(*map(range, out.shape)):
        for c, *tap in itertools.product(*map(range, w.shape[1:])):
            at = [o * s + t * d for o, s, t, d in zip(place, stride, tap, dilation)]
            out[(n, f, *place)] += w[(f, c, *tap)] * x[(n, f // each * w.shape[1] + c, *at)]
    return out


@pytest.mark.parametrize("rank", [1, 2, 3])
@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize(("stride", "padding", "dilation"), [(1, 0, 1), (2, 1, 1), (1, 2, 2), (3, 1, 1)])
def test_convolutions(rank: int, groups: int, stride: int, padding: int, dilation: int) -> None:
    sizes, kernel = (7, 6, 5)[:rank], (3, 2, 2)[:rank]
    x, w = RNG.standard_normal((2, 4, *sizes)), RNG.standard_normal((4, 4 // groups, *kernel))
    given = getattr(F, f"conv{rank}d")(x, w, None, stride, padding, dilation, groups)
    expected = plain_convolution(x, w, (stride,) * rank, (padding,) * rank, (dilation,) * rank, groups)
    np.testing.assert_allclose(given, expected, rtol=1e-12, atol=1e-12)


def test_padding_by_name() -> None:
    x, w = RNG.standard_normal((1, 2, 6, 7)), RNG.standard_normal((3, 2, 4, 3))
    whole = F.conv2d(np.pad(x, [(0, 0), (0, 0), (1, 2), (1, 1)]), w)
    np.testing.assert_array_equal(F.conv2d(x, w, padding="same"), whole)
    np.testing.assert_array_equal(F.conv2d(x, w, padding="valid"), F.conv2d(x, w))


@pytest.mark.parametrize(
    ("stride", "padding", "more", "dilation"), [(1, 0, 0, 1), (2, 1, 1, 1), (3, 2, 0, 2), (2, 0, 1, 2)]
)
def test_transposed_convolution_is_the_adjoint(stride: int, padding: int, more: int, dilation: int) -> None:
    w, y = RNG.standard_normal((4, 3, 3, 2)), RNG.standard_normal((2, 4, 4, 5))
    x = F.conv_transpose2d(y, w, stride=stride, padding=padding, output_padding=more, dilation=dilation)
    probe = RNG.standard_normal(x.shape)
    forward = F.conv2d(probe, w, stride=stride, padding=padding, dilation=dilation)
    assert forward.shape == y.shape
    np.testing.assert_allclose(np.sum(forward * y), np.sum(probe * x), rtol=1e-10)


def test_poolings() -> None:
    x = RNG.standard_normal((1, 1, 5, 6))
    first = F.max_pool2d(x, 3, stride=2, padding=1)
    assert first.shape == (1, 1, 3, 3)
    for i, j in itertools.product(range(3), range(3)):
        cell = x[0, 0, max(2 * i - 1, 0) : 2 * i + 2, max(2 * j - 1, 0) : 2 * j + 2]
        assert first[0, 0, i, j] == cell.max()
        for include, count in ((True, 9), (False, cell.size)):
            mean = F.avg_pool2d(x, 3, stride=2, padding=1, count_include_pad=include)[0, 0, i, j]
            np.testing.assert_allclose(mean, cell.sum() / count)


def test_windows_beyond_the_end() -> None:
    x = np.arange(1.0, 6.0).reshape(1, 1, 5)
    assert F.max_pool1d(x, 2, ceil_mode=True).tolist() == [[[2, 4, 5]]]
    assert F.avg_pool1d(x, 2, ceil_mode=True).tolist() == [[[1.5, 3.5, 5]]]
    assert F.avg_pool1d(x, 2, padding=1, ceil_mode=True).tolist() == [[[0.5, 2.5, 4.5]]]


def test_nan_wins_in_max_pool() -> None:
    assert np.isnan(F.max_pool1d(np.array([[1.0, np.nan, 2.0, 3.0]]), 2)).tolist() == [[True, False]]


def test_adaptive_pooling() -> None:
    x = RNG.standard_normal((1, 7, 5))
    given = F.adaptive_avg_pool2d(x, (3, 2))
    np.testing.assert_allclose(given[0, 1, 1], x[0, 2:5, 2:5].mean())
    np.testing.assert_allclose(F.adaptive_avg_pool2d(x, 1)[0, 0, 0], x.mean())
    assert F.adaptive_avg_pool2d(x, (None, 1)).shape == (1, 7, 1)


SCALARS: dict[str, Any] = {
    "relu": lambda x: max(x, 0),
    "relu6": lambda x: min(max(x, 0), 6),
    "hardtanh": lambda x: min(max(x, -1), 1),
    "leaky_relu": lambda x: x if x > 0 else 0.01 * x,
    "elu": lambda x: x if x > 0 else math.expm1(x),
    "selu": lambda x: 1.0507009873554805 * (x if x > 0 else 1.6732632423543772 * math.expm1(x)),
    "sigmoid": lambda x: 1 / (1 + math.exp(-x)),
    "silu": lambda x: x / (1 + math.exp(-x)),
    "softplus": lambda x: math.log1p(math.exp(x)) if x <= 20 else x,
    "log_sigmoid": lambda x: -math.log1p(math.exp(-x)),
    "mish": lambda x: x * math.tanh(math.log1p(math.exp(x))),
    "hardsigmoid": lambda x: min(max(x / 6 + 0.5, 0), 1),
    "hardswish": lambda x: 0 if x <= -3 else x if x >= 3 else x * (x + 3) / 6,
    "hardshrink": lambda x: x if abs(x) > 0.5 else 0,
    "softshrink": lambda x: math.copysign(max(abs(x) - 0.5, 0), x),
    "softsign": lambda x: x / (1 + abs(x)),
    "celu": lambda x: max(0, x) + min(0, math.expm1(min(x, 0))),
    "gelu": lambda x: x * 0.5 * math.erfc(-x / math.sqrt(2)),
}


@pytest.mark.parametrize("name", SCALARS)
def test_activations(name: str) -> None:
    x = np.linspace(-30, 30, 601)
    expected = [SCALARS[name](v) for v in x]
    np.testing.assert_allclose(getattr(F, name)(x), expected, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("name", SCALARS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_activations_do_not_overflow(name: str, dtype: Any) -> None:
    x = np.array([-1000, -100, 0, 100, 1000], dtype)
    result = getattr(F, name)(x)
    assert result.dtype == dtype and np.isfinite(result).all()


def test_softmax_and_its_logarithm() -> None:
    x = np.array([[1000.0, 0.0, -1000.0], [1.0, 2.0, 3.0]])
    np.testing.assert_allclose(F.softmax(x).sum(-1), 1)
    assert F.log_softmax(x)[0].tolist() == [0, -1000, -2000]
    np.testing.assert_allclose(F.log_softmax(x)[1], np.log(F.softmax(x)[1]))
    np.testing.assert_allclose(F.softmax(x, 0)[:, 0], [1, 0])


def test_logsumexp_of_infinities() -> None:
    x = np.array([[-np.inf, -np.inf], [np.inf, 0.0], [1000.0, 1000.0]])
    assert F.logsumexp(x).tolist() == [-np.inf, np.inf, 1000 + math.log(2)]


def test_normalizations() -> None:
    x, w, b = RNG.standard_normal((2, 6, 4)), RNG.standard_normal(4), RNG.standard_normal(4)
    centred = x - x.mean(-1, keepdims=True)
    expected = centred / np.sqrt(x.var(-1, keepdims=True) + 1e-5) * w + b
    np.testing.assert_allclose(F.layer_norm(x, 4, w, b), expected)
    np.testing.assert_allclose(F.rms_norm(x, 4, w, 0.0), x / np.sqrt((x**2).mean(-1, keepdims=True)) * w)
    parts = [
        (p - p.mean((1, 2), keepdims=True)) / np.sqrt(p.var((1, 2), keepdims=True) + 1e-5) for p in np.split(x, 3, 1)
    ]
    np.testing.assert_allclose(F.group_norm(x, 3), np.concatenate(parts, 1))
    mean, variance = x.mean((0, 2)), x.var((0, 2))
    expected = (x - mean[:, None]) / np.sqrt(variance[:, None] + 1e-5)
    np.testing.assert_allclose(F.batch_norm(x, mean, variance), expected)


def test_attention_without_keys_or_queries() -> None:
    some, none = np.ones((1, 3, 4), np.float32), np.ones((1, 0, 4), np.float32)
    for run in (F.scaled_dot_product_attention, ml.compile(lambda *a: F.scaled_dot_product_attention(*a))):
        np.testing.assert_array_equal(run(some, none, none), np.zeros((1, 3, 4)))
        assert run(none, some, some).shape == run(none, none, none).shape == (1, 0, 4)


def test_attention() -> None:
    q, k, v = (RNG.standard_normal((3, 4)) for _ in range(3))
    scores = q @ k.T / 2
    scores[np.triu_indices(3, 1)] = -np.inf
    expected = F.softmax(scores) @ v
    np.testing.assert_allclose(F.scaled_dot_product_attention(q, k, v, is_causal=True), expected)
    np.testing.assert_allclose(F.scaled_dot_product_attention(q, k, v, np.tri(3, dtype=bool)), expected)


def test_losses() -> None:
    x, target = RNG.standard_normal((4, 3)), np.array([0, 2, 1, 1])
    log = F.log_softmax(x)
    np.testing.assert_allclose(F.cross_entropy(x, target), -log[np.arange(4), target].mean())
    np.testing.assert_allclose(F.cross_entropy(x, F.one_hot(target, 3).astype(float)), F.cross_entropy(x, target))
    smooth = F.cross_entropy(x, target, reduction="none", label_smoothing=0.3)
    np.testing.assert_allclose(smooth, -0.7 * log[np.arange(4), target] - 0.1 * log.sum(1))
    np.testing.assert_allclose(F.mse_loss(x, np.zeros((4, 3))), (x**2).mean())


def test_small_things() -> None:
    assert F.one_hot(np.array([2, 0]), 3).tolist() == [[0, 0, 1], [1, 0, 0]]
    assert F.embedding(np.array([[1], [0]]), np.array([[1.0, 2.0], [3.0, 4.0]])).tolist() == [[[3, 4]], [[1, 2]]]
    x = RNG.standard_normal(3)
    np.testing.assert_array_equal(F.dropout(x, training=False), x)
    np.testing.assert_allclose(F.linear(x, RNG.standard_normal((2, 3)), np.zeros(2)).shape, (2,))


def test_half_precision_is_computed_in_single() -> None:
    x = np.full(4096, 1 / 64, np.float16)
    assert F.softmax(x)[0] == np.float16(1 / 4096)
    assert F.conv1d(x[None], np.ones((1, 1, 4096), np.float16))[0, 0] == 64
