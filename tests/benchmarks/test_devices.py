"""The benchmarks of devices on tiny sizes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np

from benchmarks.devices.run import of_copy, targets
from benchmarks.devices.worker import largest_error
from benchmarks.devices.workloads import WORKLOADS
from benchmarks.rounds import Measured
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
