"""Gradients of products of f16 and bf16: sums are f32, and rounded once."""

from __future__ import annotations

import re
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import mlirml as ml


def loss(x: Any, w: Any) -> Any:
    return np.sum((x @ w).astype(np.float32) ** 2)


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16], ids=["f16", "bf16"])
def test_sums_are_rounded_once(dtype: Any) -> None:
    """Within one rounding of the result of f64, but for those of the product, over 4096 terms."""
    rng = np.random.default_rng(0)
    x, w = (rng.standard_normal(shape).astype(dtype) * dtype(0.125) for shape in ((4096, 8), (8, 16)))
    x, w = x.astype(dtype), w.astype(dtype)
    found = ml.grad(loss, argnums=(0, 1))(x, w)
    y = (x.astype(np.float32) @ w.astype(np.float32)).astype(dtype if dtype == np.float16 else np.float32)
    ct = (2 * y.astype(np.float64)).astype(y.dtype).astype(np.float64)
    wanted = ct @ w.astype(np.float64).T, x.astype(np.float64).T @ ct
    eps = float(ml_dtypes.finfo(dtype).eps)
    for a, b, factor in zip(found, wanted, (w, x), strict=True):
        assert a.dtype == dtype
        error = np.abs(a.astype(np.float64) - b)
        # The order of sums depends on the processor: elements of the product may be the next number of f16.
        next_to = eps * np.abs(ct).max() * np.abs(factor.astype(np.float64)).max() if dtype == np.float16 else 0.0
        assert (error <= np.abs(b) * eps * 0.51 + 1e-6 * np.abs(b).max() + next_to).all()


def test_gradients_are_contractions() -> None:
    x, w = np.zeros((64, 32), np.float16), np.zeros((32, 48), np.float16)
    text = ml.compile(ml.grad(loss, argnums=(0, 1))).ir("transform", x, w)
    assert len(re.findall(r"linalg\.(?:contract|matmul)\b", text)) == 3
    reduced = re.findall(r"iterator_types = \[[^]]*reduction[^]]*\]} ins\(([^)]*)\)", text)
    assert all("f16" not in operands for operands in reduced)
