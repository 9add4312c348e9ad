"""Transposed convolutions of random shapes: results and derivatives, and what becomes of them."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import mlirml as ml
from mlirml.nn import functional as F

OPTIONS = ("stride", "padding", "output_padding", "dilation")


def draw(seed: int) -> tuple[int, list[np.ndarray], dict[str, Any]]:
    """A rank, an input, a weight and a bias or None, and options that leave something of the input."""
    rng = np.random.default_rng(seed)
    while True:
        rank, groups = int(rng.choice([1, 2, 2, 3])), int(rng.choice([1, 1, 2, 3]))
        size, kernel, stride, dilation = (rng.integers(1, most, rank) for most in (7, 6, 6 if rank == 1 else 5, 4))
        more, padding = rng.integers(0, np.maximum(stride, dilation)), rng.integers(0, 6, rank)
        if min((size - 1) * stride - 2 * padding + dilation * (kernel - 1) + more + 1) >= 1:
            break
    channels, filters = groups * int(rng.integers(1, 4)), int(rng.integers(1, 4))
    shapes = [(int(rng.integers(1, 3)), channels, *size), (channels, filters, *kernel)]
    arrays = [rng.standard_normal(shape) for shape in shapes]
    if seed % 2:
        arrays.append(rng.standard_normal(groups * filters))
    values = [tuple(map(int, each)) for each in (stride, padding, more, dilation)]
    return rank, arrays, {**dict(zip(OPTIONS, values)), "groups": groups}


def check(rank: int, arrays: list[np.ndarray], options: dict[str, Any]) -> None:
    """The compiled function against the adjoint of the convolution, and its derivatives against the same."""
    transposed, convolve = getattr(F, f"conv_transpose{rank}d"), getattr(F, f"conv{rank}d")
    forward = {name: options[name] for name in ("stride", "padding", "dilation", "groups")}
    found = ml.compile(lambda *given: transposed(*given, **options))(*arrays)
    np.testing.assert_allclose(found, transposed(*arrays, **options), rtol=1e-11, atol=1e-11)
    x, w = arrays[:2]
    bias = arrays[2].reshape(-1, *[1] * rank) if len(arrays) > 2 else 0
    probe = np.random.default_rng(0).standard_normal(found.shape)
    back = convolve(probe, w, **forward)
    room: Any = (..., *(slice(n) for n in x.shape[2:]))
    back = back[room]  # output_padding may make room for more windows
    assert np.sum(back * x) == pytest.approx(np.sum((found - bias) * probe), rel=1e-9, abs=1e-9)
    pull = ml.compile(lambda *given: ml.vjp(lambda *inner: transposed(*inner, **options), *given)[1](probe))
    slopes = pull(*arrays)
    np.testing.assert_allclose(slopes[0], back, rtol=1e-9, atol=1e-9)
    assert np.sum(slopes[1] * w) == pytest.approx(np.sum(back * x), rel=1e-9, abs=1e-9)
    direction = np.random.default_rng(1).standard_normal(w.shape)  # linear in the weight
    moved = transposed(x, direction, **options)
    assert np.sum(slopes[1] * direction) == pytest.approx(np.sum(moved * probe), rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("seed", range(24))
def test_random(seed: int) -> None:
    check(*draw(seed))


@pytest.mark.parametrize(
    ("rank", "size", "kernel", "options"),
    [(1, (7,), (40,), {"stride": 20, "padding": 11}), (1, (5,), (3,), {"stride": 19, "output_padding": 4}),
     (2, (3, 4), (10, 5), {"stride": 5, "padding": (7, 1), "groups": 2}), (2, (9, 2), (8, 8), {"stride": 8}),
     (3, (2, 2, 3), (3, 4, 6), {"stride": 3, "padding": 1, "output_padding": 1})],
)  # fmt: skip
def test_large_strides_are_one_convolution(rank: int, size: Any, kernel: Any, options: dict[str, Any]) -> None:
    rng = np.random.default_rng(5)
    shapes: list[tuple[int, ...]] = [(2, 4, *size), (4, 3, *kernel), (3 * options.get("groups", 1),)]
    arrays = [rng.standard_normal(shape) for shape in shapes]
    every = {name: 0 if "padding" in name else 1 for name in OPTIONS} | {"groups": 1} | options
    check(rank, arrays, every)
    text = ml.trace(lambda x, w, b: getattr(F, f"conv_transpose{rank}d")(x, w, b, **every), *arrays).as_text()
    assert len(re.findall(r"linalg\.(?:conv_|contract|matmul|batch_matmul)|\"reduction\"\]", text)) == 1


def test_each_remainder_is_a_convolution_without_zeros() -> None:
    """3 taps by stride 2 are 2 and 1: of 9 products an input element has 4, 2, 2 and 1."""
    x, w = np.ones((1, 4, 6, 6), np.float32), np.ones((4, 5, 3, 3), np.float32)
    text = ml.trace(lambda x, w: F.conv_transpose2d(x, w, stride=2, padding=1, output_padding=1), x, w).as_text()
    assert text.count("linalg.conv_2d_nchw_fchw") == 3 and text.count("5x4x2x2xf32>, tensor") == 0
    kernels = [f"tensor<5x4x{n}xf32>" for n in ("2x2", "2x1", "1x2", "1x1")]
    assert all(kernel in text for kernel in kernels)


def test_parts_with_one_bias_are_kernels() -> None:
    """The sums of the parts, equal in shape, start with one array of biases: each kernel reads the bias itself."""
    rng = np.random.default_rng(0)
    x, w, b = (rng.standard_normal(shape).astype(np.float32) for shape in ((2, 8, 9, 20), (8, 16, 4, 4), 16))
    function = ml.compile(lambda x, w, b: F.conv_transpose2d(x, w, b, stride=2))
    with ml.config.override(processor="avx512,l2=1M"):
        text = function.ir("schedule", x, w, b)
    assert len(re.findall(r"call @conv_filters_f32_16x1x10x21x8x1x2x2\w*\(", text)) == 4
    exact = F.conv_transpose2d(*(a.astype(np.float64) for a in (x, w, b)), stride=2)
    np.testing.assert_allclose(function(x, w, b), exact, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_against_torch(rank: int) -> None:
    torch = pytest.importorskip("torch")
    for seed in range(40):
        found, arrays, options = draw(1000 + seed)
        if found != rank:
            continue
        expected = getattr(torch.nn.functional, f"conv_transpose{rank}d")(*map(torch.tensor, arrays), **options)
        given = getattr(F, f"conv_transpose{rank}d")(*arrays, **options)
        np.testing.assert_allclose(given, expected, rtol=1e-9, atol=1e-9)


def test_errors() -> None:
    x, w = np.ones((2, 4, 5)), np.ones((4, 3, 3))
    with pytest.raises(
        ml.ShapeError, match=r"conv_transpose1d: the weight must have 3 dimensions \[C, F / groups, K\]"
    ):
        F.conv_transpose1d(x, w[None])
    with pytest.raises(ml.ShapeError, match=r"the weight f64\[3,4,3\] has 3 channels, the input f64\[2,4,5\] has 4"):
        F.conv_transpose1d(x, w.swapaxes(0, 1))
    with pytest.raises(ml.ShapeError, match=r"the padding leaves nothing of the input f64\[2,4,5\]"):
        F.conv_transpose1d(x, w, padding=4)
    with pytest.raises(ml.ShapeError, match="output_padding must be smaller than stride or dilation, got 2"):
        F.conv_transpose1d(x, w, stride=2, output_padding=2)
    with pytest.raises(ml.ShapeError, match=r"conv_transpose3d: the input must be \[N, C, D, H, W\]"):
        F.conv_transpose3d(x, w)
    with pytest.raises(ml.ShapeError, match="one element for each of the 3 filters"):
        F.conv_transpose1d(x, w, np.ones(4))
