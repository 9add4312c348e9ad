"""Products of matrices on a device: half floats and tf32 on tensor cores where it has them, and in parts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import mlirml as ml
from mlirml.nn import functional as nn
from tests.targets.drivers import needs_cuda, on_devices

FORMS: dict[str, Callable[..., Any]] = {
    "nn": lambda a, b: np.maximum(a @ b, 0),
    "nt": lambda a, b: a @ b.T,
    "tn": lambda a, b: a.T @ b,
}


def operands(form: str, m: int, n: int, k: int, dtype: Any) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    shapes = ((k, m) if form == "tn" else (m, k), (n, k) if form == "nt" else (k, n))
    a, b = (rng.standard_normal(shape).astype(dtype) for shape in shapes)
    return a, b


def check(target: str, form: str, sizes: tuple[int, int, int], dtype: str, tolerance: float) -> None:
    a, b = operands(form, *sizes, dtype)
    found = ml.compile(FORMS[form], target=target)(a, b)
    expected = FORMS[form](a.astype(np.float64), b.astype(np.float64))
    assert found.dtype == dtype
    assert np.abs(found - expected).max() <= tolerance * np.abs(expected).max()


@on_devices
@pytest.mark.parametrize("form", FORMS)
def test_half_floats(form: str, target: str) -> None:
    check(target, form, (72, 40, 200), "f2", 1e-3)


NEEDS_CUDA = pytest.param("cuda", marks=needs_cuda)


@pytest.mark.parametrize("target", [NEEDS_CUDA])
@pytest.mark.parametrize(
    "sizes",
    [
        (150, 136, 104),
        (33, 65, 129),
        *(
            pytest.param(sizes, marks=pytest.mark.large)
            for sizes in ((1500, 1304, 520), (64, 64, 65536), (33, 4099, 129), (2048, 2048, 2048))
        ),
    ],
)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("dtype", ["f2", "f4"])
def test_products(dtype: str, form: str, sizes: tuple[int, int, int], target: str) -> None:
    check(target, form, sizes, dtype, {"f2": 1e-3, "f4": 1e-5}[dtype])
    if dtype == "f4":
        with ml.config.override(matmul_precision="tf32"):
            check(target, form, sizes, dtype, 2e-3)


@pytest.mark.parametrize("target", [NEEDS_CUDA])
def test_torch_shares_memory(target: str) -> None:
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("torch sees no GPU")
    double = ml.compile(lambda x: x * 2 + 1, target=target)
    with torch.cuda.stream(torch.cuda.Stream()):
        tensor = torch.arange(1 << 20, dtype=torch.float32, device="cuda")
        for _ in range(10):
            tensor = tensor + 1
            there = ml.Array.from_dlpack(tensor)
            assert there.address == tensor.data_ptr()
            back = torch.from_dlpack(double(there))
            torch.testing.assert_close(back, tensor * 2 + 1)


@on_devices
@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16], ids=["f16", "bf16"])
@pytest.mark.parametrize("stride", [1, 2])
def test_convolutions_of_small_floats(stride: int, dtype: Any, target: str) -> None:
    """One kernel, which multiplies the small floats: on tensor cores where there are some."""
    rng = np.random.default_rng(0)
    x, w = (rng.standard_normal(shape).astype(dtype) for shape in ((2, 12, 9, 10), (20, 12, 3, 3)))
    compiled = ml.compile(lambda x, w: nn.conv2d(x, w, padding=1, stride=stride), target=target)
    found = compiled(x, w)
    expected = ml.compile(lambda x, w: nn.conv2d(x, w, padding=1, stride=stride))(x.astype("f8"), w.astype("f8"))
    assert found.dtype == dtype
    tolerance = {"f2": 1e-3, "V2": 1e-2}[np.dtype(dtype).str[1:]]
    assert np.abs(found.astype("f8") - expected).max() <= tolerance * np.abs(expected).max()
    text = compiled.ir("schedule", x, w)
    assert text.count("gpu.func @") == 1 and ("nvgpu.mma.sync" in text) == (target == "cuda")
