"""Kernels of tiles on a device: products and attention of small floats, with what is fused into them."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import mlirml as ml
from mlirml.analysis import row_tiles
from tests.codegen.tile import test_attention as attentions
from tests.codegen.tile import test_contract as products
from tests.codegen.tile import test_rows as rows
from tests.targets.drivers import needs_cuda

NEEDS_CUDA = pytest.param("cuda", marks=needs_cuda)
on_cuda: Any = pytest.mark.parametrize("target", [NEEDS_CUDA])


def larger(shapes: list[tuple[int, ...]]) -> list[tuple[int, ...]]:
    """Shapes of which some tiles are whole and some are not."""
    return [tuple(size if size < 8 else 5 * size for size in shape) for shape in shapes]


def check(function: Any, arrays: list[np.ndarray], target: str, tolerance: float) -> None:
    wide = [array if array.dtype == bool else array.astype(np.float64) for array in arrays]
    with np.errstate(all="ignore"):
        expected = function(*wide)
    found = np.asarray(ml.compile(function, target=target)(*arrays)).astype(np.float64)
    scale = max(1, np.nanmax(np.abs(expected)))
    np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance * scale)


@on_cuda
@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16], ids=["f16", "bf16"])
@pytest.mark.parametrize("form", [form for form in products.FORMS if form != "slices"])
def test_products(form: str, dtype: Any, target: str) -> None:
    function, shapes = products.FORMS[form]
    check(function, products.draw(larger(shapes), dtype), target, 4e-3 if dtype == np.float16 else 4e-2)


@on_cuda
@pytest.mark.parametrize("form", ["nn", "nt", "tn", "batch", "bias and relu"])
def test_rounded_factors(form: str, target: str) -> None:
    function, shapes = products.FORMS[form]
    with ml.config.override(matmul_precision="tf32"):
        check(function, products.draw(larger(shapes), np.float32), target, 2e-3)


@on_cuda
def test_integers(target: str) -> None:
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-128, 128, shape, np.int8) for shape in ((200, 528), (528, 240)))
    found = ml.compile(lambda a, b: a.astype(np.int32) @ b.astype(np.int32), target=target)(a, b)
    np.testing.assert_array_equal(found, a.astype(np.int32) @ b.astype(np.int32))


@on_cuda
def test_numbers_are_passed(target: str) -> None:
    a, b = products.draw([(160, 256), (256, 320)], np.float16)
    found = ml.compile(lambda a, b, s: np.maximum(a @ b * s, 0), target=target)(a, b, np.float16(0.5))
    expected = np.maximum(a.astype(np.float64) @ b.astype(np.float64) * 0.5, 0)
    np.testing.assert_allclose(found, expected, atol=4e-3 * np.abs(expected).max())


@on_cuda
@pytest.mark.parametrize("case", attentions.CASES)
def test_attention(case: str, target: str) -> None:
    function, shapes = attentions.CASES[case]
    check(function, attentions.draw(shapes), target, 4e-3)


@on_cuda
@pytest.mark.parametrize("scale", [1.0, 0.125])
@pytest.mark.parametrize("rows", [300, 1024])
def test_causal_attention(rows: int, scale: float, target: str) -> None:
    def causal(q: Any, k: Any, v: Any) -> Any:
        scores = q @ np.swapaxes(k, -1, -2) * q.dtype.type(scale)
        return attentions.softmax(np.where(np.tri(rows, dtype=bool), scores, -np.inf)) @ v

    check(causal, attentions.draw([(3, rows, 64)] * 3), target, 4e-3)


@on_cuda
def test_masks(target: str) -> None:
    """A mask that is an argument; a row of it masks every key."""
    arrays = attentions.draw([(2, 200, 64), (2, 280, 64), (2, 280, 32)])
    mask = np.random.default_rng(1).random((200, 280)) < 0.3
    mask[7] = False
    check(attentions.masked, [*arrays, mask], target, 4e-3)


@on_cuda
@pytest.mark.parametrize("width", [None, 600], ids=["a tile", "two steps"])
@pytest.mark.parametrize("case", rows.CASES)
def test_reductions_of_rows(case: str, width: int | None, target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows of a product that fit into a tile, and longer ones."""
    monkeypatch.setattr(row_tiles, "_SHARE", 1000)
    function, shapes = rows.CASES[case]
    columns = shapes[1][0 if "b.T" in case or "transposed factors" in case else -1]
    if width is not None:
        shapes = [tuple(width if size == columns else size for size in shape) for shape in shapes]
    if case.startswith("arg"):
        arrays = rows.integral(shapes, np.float16)
        np.testing.assert_array_equal(ml.compile(function, target=target)(*arrays), function(*arrays))
    else:
        check(function, products.draw(shapes, np.float16), target, 4e-3)


@on_cuda
def test_a_reduced_product_is_returned_too(target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_tiles, "_SHARE", 1000)
    a, b = products.draw([(160, 64), (64, 120)], np.float16)

    def function(a: Any, b: Any) -> Any:
        x = np.maximum((a @ b).astype(np.float32), 0)
        return x, x / (1 + np.sum(x, axis=1, keepdims=True)), np.argmax(x, axis=1)

    found, expected = ml.compile(function, target=target)(a, b), function(*(x.astype(np.float64) for x in (a, b)))
    for one, other in zip(found[:2], expected[:2], strict=True):
        np.testing.assert_allclose(one, other, atol=4e-3 * np.abs(other).max())
    np.testing.assert_allclose(
        np.take_along_axis(expected[0], found[2][:, None], 1)[:, 0], expected[0].max(1), atol=4e-3
    )


@on_cuda
@pytest.mark.parametrize("width", [40, 600])
def test_nan_in_rows(width: int, target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Maxima of rows with NaN are NaN, and their argmax is the first; infinities are ordered."""
    monkeypatch.setattr(row_tiles, "_SHARE", 1000)
    rng = np.random.default_rng(2)
    a, b = (rng.integers(-2, 3, shape).astype(np.float16) for shape in ((48, 32), (32, width)))
    b[0, [7, 31]], b[1, 11], a[:, 0], a[:, 1] = np.nan, np.inf, 0, 1
    a[5, 0] = 1
    with np.errstate(all="ignore"):
        c = np.where(np.arange(width) % 2 == 0, 0, np.nan).astype(np.float32)
        for function in (
            lambda a, b: np.max(a @ b, axis=1),
            lambda a, b: np.argmax(a @ b, axis=1),
            lambda a, b: np.argmin(a @ b, axis=1),
            lambda a, b: np.nanmax((a @ b).astype(np.float32) + c, axis=1),
        ):
            expected = function(a.astype(np.float32), b.astype(np.float32))
            np.testing.assert_array_equal(ml.compile(function, target=target)(a, b), expected)
