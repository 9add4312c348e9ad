"""Convolutions and poolings through the CPU pipeline against plain sums: every kernel, form and vector width."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

import numpy as np
import pytest

import mlirml as ml
from mlirml.codegen.cpu.conv.borders import borders_of
from mlirml.codegen.cpu.conv.plan import plan
from mlirml.codegen.cpu.conv.problem import Axis, Problem, Slide
from mlirml.core.dataclass import replace
from mlirml.core.tree import flatten
from mlirml.frontend.capture import capture
from mlirml.frontend.spec import TensorSpec
from mlirml.ir.bindings import operations, parse
from mlirml.nn import functional as F
from mlirml.passes import Pipeline, parse_pipeline
from mlirml.runtime.executable import load_artifact
from mlirml.targets.cpu import codegen, cpu_target
from mlirml.targets.machine import named

Arrays = list[np.ndarray]
LEVELS = {512: "avx512", 256: "avx2", 128: "sse4.1"}


@cache
def pipeline(bits: int) -> Pipeline:
    """The pipeline for one processor, so that every machine chooses the same kernels, with this width for them.

    Scales stay epilogues, and are not folded into weights.
    """
    with ml.config.override(processor="avx512,l2=2M"):
        text = str(cpu_target().pipeline)
    text = re.sub(r"mlirml-lower-conv{[^}]*}", f"mlirml-lower-conv{{processor={LEVELS[bits]}}}", text)
    return parse_pipeline(text.replace("mlirml-fold-scales,", ""))


def check(function: Any, *arrays: np.ndarray, kernel: str | None, bits: int = 512) -> None:
    """Compile with kernels of this width and compare; `kernel` is a part of all their names, None for loops."""
    leaves, tree = flatten((arrays, {}))
    captured = capture(function, tree, [TensorSpec(a.shape, a.dtype) for a in leaves], "f", {})
    module = parse(captured.text)
    lowering = pipeline(bits)
    lowering.run(module, stop_after="schedule")
    names = [str(op.attributes["sym_name"]) for op in operations(module) if op.name == "func.func"]
    kernels = [name for name in names if "conv_" in name and "parallel" not in name]
    assert all(kernel is not None and kernel in name for name in kernels) and bool(kernels) == (kernel is not None), (
        names
    )
    Pipeline(lowering.stages[-1:]).run(module)
    expected = function(*(a.astype(np.float64) if a.dtype.kind == "f" else a for a in arrays))
    results = [(spec.dtype, spec.shape) for spec in captured.outputs]
    (out,) = load_artifact(codegen(module), [(a.dtype, a.shape) for a in arrays], results)(list(arrays))
    assert out.dtype == arrays[0].dtype
    tolerance = 100 * float(np.finfo(out.dtype).eps) if out.dtype.kind == "f" else 0.0
    scale = max(1.0, float(np.max(np.abs(expected), initial=0)))
    np.testing.assert_allclose(out, expected, rtol=0, atol=tolerance * scale)


def random(*shapes: tuple[int, ...], dtype: Any = np.float32) -> Arrays:
    rng = np.random.default_rng(1)
    if np.dtype(dtype).kind == "i":
        return [rng.integers(-9, 9, shape).astype(dtype) for shape in shapes]
    return [rng.standard_normal(shape).astype(dtype) for shape in shapes]


@pytest.mark.parametrize("bits", [128, 256, 512])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32])
def test_lanes_are_filters(bits: int, dtype: Any) -> None:
    x, w, b = random((2, 5, 9, 23), (35, 5, 3, 2), (35,), dtype=dtype)
    check(lambda x, w, b: F.conv2d(x, w, b, padding=1), x, w, b, kernel="conv_filters", bits=bits)
    check(lambda x, w, b: F.conv2d(x, w, b, padding=(0, 3)), x, w, b, kernel="conv_filters", bits=bits)


@pytest.mark.parametrize("bits", [128, 256, 512])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32])
def test_lanes_are_pixels(bits: int, dtype: Any) -> None:
    x, w, b = random((2, 5, 9, 43), (5, 1, 3, 2), (5,), dtype=dtype)
    check(lambda x, w, b: F.conv2d(x, w, b, padding=1, groups=5), x, w, b, kernel="conv_pixels", bits=bits)


FILTERS: dict[str, tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]] = {
    "whole tiles": ((1, 16, 14, 28), (64, 16, 3, 3), {"padding": 1}),
    "rows shorter than a tile": ((1, 8, 7, 7), (32, 8, 3, 3), {"padding": 1}),
    "one pixel": ((3, 8, 3, 3), (32, 8, 3, 3), {}),
    "stride": ((1, 3, 17, 18), (16, 3, 7, 7), {"stride": 2, "padding": 3}),
    "dilation": ((1, 4, 15, 17), (17, 4, 3, 3), {"dilation": (2, 3), "padding": 2}),
    "different padding": ((1, 4, 6, 9), (16, 4, 2, 4), {"padding": "same"}),
    "groups": ((2, 12, 6, 9), (48, 4, 3, 3), {"groups": 3, "padding": 1}),
    "one channel": ((2, 1, 8, 8), (20, 1, 5, 5), {}),
    "fewer filters than lanes": ((1, 4, 8, 40), (9, 4, 3, 3), {}),
    "one dimension": ((2, 6, 40), (24, 6, 5), {"padding": 2, "stride": 2}),
    "three dimensions": ((1, 3, 5, 6, 7), (16, 3, 2, 3, 3), {"padding": (1, 1, 0)}),
    "strided point": ((1, 16, 9, 9), (32, 16, 1, 1), {"stride": 2}),
    "half a vector more": ((2, 5, 9, 18), (24, 5, 3, 3), {"padding": 1}),
    "two vectors and a half, in blocks": ((1, 6, 7, 30), (80, 3, 3, 3), {"groups": 2}),
    "more padding than input": ((2, 4, 2, 3), (16, 4, 6, 7), {"padding": (5, 6)}),
    "padding of strides and dilations": ((1, 3, 9, 5, 12), (17, 3, 3, 4, 3), {
        "padding": (4, 7, 2), "stride": (2, 3, 1), "dilation": (2, 3, 2)}),
    "a long kernel": ((2, 5, 6, 40), (33, 5, 3, 7), {"padding": (2, 6)}),
    "padding on one side": ((1, 5, 6, 20), (32, 5, 3, 6), {"padding": "same", "dilation": (1, 2)}),
    "padding that no window leaves": ((1, 4, 3, 16), (16, 4, 2, 2), {"padding": (4, 1)}),
}  # fmt: skip


@pytest.mark.parametrize("name", FILTERS)
@pytest.mark.parametrize("bias", [False, True])
def test_filter_kernel(name: str, bias: bool) -> None:
    x, w, options = FILTERS[name]
    function = getattr(F, f"conv{len(x) - 2}d")
    arrays = random(x, w, (w[0],))
    check(lambda *a: function(*a, **options), *(arrays if bias else arrays[:2]), kernel="conv_filters")


@pytest.mark.filterwarnings("ignore:invalid value")
@pytest.mark.parametrize("weight", [np.inf, np.nan])
def test_products_of_padding_and_infinite_weights(weight: float) -> None:
    """The taps of padding are computed for blocks of filters with such a weight, whose products are NaN."""
    x, w = random((1, 4, 5, 20), (48, 4, 5, 3))
    w[40, 1, 0, 1] = weight

    def function(x: Any, w: Any) -> Any:
        return np.isnan(F.conv2d(x, w, padding=(4, 1))).astype(np.float32)

    assert function(x, w)[0, 40, 0].all() and not function(x, w)[0, :40].any()
    check(function, x, w, kernel="conv_filters")


@pytest.mark.filterwarnings("ignore:invalid value")
@pytest.mark.parametrize("weight", [np.inf, np.nan])
@pytest.mark.parametrize("size", [5, 40])
def test_products_of_padded_columns_and_infinite_weights(weight: float, size: int) -> None:
    """Each pixel at the border of a row meets the weights of its padding, too, where they are not finite."""
    x, w = random((1, 4, 6, size), (48, 4, 3, 7))
    w[40, 1, 2, 0] = weight

    def function(x: Any, w: Any) -> Any:
        return np.isnan(F.conv2d(x, w, padding=(0, 6))).astype(np.float32)

    assert function(x, w)[0, 40, :, :6].all() and not function(x, w)[0, :40].any()
    check(function, x, w, kernel="conv_filters")


SLIDES: dict[str, tuple[Slide, int]] = {
    "both borders": (Slide(70, 7, 1, 1, 64, 1, 1, 1, 6, 6), 14),
    "a last tile that overlaps": (Slide(31, 5, 1, 1, 27, 1, 1, 1, 4, 4), 9),
    "stride and dilation": (Slide(12, 5, 2, 3, 30, 1, 1, 1, 3, 2), 6),
    "one tile": (Slide(7, 3, 1, 1, 7, 1, 1, 1, 1, 1), 7),
    "no element": (Slide(6, 2, 1, 1, 1, 1, 1, 1, 3, 3), 3),
}


@pytest.mark.parametrize("name", SLIDES)
def test_borders_leave_out_products_with_padding_only(name: str) -> None:
    slide, tile = SLIDES[name]
    row = np.zeros(slide.padded)
    row[slide.low : slide.low + slide.size] = 1
    found = {number: border.met for border in borders_of(slide, tile, 1) for number in border.tiles}
    assert found
    for number in range(-(-slide.count // tile)):
        first = min(number * tile, slide.count - tile)
        for tap in range(slide.kernel):
            elements = row[(first + np.arange(tile)) * slide.stride + tap * slide.dilation]
            assert list(found[number][tap] if number in found else range(tile)) == list(np.flatnonzero(elements))


def test_borders_are_for_rows_with_much_padding_and_small_code() -> None:
    wide = Slide(224, 3, 1, 1, 224, 1, 1, 1, 1, 1)
    assert not borders_of(wide, 14, 2), "too few products meet padding"
    long = Slide(100, 51, 1, 1, 100, 1, 1, 1, 25, 25)
    assert not borders_of(long, 14, 2), "the code would be long"
    assert not borders_of(Slide(62, 3, 1, 1, 64, 1, 1, 1), 14, 2), "there is no padding"


PIXELS: dict[str, tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]] = {
    "depthwise": ((1, 8, 16, 33), (8, 1, 3, 3), {"groups": 8, "padding": 1}),
    "rows shorter than a vector": ((2, 4, 7, 7), (4, 1, 3, 3), {"groups": 4, "padding": 1}),
    "stride": ((1, 4, 15, 66), (4, 1, 3, 3), {"groups": 4, "padding": 1, "stride": 2}),
    "stride of three": ((1, 4, 15, 66), (4, 1, 5, 5), {"groups": 4, "padding": 1, "stride": (1, 3)}),
    "dilation": ((1, 4, 12, 20), (4, 1, 3, 3), {"groups": 4, "dilation": 2}),
    "several filters in a group": ((1, 4, 9, 20), (12, 1, 3, 3), {"groups": 4, "padding": 1}),
    "several channels": ((2, 3, 9, 20), (5, 3, 3, 3), {}),
    "several padded channels": ((2, 3, 9, 20), (5, 3, 3, 3), {"padding": 1}),
    "groups of channels": ((2, 8, 9, 20), (8, 4, 3, 3), {"groups": 2, "padding": 1}),
    "many taps": ((1, 3, 12, 20), (3, 1, 9, 9), {"groups": 3, "padding": 4}),
    "one dimension": ((2, 6, 40), (6, 1, 5), {"groups": 6, "padding": 2, "stride": 2}),
    "three dimensions": ((1, 3, 5, 6, 17), (2, 3, 2, 3, 3), {"padding": (1, 1, 0)}),
    "one row": ((1, 2, 1, 30), (2, 1, 1, 4), {"groups": 2}),
    "one long row": ((1, 1, 1003), (1, 1, 9), {}),
    "one long row, many taps": ((1, 1, 1003), (1, 1, 101), {}),
    "one long row, shared": ((1, 1, 40_003), (1, 1, 80), {}),
    "one long row with a stride": ((1, 2, 1003), (1, 2, 70), {"stride": 2, "dilation": 3}),
    "two rows": ((1, 1, 2, 203), (1, 1, 1, 70), {}),
    "one column": ((1, 2, 30, 1), (2, 1, 4, 1), {"groups": 2}),
}


@pytest.mark.parametrize("name", PIXELS)
@pytest.mark.parametrize("bias", [False, True])
def test_pixel_kernel(name: str, bias: bool) -> None:
    x, w, options = PIXELS[name]
    function = getattr(F, f"conv{len(x) - 2}d")
    arrays = random(x, w, (w[0],))
    check(lambda *a: function(*a, **options), *(arrays if bias else arrays[:2]), kernel="conv_pixels")


@pytest.mark.parametrize("bits", [128, 256, 512])
@pytest.mark.parametrize("name", ["max_pool2d", "avg_pool2d"])
@pytest.mark.parametrize(
    "options", [{"kernel_size": 2}, {"kernel_size": 3, "stride": 2, "padding": 1, "ceil_mode": True}]
)
def test_poolings(name: str, options: dict[str, Any], bits: int) -> None:
    (x,) = random((2, 3, 17, 45))
    check(lambda x: getattr(F, name)(x, **options), x, kernel="conv_pixels", bits=bits)


SEPARABLE: dict[str, tuple[str, tuple[int, ...], dict[str, Any]]] = {
    "apart": ("avg_pool2d", (2, 3, 25, 75), {"kernel_size": 5}),
    "gaps": ("avg_pool2d", (1, 3, 25, 75), {"kernel_size": (7, 4), "stride": 9}),
    "overlapping": ("avg_pool2d", (2, 3, 17, 45), {"kernel_size": 7, "stride": 1, "padding": 3}),
    "more columns than a vector": ("avg_pool2d", (1, 2, 9, 300), {"kernel_size": (4, 70), "stride": (2, 3)}),
    "many rows": ("max_pool2d", (1, 2, 40, 50), {"kernel_size": (21, 5), "stride": 2, "padding": (3, 1)}),
    "dilation": ("max_pool2d", (2, 3, 30, 45), {"kernel_size": 5, "stride": 2, "dilation": 3, "padding": 2}),
    "ceil": ("max_pool2d", (2, 3, 24, 46), {"kernel_size": 5, "stride": 5, "padding": 2, "ceil_mode": True}),
    "three dimensions": ("avg_pool3d", (2, 2, 9, 8, 39), {"kernel_size": 3, "stride": 2, "padding": 1}),
    "many rows in depth": ("max_pool3d", (1, 2, 12, 11, 39), {"kernel_size": (7, 5, 3), "stride": (2, 1, 2)}),
}


@pytest.mark.parametrize("bits", [128, 512])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32])
@pytest.mark.parametrize("name", SEPARABLE)
def test_separable_poolings(name: str, dtype: Any, bits: int) -> None:
    """Rows of a window are combined to a line, then its columns."""
    function, shape, options = SEPARABLE[name]
    (x,) = random(shape, dtype=dtype)
    if dtype is np.int32:
        x = np.arange(x.size, dtype=dtype).reshape(shape) * 7919 % 1000 - 500
        if function.startswith("avg"):
            pytest.skip("means are of floats")
    check(lambda x: getattr(F, function)(x, **options), x, kernel="conv_separable", bits=bits)


def test_separable_poolings_in_parallel() -> None:
    """Each chunk has a line of its own."""
    (x,) = random((4, 16, 130, 130))
    check(lambda x: F.avg_pool2d(x, 9, stride=1, padding=4) * 2, x, kernel="conv_separable")
    check(lambda x: F.avg_pool2d(x, 9), x, kernel="conv_separable")


@pytest.mark.parametrize("size", [6, 16, 33])
def test_pixels_far_apart(size: int) -> None:
    """Windows along rows that do not overlap are reductions of rows."""
    (x,) = random((2, 3, 40 * size + 1))
    rows = x[..., :-1].reshape(2, 3, 40, size)
    np.testing.assert_allclose(ml.compile(lambda x: F.avg_pool1d(x, size))(x), rows.mean(-1), rtol=1e-5, atol=1e-6)
    assert np.array_equal(ml.compile(lambda x: F.max_pool1d(x, size))(x), rows.max(-1))


def test_nan_wins() -> None:
    x = np.full((1, 1, 4, 64), 1, np.float32)
    x[0, 0, ::2, ::7] = np.nan
    check(lambda x: np.isnan(F.max_pool2d(x, 2)).astype(np.float32), x, kernel="conv_pixels")


def test_large_padded_convolutions_in_parallel() -> None:
    x, w, b = random((2, 32, 30, 30), (64, 32, 3, 3), (64,))
    check(lambda x, w, b: F.conv2d(x, w, b, padding=1), x, w, b, kernel="conv_filters")
    x, w, b = random((2, 64, 60, 60), (64, 1, 3, 3), (64,))
    check(lambda x, w, b: F.conv2d(x, w, b, padding=1, groups=64), x, w, b, kernel="conv_pixels")


def test_a_padded_input_that_is_computed() -> None:
    x, w = random((1, 4, 8, 30), (16, 4, 3, 3))
    check(lambda x, w: F.conv2d(F.relu(x), w, padding=1), x, w, kernel="conv_filters")


def test_an_input_that_is_stored_into_after() -> None:
    def function(x: Any, w: Any) -> Any:
        x = x + 1
        y = F.conv2d(x, w, padding=1)
        x[:, :, 0] = 5
        return y + F.conv2d(x, w, padding=1)

    x, w = random((1, 4, 8, 30), (16, 4, 3, 3))
    check(function, x, w, kernel="conv_filters")


def test_equal_convolutions_share_a_kernel() -> None:
    x, w = random((1, 16, 8, 30), (16, 16, 3, 3))
    leaves, tree = flatten(((x, w), {}))

    def function(x: Any, w: Any) -> Any:
        return F.conv2d(x, w) - F.conv2d(x + 1, w - 1)

    module = parse(capture(function, tree, [TensorSpec(a.shape, a.dtype) for a in leaves], "f", {}).text)
    pipeline(512).run(module, stop_after="schedule")
    names = [str(op.attributes["sym_name"]) for op in operations(module) if op.name == "func.func"]
    assert sum("conv_filters" in name and "parallel" not in name for name in names) == 1
    check(function, x, w, kernel="conv_filters")


def fused(function: Any, *arrays: np.ndarray) -> int:
    """How many structured operations and copies are left beside the kernels."""
    leaves, tree = flatten((arrays, {}))
    module = parse(capture(function, tree, [TensorSpec(a.shape, a.dtype) for a in leaves], "f", {}).text)
    Pipeline(pipeline(512).stages[:-1]).run(module, stop_after="offload")
    parse_pipeline("builtin.module(mlirml-bufferize,mlirml-widen-bools,mlirml-lower-conv{processor=avx512})").run(
        module
    )
    return sum(op.name.startswith("linalg.") and bool(op.regions) for op in operations(module))


EPILOGUES: dict[str, tuple[Any, int]] = {
    "relu": (lambda x, w, s: F.relu(F.conv2d(x, w, s, padding=1, groups=len(x[0]) // len(w[0]))), 0),
    "gelu": (lambda x, w, s: F.gelu(F.conv2d(x, w, s, groups=len(x[0]) // len(w[0]))), 0),
    "scale": (
        lambda x, w, s: F.conv2d(x, w, padding=1, groups=len(x[0]) // len(w[0])) * s[:, None, None] + 1,
        0,
    ),
    "shortcut": (
        lambda x, w, s: F.relu(F.conv2d(x, w, padding=1, groups=len(x[0]) // len(w[0])) + x[:, : len(w)]),
        0,
    ),
    "both": (
        lambda x, w, s: (lambda y: y * F.sigmoid(y))(F.conv2d(x, w, s, groups=len(x[0]) // len(w[0]))),
        0,
    ),
    "used twice": (
        lambda x, w, s: (lambda y: (F.relu(y), y[0, 0].sum()))(F.conv2d(x, w, s, groups=len(x[0]) // len(w[0])))[0],
        0,
    ),
    "a row": (lambda x, w, s: F.conv2d(x, w, s, padding=1, groups=len(x[0]) // len(w[0])) + x[0, 0, 0], 1),
}


@pytest.mark.parametrize("name", EPILOGUES)
@pytest.mark.parametrize("each", [1, 19])
def test_epilogues(name: str, each: int) -> None:
    function, left = EPILOGUES[name]
    x, w, s = random((1, 19, 9, 40), (19, each, 3, 3), (19,))
    check(function, x, w, s, kernel="conv_pixels" if each == 1 else "conv_filters")
    assert fused(function, x, w, s) == left


def test_a_result_that_takes_the_place_of_the_input() -> None:
    def function(x: Any, w: Any) -> Any:
        x = x * 2
        return F.relu(F.conv2d(x, w, padding=1) + x)

    for size in ((1, 16, 9, 40), (1, 3, 9, 40)):
        x, w = random(size, (size[1], size[1], 3, 3))
        check(function, x, w, kernel="conv_")


CHAINS: dict[str, Any] = {
    "into the padding of the next": lambda x, w: F.conv2d(F.conv2d(x, w, padding=1), w, padding=1),
    "with relu": lambda x, w: F.conv2d(F.relu(F.conv2d(x, w, padding=1)), w, padding=1),
    "into a pooling": lambda x, w: F.max_pool2d(F.relu(F.conv2d(x, w, padding=1)), 3, 2, 1),
    "pooling first": lambda x, w: F.conv2d(F.max_pool2d(x, 3, 1, 1), w, padding=1),
    "depthwise": lambda x, w: F.conv2d(F.relu6(F.conv2d(x, w[:, :1], padding=1, groups=16)), w[:, 1:2], groups=16),
    "into a slice": lambda x, w: np.concatenate([F.conv2d(x, w, padding=1), F.relu(F.conv2d(x, w, padding=1))], 1),
}


def test_what_follows_may_read_what_is_computed_after() -> None:
    def function(x: Any, w: Any, s: Any) -> Any:
        return F.relu(F.batch_norm(F.conv2d(x, w, padding=1), s, s * s + 1, s, s))

    x, w, s = random((2, 16, 12, 30), (16, 16, 3, 3), (16,))
    check(function, x, w, s, kernel="conv_filters")
    assert fused(function, x, w, s) == 1, "the scale of each channel is left"


def test_an_out_whose_rows_are_not_in_one_piece() -> None:
    def function(x: Any, w: Any) -> Any:
        return F.conv_transpose2d(F.conv2d(x, w, padding=1), w, stride=2)

    x, w = random((1, 16, 7, 9), (16, 16, 3, 3))
    check(function, x, w, kernel="conv_filters")


def test_a_padded_slice_whose_rows_are_not_in_one_piece() -> None:
    def function(x: Any, w: Any) -> Any:
        return F.conv2d(x[:, :, ::2, 1::2], w, padding=1)

    x, w = random((2, 16, 14, 18), (16, 16, 2, 2))
    check(function, x, w, kernel="conv_filters")


def test_a_slice_at_a_dynamic_place() -> None:
    def function(x: Any, w: Any) -> Any:
        def step(i: Any, y: Any) -> Any:
            return y + F.conv2d(np.take(x, [i], 0), w, padding=1)

        return ml.fori_loop(0, len(x), step, np.zeros_like(x[:1]))

    x, w = random((3, 16, 7, 20), (16, 16, 3, 3))
    expected = sum(F.conv2d(x[i : i + 1].astype(np.float64), w, padding=1) for i in range(3))
    np.testing.assert_allclose(ml.compile(function)(x, w), expected, atol=1e-4)


@pytest.mark.parametrize("name", CHAINS)
def test_chains(name: str) -> None:
    x, w = random((2, 16, 12, 30), (16, 16, 3, 3))
    check(CHAINS[name], x, w, kernel="conv_")
    assert fused(CHAINS[name], x, w) <= 1, "nothing but the fill of a padded buffer is left"


@pytest.mark.parametrize("mode", ["full", "same", "valid"])
def test_a_convolution_of_vectors_is_one_kernel(mode: str) -> None:
    x, v = random((5000,), (101,))
    function = ml.compile(lambda x, v: np.convolve(x, v, mode))
    with ml.config.override(processor="avx512,l2=2M"):
        text = function.ir("schedule", x, v)
    assert len(re.findall(r"call @conv_pixels_f32_1x1x1x\d+x1x1x1x101\(", text)) == 1
    np.testing.assert_allclose(function(x, v), np.convolve(x, v, mode), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("first", [np.float32, np.int8, np.bool_, np.complex64])
@pytest.mark.parametrize("second", [np.float32, np.int64, np.bool_, np.float16])
def test_vectors_of_two_dtypes(first: Any, second: Any) -> None:
    rng = np.random.default_rng(0)
    x, v = rng.integers(-2, 3, 70).astype(first), rng.integers(-2, 3, 20).astype(second)
    expected = np.convolve(x, v)
    found = ml.compile(np.convolve)(x, v)
    assert found.dtype == expected.dtype
    np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("padding", [0, 2])
def test_a_mean_over_one_window_is_a_reduction(padding: int) -> None:
    """A window as large as the padded input is not slid: its sum is that of `np.sum`."""
    (x,) = random((2, 3, 17, 45))
    size = (17 + 2 * padding, 45 + 2 * padding)
    check(lambda x: F.avg_pool2d(x, size, padding=padding), x, kernel=None)
    check(lambda x: F.adaptive_avg_pool2d(x, 1), x, kernel=None)
    check(lambda x: F.avg_pool2d(x, (17, 44), stride=1), x, kernel="conv_separable")


@pytest.mark.parametrize(
    ("size", "channels", "l2", "expected"),
    [(64, 64, "512K", True), (64, 64, "4M", False), (14, 256, "512K", False), (64, 8, "512K", False)],
)
def test_rows_are_the_outer_loop_where_the_input_is_what_the_cache_does_not_hold(
    size: int, channels: int, l2: str, expected: bool
) -> None:
    axes = [Axis(channels, 0, 0, 0)] * 2
    row = Slide(size + 2, 3, 1, 1, size, size, 3, size + 2, 2, 2)
    face, column = Slide(1, 1, 1, 1, 1, 0, 0, 0), replace(row, x=1, w=1, out=1)
    problem = Problem("f32", "addf", True, (Axis(2, 1, 0, 1),), *axes, (face, row, column))
    assert plan(problem, named(f"avx2,l2={l2}")).rows_first == expected


@pytest.mark.parametrize("l2", ["512K", "4M"])
def test_both_orders_of_loops(l2: str) -> None:
    x, w = random((2, 72, 40, 40), (72, 72, 3, 3))
    with ml.config.override(processor=f"avx2,l2={l2}", threads=1):
        found = ml.compile(lambda x, w: F.conv2d(x, w, padding=2))(x, w)
    expected = F.conv2d(x.astype(np.float64), w.astype(np.float64), padding=2)
    np.testing.assert_allclose(found, expected, rtol=0, atol=2e-3)


def test_known_parts_of_vectors_are_stored_without_masks() -> None:
    """A masked store of AVX2 takes some 12 cycles on AMD's processors."""
    x, w = random((2, 16, 40, 40), (16, 16, 3, 3))
    with ml.config.override(processor="avx2,l2=512K", threads=1):
        text = ml.compile(lambda x, w: F.conv2d(x, w, padding=2)).lower(x, w).emit("asm")
    stores = [line for line in text.splitlines() if "vmaskmov" in line and line.rstrip().endswith(")")]
    assert "vfmadd" in text and stores == []


CHUNKED: dict[str, tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]] = {
    "border and interior tiles": ((2, 70, 20, 34), (24, 70, 3, 3), {"padding": 2}),
    "chunks of other sizes at the end": ((1, 131, 9, 30), (16, 131, 3, 3), {}),
    "missing filters": ((2, 110, 12, 26), (37, 110, 3, 4), {"padding": (1, 2), "stride": (2, 1), "dilation": (1, 2)}),
    "flat rows": ((1, 160, 40, 2), (16, 160, 3, 3), {"padding": 1}),
    "groups": ((2, 144, 10, 22), (40, 72, 3, 3), {"padding": 1, "groups": 2}),
    "one dimension": ((2, 256, 500), (48, 256, 3), {"padding": 2}),
    "three dimensions": ((1, 48, 5, 12, 21), (24, 48, 3, 3, 3), {"padding": 2}),
}  # fmt: skip


@pytest.mark.parametrize("name", CHUNKED)
@pytest.mark.parametrize("bits", [256, 512])
def test_chunks_of_channels_share_weights_among_tiles(name: str, bits: int) -> None:
    shape, kernel, options = CHUNKED[name]
    function = getattr(F, f"conv{len(shape) - 2}d")
    x, w, b = random(shape, kernel, (kernel[0],))
    with ml.config.override(processor=f"{LEVELS[bits]},l2=1M"):
        text = ml.compile(lambda x, w: function(x, w, **options)).lower(x, w).emit("llvm")
    assert re.search(r"alloca .*float", text)
    check(lambda x, w, b: np.maximum(function(x, w, b, **options), 0.1), x, w, b, kernel="conv_filters", bits=bits)


def test_infinite_weights_in_chunks_meet_padding() -> None:
    x, w = random((1, 70, 12, 34), (24, 70, 3, 3))
    w[5, 66, 1, 1], w[7, 3, 0, 0] = np.inf, np.nan
    with ml.config.override(processor="avx2,l2=512K", threads=1):
        found = ml.compile(lambda x, w: F.conv2d(x, w, padding=2))(x, w)
    with np.errstate(invalid="ignore"):
        expected = F.conv2d(x.astype(np.float64), w.astype(np.float64), padding=2)
    np.testing.assert_array_equal(np.isfinite(found), np.isfinite(expected))
    np.testing.assert_array_equal(np.isnan(found), np.isnan(expected))


@pytest.mark.parametrize(
    ("size", "channels", "filters", "chunk", "tiles"),
    [(32, 48, 24, 16, 5), (32, 12, 24, 0, 9), (32, 128, 128, 26, 30), (14, 256, 256, 18, 11)],
)
def test_channels_are_in_chunks_where_their_weights_exceed_the_first_cache(
    size: int, channels: int, filters: int, chunk: int, tiles: int
) -> None:
    row = Slide(size + 2, 3, 1, 1, size, size, 3, size + 2, 2, 2)
    column = replace(row, x=1, w=1, out=1)
    axes = Axis(filters, 0, 0, 0), Axis(channels, 0, 0, 0)
    problem = Problem("f32", "addf", True, (Axis(1, 1, 0, 1),), *axes, (Slide(1, 1, 1, 1, 1, 0, 0, 0), row, column))
    found = plan(problem, named("avx2,l2=512K"))
    assert (found.chunk, found.tiles) == (chunk, tiles)


def test_windows_on_the_diagonal_are_no_convolution() -> None:
    def function(x: Any, y: Any) -> Any:
        for i in range(1, 4):
            y[i] = np.max(x[i, i::-1])
        return y

    (x,) = random((5, 5))
    np.testing.assert_array_equal(ml.compile(function)(x, np.zeros(5)), function(x, np.zeros(5)))


@pytest.mark.parametrize(("channels", "filters", "size"), [(64, 64, 16), (512, 64, 4), (512, 64, 16), (256, 8, 32)])
def test_sums_of_many_channels(channels: int, filters: int, size: int) -> None:
    """Channels are summed in chunks: the error is that of a few hundred terms."""
    rng = np.random.default_rng(0)
    x = rng.random((1, channels, size, size)).astype(np.float32)
    w = rng.standard_normal((filters, channels, 3, 3)).astype(np.float32)
    compiled = ml.compile(lambda x, w: F.conv2d(x, w, padding=1))
    expected = compiled(x.astype(np.float64), w.astype(np.float64))
    assert np.max(np.abs(compiled(x, w) - expected)) < 1.5e-6 * np.max(np.abs(expected))
