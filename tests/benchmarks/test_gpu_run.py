"""`make gpu`: rehearsed on the stand-in, and what becomes of steps that fail or do not end."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks import gpu
from mlirml.targets.llvm.ptx import assembler
from tests.runtime.test_cuda_device import COMPILER
from tests.targets.drivers import needs_vulkan

ROOT = Path(__file__).parents[2]


@needs_vulkan
@pytest.mark.skipif(COMPILER is None or assembler() is None, reason="the rehearsal needs a C++ compiler and ptxas")
def test_a_rehearsal_of_a_test_and_a_workload(tmp_path: Path) -> None:
    chosen = "tests/ops/test_device_records.py::test_record[absolute-cuda]"
    command = [sys.executable, "benchmarks/gpu.py", "--rehearse", "--out", str(tmp_path), "--only", "softmax", chosen]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300)
    report = json.loads((tmp_path / "report.json").read_text())
    assert done.returncode == 0, (tmp_path / "report.md").read_text()
    assert {name: step["status"] for name, step in report["steps"].items()} == dict.fromkeys(gpu.ORDER, "ok")
    assert (report["tests"]["passed"], report["tests"]["failed"]) == (1, 0)
    assert report["workloads"]["rows"]["softmax"]["mlirml"] > 0
    text = (tmp_path / "report.md").read_text()
    assert "A rehearsal: no GPU ran" in text and "| softmax |" in text and report["device"]["name"] in text


def started(tmp_path: Path) -> gpu.Run:
    return gpu.Run(gpu.parsed(["--out", str(tmp_path)]))


def test_steps_that_fail_or_do_not_end_are_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(gpu.SECONDS, "device", 1)
    run = started(tmp_path)
    assert run.step("device", [sys.executable, "-c", "import time; print('begun', flush=True); time.sleep(60)"]) is None
    assert run.step("tests", [sys.executable, "-c", "raise SystemExit('there is no GPU')"]) is None
    assert run.step("workloads", [sys.executable, "-c", "print(7)"]) == "7\n"
    steps = run.report["steps"]
    assert (steps["device"]["status"], steps["tests"]["status"], steps["workloads"]["status"]) == (
        "stopped after 1 s", 1, "ok",
    )  # fmt: skip
    text = (tmp_path / "report.md").read_text()
    assert "| device | stopped after 1 s |" in text and "there is no GPU" in text and "begun" in text
    assert gpu.failed(run.report)


def test_failed_tests_are_named(tmp_path: Path) -> None:
    file = tmp_path / "test_two.py"
    file.write_text("def test_right(): pass\ndef test_wrong(): assert 0\n")
    subprocess.run([sys.executable, "-m", "pytest", "-q", f"--junitxml={tmp_path}/x.xml", str(file)], cwd=tmp_path)
    counts = gpu.counted(tmp_path / "x.xml")
    assert (counts["passed"], counts["failed"], counts["skipped"]) == (1, 1, 0)
    assert counts["failures"] == ["test_two::test_wrong"]
    steps = {name: {"status": "ok"} for name in gpu.ORDER}
    assert gpu.failed({"steps": steps, "tests": counts})
    assert not gpu.failed({"steps": steps, "tests": {**counts, "failed": 0}})
    rows = {"softmax": {"problem": "mlirml: wrong result"}}
    assert gpu.failed({"steps": steps, "tests": {**counts, "failed": 0}, "workloads": {"rows": rows}})


def test_an_archive_that_is_not_there_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    run = gpu.Run(gpu.parsed(["--out", str(tmp_path), "--bundle", str(tmp_path / "none.tar.xz")]))
    gpu.unpack(run)
    assert run.report["steps"]["unpack"]["status"] == "failed"
    assert "make gpu-bundle" in run.report["steps"]["unpack"]["about"]
