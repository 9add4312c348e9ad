"""Options of torch's functions and layers that few programs use, against plain formulae."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import mlirml as ml
from mlirml import nn, random
from mlirml.nn import functional as F

RNG = np.random.default_rng(5)
KEY = random.key(0)


def both(call: Any, *given: Any) -> list[Any]:
    """The results outside of compiled functions, and of a compiled one."""
    return [call(*given), ml.compile(call)(*given)]


@pytest.mark.parametrize("p", [np.inf, -np.inf, 0, 1, 2, 3, -1])
@pytest.mark.parametrize("dim", [0, -1, (0, 2)])
def test_normalize_takes_every_norm_and_several_dimensions(p: float, dim: Any) -> None:
    x = RNG.standard_normal((3, 4, 2))
    expected = x / np.linalg.vector_norm(x, ord=p, axis=dim, keepdims=True)
    for found in both(lambda x: F.normalize(x, p, dim), x):
        np.testing.assert_allclose(found, expected)


@pytest.mark.parametrize("p", [0, -1, -np.inf])
def test_distances_take_norms_that_are_not_positive(p: float) -> None:
    x, y, z = RNG.standard_normal((3, 5, 4))
    for found in both(lambda x, y: F.pairwise_distance(x, y, p), x, y):
        np.testing.assert_allclose(found, np.linalg.norm(x - y + 1e-6, p, axis=1))
    far, near = (np.linalg.norm(x - other + 1e-6, p, axis=1) for other in (z, y))
    for found in both(lambda *x: F.triplet_margin_loss(*x, p=p, reduction="none"), x, y, z):
        np.testing.assert_allclose(found, np.maximum(near - far + 1, 0))


def test_cosines_of_arrays_of_different_ranks() -> None:
    x, y = RNG.standard_normal((2, 3, 4)), RNG.standard_normal(4)
    expected = (x @ y) / np.linalg.norm(x, axis=-1) / np.linalg.norm(y)
    for dim in (-1, 2):
        for found in both(lambda x, y, dim=dim: F.cosine_similarity(x, y, dim=dim), x, y):
            np.testing.assert_allclose(found, expected)


@pytest.mark.parametrize("training", [False, True])
def test_statistics_of_f32_leave_the_dtype_of_f16(training: bool) -> None:
    x, mean, variance = RNG.standard_normal((4, 3, 5)).astype(np.float16), np.zeros(3, np.float32), np.ones(3, "f4")
    for found in both(lambda x, m, v: F.batch_norm(x, m.copy(), v.copy(), training=training), x, mean, variance):
        assert found.dtype == np.float16
    layer = nn.BatchNorm.init(3, dtype=np.float16)
    state = nn.BatchStatistics(mean, variance)
    for found, after in both(lambda x: layer(x, state, training=training), x):
        assert found.dtype == np.float16
        assert after.mean.dtype == after.variance.dtype == np.float32


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
def test_bags_whose_last_offset_is_the_end(mode: str) -> None:
    weight, rows, ends = RNG.standard_normal((7, 3)), RNG.integers(0, 7, 12), np.array([1, 4, 4, 12])
    expected = [
        getattr(np, mode)(weight[rows[a:b]], axis=0) if b > a else np.zeros(3) for a, b in itertools.pairwise(ends)
    ]
    for found in both(lambda r, w, e: F.embedding_bag(r, w, e, mode, include_last_offset=True), rows, weight, ends):
        np.testing.assert_allclose(found, expected)
    np.testing.assert_allclose(nn.EmbeddingBag(weight, mode, include_last_offset=True)(rows, ends), expected)
    with pytest.raises(ml.ShapeError, match="the offsets must be integers"):
        F.embedding_bag(rows, weight, np.zeros((2, 2), int))


@pytest.mark.parametrize("mask", [None, (4, 5), (6, 4, 5), (1, 4, 5), (2, 1, 4, 5)])
@pytest.mark.parametrize("is_float", [True, False])
def test_heads_share_keys_and_values(mask: Any, is_float: bool) -> None:
    q, k, v = RNG.standard_normal((2, 6, 4, 3)), RNG.standard_normal((2, 2, 5, 3)), RNG.standard_normal((2, 2, 5, 2))
    own = None if mask is None else RNG.standard_normal(mask) if is_float else RNG.random(mask) > 0.3
    expected = F.scaled_dot_product_attention(q, np.repeat(k, 3, 1), np.repeat(v, 3, 1), own)
    for found in both(lambda q, k, v: F.scaled_dot_product_attention(q, k, v, own, enable_gqa=True), q, k, v):
        np.testing.assert_allclose(found, expected)
    with pytest.raises(ml.ShapeError, match="no multiple"):
        F.scaled_dot_product_attention(q[:, :5], k, v, enable_gqa=True)


def test_classes_are_as_many_as_the_largest_says() -> None:
    classes = np.array([[2, 0], [1, 3]])
    np.testing.assert_array_equal(F.one_hot(classes), np.eye(4, dtype=int)[classes])
    np.testing.assert_array_equal(ml.compile(lambda: F.one_hot(classes))(), np.eye(4, dtype=int)[classes])
    with pytest.raises(ml.ShapeError, match="number of classes is not known"):
        ml.compile(lambda x: F.one_hot(x))(classes)
    with pytest.raises(ml.ShapeError, match="number of classes is not known"):
        F.one_hot(classes[:0])


MODES = {"reflect": "reflect", "replicate": "edge", "circular": "wrap"}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("padding", [1, (2, 0), "same", "valid"])
def test_convolutions_pad_by_their_mode(mode: str, padding: Any) -> None:
    layer = nn.Conv2d.init(KEY, 3, 4, (2, 3), padding=padding, dilation=2, dtype=np.float64, padding_mode=mode)
    x = RNG.standard_normal((2, 3, 6, 7))
    widths = {1: (1, 1, 1, 1), (2, 0): (2, 2, 0, 0), "same": (1, 1, 2, 2), "valid": (0, 0, 0, 0)}[padding]
    wide = np.pad(x, ((0, 0), (0, 0), widths[:2], widths[2:]), mode=MODES[mode])
    for found in both(lambda layer, x: layer(x), layer, x):
        np.testing.assert_allclose(found, F.conv2d(wide, layer.weight, layer.bias, dilation=2))


def test_an_unknown_mode_of_padding_is_named() -> None:
    with pytest.raises(ml.ArgumentError, match="padding_mode must be"):
        nn.Conv1d.init(KEY, 1, 1, 3, padding=1, padding_mode="mirror")(np.ones((1, 4), np.float32))


def test_poolings_with_positions_and_divisors() -> None:
    x = RNG.standard_normal((2, 3, 8, 6))
    for layer, expected in (
        (nn.MaxPool2d(2, return_indices=True), F.max_pool2d_with_indices(x, 2)),
        (nn.AdaptiveMaxPool2d((2, 3), return_indices=True), F.adaptive_max_pool2d_with_indices(x, (2, 3))),
        (nn.AvgPool2d(2, divisor_override=3), (F.avg_pool2d(x, 2, divisor_override=3),)),
    ):
        for found in both(lambda x, layer=layer: layer(x), x):
            found = found if isinstance(found, tuple) else (found,)
            for one, other in zip(found, expected, strict=True):
                np.testing.assert_allclose(one, other)


def test_groups_without_a_bias() -> None:
    layer = nn.GroupNorm.init(2, 4, bias=False)
    assert layer.bias is None
    x = RNG.standard_normal((2, 4, 3)).astype(np.float32)
    np.testing.assert_allclose(layer(x), F.group_norm(x, 2), rtol=1e-6)
