"""Kernels for tensor cores, run without them: each instruction does what PTX's manual says that it does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from mlirml.codegen.gpu.contract import tensor_cores
from mlirml.ir.bindings import operations
from mlirml.passes import parse_pipeline
from tests.codegen.gpu.gpu_harness import as_kernel
from tests.codegen.gpu.simt import simulate


def run(
    function: Callable[..., Any], a: np.ndarray, b: np.ndarray, out: np.ndarray, conflicts: list[int] | None = None
) -> tuple[np.ndarray, int]:
    """The product, and how many of its copies are asynchronous."""
    module = as_kernel(function, a, b)
    parse_pipeline("mlirml-schedule-kernels{device=gpu,subgroup=32,tensor-cores=true tf32=true}").run(module.operation)
    copies = len([op for op in operations(module) if op.name == "nvgpu.device_async_copy"])
    (result,) = simulate(module, "k", a, b, out, conflicts=conflicts)
    return result, copies


FORMS: dict[str, Callable[..., Any]] = {
    "nn": lambda a, b: a @ b,
    "nt": lambda a, b: a @ b.T,
    "tn": lambda a, b: np.maximum(a.T @ b, 0),
    "computed": lambda a, b: np.abs(a) @ b,
}


def rounded(x: np.ndarray) -> np.ndarray:
    """f32 to the nearest tf32, ties away from zero."""
    return ((x.view(np.uint32) + np.uint32(1 << 12)) & np.uint32(0xFFFFE000)).view(np.float32)


def operands(form: str, m: int, n: int, k: int, dtype: Any) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    shapes = ((k, m) if form == "tn" else (m, k), (n, k) if form == "nt" else (k, n))
    a, b = (rng.standard_normal(shape).astype(dtype) for shape in shapes)
    return a, b


@pytest.mark.parametrize(
    ("form", "m", "n", "k", "dtype", "direct"),
    [
        ("nn", 32, 32, 160, "f2", True),  # more rounds than slots
        ("tn", 40, 24, 136, "f2", True),  # rows and the depth end within a tile
        ("nt", 35, 20, 40, "f2", True),
        ("nn", 36, 20, 44, "f2", False),  # rows that are not aligned to 16 bytes
        ("computed", 32, 16, 160, "f2", True),  # one factor is copied, one computed
        ("nn", 40, 48, 40, ml_dtypes.bfloat16, True),
        ("nn", 32, 32, 72, "f4", True),
        ("tn", 36, 20, 20, "f4", True),
        ("nt", 35, 20, 20, "f4", True),
        ("nn", 33, 19, 21, "f4", False),
    ],
)
def test_matmul(monkeypatch: pytest.MonkeyPatch, form: str, m: int, n: int, k: int, dtype: Any, direct: bool) -> None:
    monkeypatch.setattr(tensor_cores, "MIDDLE", tensor_cores.Tile(32, 16, 32, 16, 16))
    a, b = operands(form, m, n, k, dtype)
    result, copies = run(FORMS[form], a, b, np.zeros((m, n), dtype))
    wide = [(rounded(x) if dtype == "f4" else x).astype(np.float64) for x in (a, b)]
    tolerance = {"f2": 2e-2, "f4": 1e-5}.get(str(dtype), 0.2)
    np.testing.assert_allclose(result.astype(np.float64), FORMS[form](*wide), atol=tolerance, rtol=0)
    assert result.any()
    assert (copies > 0) == direct


@pytest.mark.parametrize("dtype", ["f2", "f4"])
@pytest.mark.parametrize("form", ["nn", "nt", "tn"])
def test_whole_tiles_meet_no_bank_conflicts(monkeypatch: pytest.MonkeyPatch, form: str, dtype: str) -> None:
    if form == "tn":
        monkeypatch.setattr(tensor_cores, "MIDDLE", tensor_cores.LARGE)
    a, b = operands(form, 72, 64, 40, dtype)
    conflicts: list[int] = []
    result, _ = run(FORMS[form], a, b, np.zeros((72, 64), dtype), conflicts)
    wide = [(rounded(x) if dtype == "f4" else x).astype(np.float64) for x in (a, b)]
    np.testing.assert_allclose(result, FORMS[form](*wide), atol=2e-2)
    assert max(conflicts) == 1


@pytest.mark.parametrize(("dtype", "k"), [("f2", 1024), ("f2", 1000), ("f4", 512)])
def test_few_results_of_much_depth_are_computed_in_parts(dtype: str, k: int) -> None:
    a, b = operands("nn", 40, 24, k, dtype)
    module = as_kernel(lambda a, b, c: np.tanh(a @ b * 0.01) + c, a, b, np.ones(24, dtype))
    device = "gpu,subgroup=32,tensor-cores=true,processors=8"
    parse_pipeline(f"mlirml-schedule-kernels{{device={device} tf32=true}}").run(module.operation)
    kernels = [op.attributes["sym_name"].value for op in operations(module) if op.name == "gpu.func"]
    assert kernels == ["k_contract", "k_2_sum"]
    (result,) = simulate(module, "k", a, b, np.ones(24, dtype), np.zeros((40, 24), dtype))
    expected = np.tanh(a.astype("f8") @ b * 0.01) + 1
    np.testing.assert_allclose(result, expected, atol=2e-3)


def test_nan_and_infinity_stay_what_they_are_in_tf32() -> None:
    a, b = np.zeros((16, 8), np.float32), np.eye(8, 16, dtype=np.float32)
    a[:4, 0] = np.nan, np.inf, -np.inf, np.uint32(0x7FFFFFFF).view(np.float32)
    result, _ = run(FORMS["nn"], a, b, np.zeros((16, 16), np.float32))
    np.testing.assert_array_equal(result[:4, 0], a[:4, 0])
