"""The benchmarks of devices on tiny sizes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.devices import pools
from benchmarks.devices.run import of_copy, targets
from benchmarks.devices.worker import largest_error
from benchmarks.devices.workloads import SETTINGS, WORKLOADS
from benchmarks.rounds import Measured
from tests.runtime.test_cuda_device import fake, path  # noqa: F401  (fixtures)
from tests.targets.drivers import needs_vulkan

ROOT = Path(__file__).parent.parent.parent


@needs_vulkan
def test_a_quick_run_on_vulkan() -> None:
    command = [sys.executable, "-m", "benchmarks", "--target", "vulkan", "--quick", "--repeats", "1"]
    command += ["--seconds", "0.01", "--only", "copy,chain,matmul_bf16"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    for name in ("copy", "chain", "matmul_bf16"):
        row = next(line for line in done.stdout.splitlines() if f" {name} " in line)
        assert "failed" not in row


def test_without_a_device_the_run_says_so() -> None:
    command = [sys.executable, "-m", "benchmarks", "--target", "cuda", "--quick", "--only", "copy"]
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, check=False, env={"CUDA_VISIBLE_DEVICES": ""}
    )
    assert done.returncode == 1
    assert "mlirml: skipped: " in done.stdout


def test_bandwidth_is_a_part_of_a_copys() -> None:
    found = {"copy": {"mlirml": Measured([1e-3])}, "chain": {"mlirml": Measured([2e-3])}}
    nbytes = WORKLOADS["chain"].amount(False) / WORKLOADS["copy"].amount(False)
    np.testing.assert_allclose(of_copy(found, "chain") or 0, nbytes / 2)


def test_targets_compare_with_torch() -> None:
    found = {"softmax": {"mlirml": Measured([1e-3]), "torch": Measured([0.5e-3])}}
    table = targets(found)
    assert [list(column.cells) for column in table.columns] == [
        ["softmax"], ["at least 0.9 of torch's speed"], ["0.5"], ["not met"]
    ]  # fmt: skip


def test_errors_are_parts_of_the_largest_element() -> None:
    assert largest_error([np.array([1.0, 3.0])], [np.array([1.0, 4.0])]) == 0.25


def test_pools_are_measured(fake: Any, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: F811
    monkeypatch.setattr(pools, "SIZES", {"4 KiB": 1 << 12, "8 KiB": 1 << 13})
    monkeypatch.setattr(pools, "_SECONDS", 0.0)
    found = pools.measure()
    assert list(found) == ["4 KiB", "8 KiB"]
    for row in found.values():
        assert list(row) == ["mlirml", "cuMemAllocAsync", "cuMemAlloc"] and all(figure > 0 for figure in row.values())


@pytest.mark.parametrize("name", ["layers", "branches"])
def test_workloads_with_settings_of_their_own(name: str) -> None:
    """They differ in the settings alone, and compute the same."""
    alike = [workload for workload in WORKLOADS.values() if workload.name.startswith(name)]
    assert len(alike) == 3 and len({workload.settings for workload in alike}) == 3
    assert all(setting in SETTINGS for workload in alike for setting, _ in workload.settings)
    assert len({(workload.function, workload.sizes) for workload in alike}) == 1
