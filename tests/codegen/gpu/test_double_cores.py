"""Products of f64 on tensor cores, in the simulator, against NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mlirml as ml
from mlirml.codegen.gpu.contract import double_cores
from mlirml.ir.bindings import operations
from mlirml.passes import parse_pipeline
from tests.codegen.gpu.gpu_harness import as_kernel
from tests.codegen.gpu.simt import simulate
from tests.targets.emulation.run import run as run_ptx

FORMS: dict[str, Callable[..., Any]] = {
    "nn": lambda a, b: a @ b,
    "nt": lambda a, b: a @ b.T,
    "tn": lambda a, b: np.maximum(a.T @ b, 0),
    "computed": lambda a, b: np.abs(a) @ b,
    "added": lambda a, b: np.sqrt(np.abs(a @ b)) + 1,
}


def operands(form: str, m: int, n: int, k: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    shapes = ((k, m) if form == "tn" else (m, k), (n, k) if form == "nt" else (k, n))
    a, b = (rng.standard_normal(shape) for shape in shapes)
    return a, b


@pytest.mark.parametrize(
    ("form", "m", "n", "k", "cores"),
    [
        ("nn", 40, 48, 100, True),  # rows, columns and the depth end within a tile
        ("nt", 35, 20, 40, True),
        ("tn", 36, 20, 21, True),
        ("nn", 33, 20, 21, True),  # rows of one factor are not aligned to 16 bytes
        ("nn", 33, 19, 21, False),
        ("computed", 70, 16, 50, True),
        ("added", 64, 64, 16, True),
    ],
)
def test_matmul(form: str, m: int, n: int, k: int, cores: bool) -> None:
    a, b = operands(form, m, n, k)
    expected = FORMS[form](a, b)
    module = as_kernel(FORMS[form], a, b)
    parse_pipeline("mlirml-schedule-kernels{device=cuda}").run(module.operation)
    assert any(op.name == "nvgpu.mma.sync" for op in operations(module.operation)) == cores
    (found,) = simulate(module, "k", a, b, np.zeros_like(expected))
    np.testing.assert_allclose(found, expected, atol=1e-12, rtol=0)


@pytest.mark.parametrize("form", ["nn", "nt", "tn"])
def test_no_bank_conflicts_in_ptx(monkeypatch: pytest.MonkeyPatch, form: str) -> None:
    monkeypatch.setattr(double_cores, "_FILLS", 1)
    a, b = operands(form, 132, 130, 24)
    expected = FORMS[form](a, b)
    (found,), traffic, text = run_ptx(FORMS[form], a, b, outs=[np.zeros_like(expected)])
    np.testing.assert_allclose(found, expected, atol=1e-12, rtol=0)
    assert "mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64" in text and "cp.async.cg.shared.global" in text
    (counts,) = traffic.values()
    assert counts.conflicts == 1 and counts.share(16) == 1


def test_registers_are_not_spilled() -> None:
    ptx = pytest.importorskip("mlirml.targets.llvm.ptx")
    if ptx.assembler() is None:
        pytest.skip("no ptxas; `pip install nvidia-cuda-nvcc`")
    x = ml.TensorSpec((4096, 4096), np.dtype(np.float64))
    made = ptx.assemble(str(ml.lower(lambda a, b: a @ b, x, x, target="cuda").emit("ptx-sm_90")), "sm_90")
    assert not any(made.spills.values())
    assert max(made.registers.values()) <= 255 and max(made.shared.values()) <= 49152
