"""Kernels of tiles on a device: products and attention of small floats, with what is fused into them."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import mlirml as ml
from tests.codegen.tile import test_attention as attentions
from tests.codegen.tile import test_contract as products
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
    found = ml.compile(function, target=target)(*arrays).astype(np.float64)
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
