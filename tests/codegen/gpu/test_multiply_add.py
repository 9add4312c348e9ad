"""Products of f32 whose tiles come by asynchronous copies, in the simulator, against NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from mlirml.codegen.gpu.contract import tiles as contract
from mlirml.codegen.gpu.contract.pipelined import slots_of
from mlirml.ir.bindings import operations
from mlirml.passes import parse_pipeline
from tests.codegen.gpu.gpu_harness import as_kernel
from tests.codegen.gpu.simt import simulate

FORMS: dict[str, Callable[..., Any]] = {
    "nn": lambda a, b: a @ b,
    "nt": lambda a, b: a @ b.T,
    "tn": lambda a, b: np.maximum(a.T @ b, 0),
    "tt": lambda a, b: (a.T @ b.T).T,
    "computed": lambda a, b: np.abs(a) @ b,
    "added": lambda a, b: np.tanh(a @ b) + 1,
}


def operands(form: str, m: int, n: int, k: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    shapes = ((k, m) if form in ("tn", "tt") else (m, k), (n, k) if form in ("nt", "tt") else (k, n))
    a, b = (rng.standard_normal(shape).astype(np.float32) for shape in shapes)
    return a, b


def run(
    form: str, m: int, n: int, k: int, conflicts: list[int] | None = None, options: str = ""
) -> tuple[np.ndarray, np.ndarray, int]:
    """The product, the exact one, and how many copies of the kernel are asynchronous."""
    a, b = operands(form, m, n, k)
    expected = FORMS[form](a.astype(np.float64), b)
    module = as_kernel(FORMS[form], a, b)
    parse_pipeline(f"mlirml-schedule-kernels{{device=gpu,subgroup=32,tensor-cores=true{options}}}").run(
        module.operation
    )
    copies = len([op for op in operations(module) if op.name == "nvgpu.device_async_copy"])
    (result,) = simulate(module, "k", a, b, expected.astype(np.float32), conflicts=conflicts)
    return result, expected, copies


@pytest.mark.parametrize(
    ("form", "m", "n", "k", "direct"),
    [
        ("nn", 40, 48, 100, True),  # more rounds than slots; rows, columns and the depth end within a tile
        ("nt", 35, 20, 40, True),
        ("tn", 36, 20, 20, True),
        ("tt", 36, 20, 20, True),
        ("nn", 33, 20, 21, True),  # rows of one factor are not aligned to 16 bytes
        ("nn", 33, 19, 21, False),
        ("computed", 32, 16, 50, True),
        ("added", 64, 64, 16, True),  # one round
    ],
)
def test_matmul(form: str, m: int, n: int, k: int, direct: bool) -> None:
    result, expected, copies = run(form, m, n, k)
    np.testing.assert_allclose(result, expected, atol=2e-5, rtol=0)
    assert (copies > 0) == direct


@pytest.mark.parametrize("form", ["nn", "nt", "tn"])
def test_large_tiles_meet_no_bank_conflicts(monkeypatch: pytest.MonkeyPatch, form: str) -> None:
    monkeypatch.setattr(contract, "SMALL", contract.LARGE)
    conflicts: list[int] = []
    result, expected, _ = run(form, 136, 132, 40, conflicts)
    np.testing.assert_allclose(result, expected, atol=2e-5, rtol=0)
    assert max(conflicts) == 1


def test_few_results_of_much_depth_are_computed_in_parts() -> None:
    result, expected, copies = run("added", 40, 24, 512, options=",processors=8")
    np.testing.assert_allclose(result, expected, atol=2e-5, rtol=0)
    assert copies


@pytest.mark.parametrize(
    ("slot_bytes", "steps", "slots"),
    [(16 << 10, 100, 3), (12 << 10, 100, 4), (8 << 10, 100, 4), (8 << 10, 4, 4), (8 << 10, 3, 3), (8 << 10, 1, 3)],
)
def test_slots_that_every_block_has_memory_for(slot_bytes: int, steps: int, slots: int) -> None:
    assert slots_of(slot_bytes, steps) == slots


@pytest.mark.parametrize(("k", "ahead"), [(40, 1), (64, 2)])
def test_small_tiles_are_copied_three_steps_ahead_where_the_depth_is_long(k: int, ahead: int) -> None:
    a, b = np.zeros((32, k), np.float32), np.zeros((k, 32), np.float32)
    module = as_kernel(FORMS["nn"], a, b)
    parse_pipeline("mlirml-schedule-kernels{device=gpu,subgroup=32,tensor-cores=true}").run(module.operation)
    waits = [op for op in operations(module) if op.name == "nvgpu.device_async_wait"]
    assert [op.attributes["numGroups"].value for op in waits] == [ahead]
