"""Images of other sizes and at given points, windows as columns, and further functions of torch, with derivatives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mlirml as ml
from mlirml import random
from mlirml.nn import functional as F

RNG = np.random.default_rng(5)


def same(call: Callable[[Any, Any], Any], *arrays: np.ndarray, rtol: float = 1e-9) -> None:
    """A function of a library of functions and arrays: values and gradients are those of torch, in f64.

    Without torch the gradients are compared with differences, and the values with those of an uncompiled call.
    """
    floats = [i for i, x in enumerate(arrays) if x.dtype.kind == "f"]
    out = np.asarray(call(F, arrays))
    weights = RNG.standard_normal(out.shape)
    np.testing.assert_allclose(ml.compile(lambda *xs: call(F, xs))(*arrays), out, rtol=rtol, atol=1e-12)
    loss = lambda *xs: np.sum(call(F, xs) * weights)  # noqa: E731
    gradients = ml.grad(loss, tuple(floats))(*arrays)
    moves = [RNG.standard_normal(arrays[i].shape) for i in floats]
    slope = sum(np.sum(g * d) for g, d in zip(gradients, moves))
    ends = [[x.copy() for x in arrays] for _ in range(2)]
    for i, d in zip(floats, moves):
        ends[0][i] += 1e-6 * d
        ends[1][i] -= 1e-6 * d
    np.testing.assert_allclose(slope, (loss(*ends[0]) - loss(*ends[1])) / 2e-6, rtol=1e-4, atol=1e-6)
    try:
        import torch
    except ImportError:
        return
    theirs = [torch.tensor(x, requires_grad=x.dtype.kind == "f") for x in arrays]
    found = call(torch.nn.functional, theirs)
    (found * torch.tensor(weights)).sum().backward()
    np.testing.assert_allclose(out, found.detach().numpy(), rtol=rtol, atol=1e-12)
    for gradient, i in zip(gradients, floats):
        np.testing.assert_allclose(gradient, theirs[i].grad.numpy(), rtol=1e-7, atol=1e-9)


ALL = ("nearest", "nearest-exact", "area")
MODES = {1: (*ALL, "linear"), 2: (*ALL, "bilinear", "bicubic"), 3: (*ALL, "trilinear")}


@pytest.mark.parametrize(("rank", "mode"), [(rank, mode) for rank, modes in MODES.items() for mode in modes])
def test_sizes(rank: int, mode: str) -> None:
    x = RNG.standard_normal((2, 3, 5, 4, 3)[: 2 + rank])
    for options in (
        {"size": (7, 3, 4)[:rank]}, {"size": 1}, {"scale_factor": (1.7, 0.6, 2.0)[:rank]},
        {"scale_factor": 1.7, "recompute_scale_factor": True},
    ):  # fmt: skip
        corners = (None, True, False) if "linear" in mode or mode == "bicubic" else (None,)
        for align_corners in corners:
            given = {"mode": mode, "align_corners": align_corners, **options}
            same(lambda lib, xs, given=given: lib.interpolate(xs[0], **given), x)


def test_a_size_twice_as_large_by_hand() -> None:
    x = np.array([[[1.0, 3.0, 7.0]]])
    np.testing.assert_array_equal(F.interpolate(x, 6), [[[1, 1, 3, 3, 7, 7]]])
    np.testing.assert_array_equal(F.interpolate(x, 6, mode="linear"), [[[1, 1.5, 2.5, 4, 6, 7]]])
    np.testing.assert_array_equal(F.interpolate(x, 5, mode="linear", align_corners=True), [[[1, 2, 3, 5, 7]]])
    with pytest.raises(ml.DTypeError, match="must be floats"):
        F.interpolate(np.array([[[1, 2]]]), 4)


@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("mode", ["bilinear", "nearest", "bicubic"])
def test_points(mode: str, padding: str) -> None:
    x, grid = RNG.standard_normal((2, 3, 5, 4)), RNG.uniform(-1.4, 1.4, (2, 6, 3, 2))
    for corners in (False, True):
        same(lambda lib, xs, corners=corners: lib.grid_sample(xs[0], xs[1], mode, padding, corners), x, grid)
    if mode != "bicubic":
        x, grid = RNG.standard_normal((2, 2, 3, 4, 5)), RNG.uniform(-1.4, 1.4, (2, 2, 3, 2, 3))
        same(lambda lib, xs: lib.grid_sample(xs[0], xs[1], mode, padding, False), x, grid)


def test_the_identity_of_grids() -> None:
    x = RNG.standard_normal((2, 3, 4, 5))
    for corners in (False, True):
        grid = F.affine_grid(np.broadcast_to(np.eye(2, 3), (2, 2, 3)), x.shape, corners)
        np.testing.assert_allclose(F.grid_sample(x, grid, align_corners=corners), x)
        theta = RNG.standard_normal((2, 2, 3))
        same(lambda lib, xs, corners=corners: lib.affine_grid(xs[0], [2, 3, 4, 5], corners), theta)
    same(lambda lib, xs: lib.affine_grid(xs[0], [2, 1, 3, 4, 5], False), RNG.standard_normal((2, 3, 4)))


WINDOWS = [
    {"kernel_size": 2}, {"kernel_size": (2, 3), "stride": 2}, {"kernel_size": 3, "padding": 1, "stride": (1, 2)},
    {"kernel_size": 2, "dilation": (2, 1), "padding": (0, 2)},
]  # fmt: skip


@pytest.mark.parametrize("options", WINDOWS)
def test_windows_as_columns_and_back(options: dict[str, Any]) -> None:
    x = RNG.standard_normal((2, 3, 6, 5))
    same(lambda lib, xs: lib.unfold(xs[0], **options), x)
    columns = F.unfold(x, **options)
    same(lambda lib, xs: lib.fold(xs[0], (6, 5), **options), columns)
    y = RNG.standard_normal(columns.shape)  # one is the transpose of the other
    np.testing.assert_allclose(np.sum(columns * y), np.sum(x * F.fold(y, (6, 5), **options)))
    rows = ml.vmap(lambda x: F.unfold(x, **options))(x)
    np.testing.assert_array_equal(rows, columns)


def test_sums_and_products() -> None:
    x, y, w, b = (RNG.standard_normal(shape) for shape in ((2, 3, 4), (2, 3, 5), (6, 4, 5), (6,)))
    same(lambda lib, xs: lib.bilinear(*xs), x, y, w, b)
    np.testing.assert_allclose(F.bilinear(x, y, w, b)[1, 2, 3], x[1, 2] @ w[3] @ y[1, 2] + b[3])
    for size in (1, 2, 3, 9):
        x = RNG.standard_normal((2, 5, 3, 2))
        same(lambda lib, xs, size=size: lib.local_response_norm(xs[0], size, 0.5, 0.75, 2.0), x)
    for p in (1.0, 2.0, 3.0):
        same(lambda lib, xs, p=p: lib.pdist(xs[0], p), RNG.standard_normal((5, 3)))
    x = np.arange(12.0).reshape(1, 6, 2)
    np.testing.assert_array_equal(ml.compile(lambda x: F.channel_shuffle(x, 2))(x)[0, :, 0] / 2, [0, 3, 1, 4, 2, 5])


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
def test_bags(mode: str) -> None:
    weight, rows = RNG.standard_normal((7, 3)), RNG.integers(0, 7, (4, 5))
    same(lambda lib, xs: lib.embedding_bag(xs[1], xs[0], mode=mode), weight, rows)
    same(lambda lib, xs: lib.embedding_bag(xs[1], xs[0], mode=mode, padding_idx=2), weight, rows)
    starts = np.array([0, 3, 3, 11])
    same(lambda lib, xs: lib.embedding_bag(xs[1], xs[0], xs[2], mode=mode), weight, rows.reshape(-1), starts)
    if mode == "sum":
        same(lambda lib, xs: lib.embedding_bag(xs[1], xs[0], mode=mode, per_sample_weights=xs[2]),
             weight, rows, RNG.standard_normal((4, 5)))  # fmt: skip


def test_whole_channels_are_dropped() -> None:
    key = random.key(3)
    for rank in (1, 2, 3):
        x = np.ones((40, 50, *(3,) * rank))
        drop = getattr(F, f"dropout{rank}d")
        out = ml.compile(lambda x, drop=drop: drop(x, 0.25, key=key))(x)
        channels = out.reshape(40, 50, -1)
        assert np.all((channels == channels[..., :1]).all(-1)) and set(np.unique(out)) == {0.0, 1 / 0.75}
        assert abs(np.mean(out) - 1) < 0.05
        np.testing.assert_array_equal(out, drop(x, 0.25, key=key))
        assert drop(x, 0.25, training=False) is x
    x = RNG.standard_normal((300, 400))
    out = F.alpha_dropout(x, 0.3, True, key)
    assert abs(out.mean()) < 0.02 and abs(out.std() - 1) < 0.02
    image = RNG.standard_normal((60, 60, 2, 2))
    whole = F.feature_alpha_dropout(image, 0.3, True, key)
    dropped = np.ptp(whole.reshape(60, 60, -1), axis=-1) == 0
    assert 0.25 < dropped.mean() < 0.35


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda x: F.interpolate(x, 3, mode="bilinear"), "does not fit"),
        (lambda x: F.interpolate(x), "one of size and scale_factor"),
        (lambda x: F.interpolate(x, 0), "from 1 on"),
        (lambda x: F.unfold(x[None], 9), "do not fit"),
        (lambda x: F.fold(x, (4, 4), 2), "must be"),
        (lambda x: F.grid_sample(x[None], x[None]), "are not"),
        (lambda x: F.embedding_bag(x[0], x[0]), "integers"),
        (lambda x: F.channel_shuffle(x, 2), "multiple of 2"),
        (lambda x: F.local_response_norm(x, 0), "size from 1 on"),
    ],
)
def test_arguments_that_do_not_fit_are_refused(call: Callable[[Any], Any], message: str) -> None:
    x = np.ones((2, 3, 5))
    for function in (call, ml.compile(lambda x: call(x))):
        with pytest.raises(ml.ShapeError, match=message):
            function(x)


def test_pairs_of_a_dynamic_number_of_rows_are_refused_by_the_name_of_the_dimension() -> None:
    with pytest.raises(ml.CaptureError, match="the size of dimension `n` is dynamic"):
        ml.compile(lambda x: F.pdist(x), dynamic={"x": ("n", 3)})(np.ones((5, 3)))
