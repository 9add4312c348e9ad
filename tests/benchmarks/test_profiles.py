"""The benchmark of profiles counts the flops that the workloads count."""

from __future__ import annotations

import pytest

from benchmarks.profiles import measured, row
from benchmarks.workloads import WORKLOADS
from mlirml.targets.measured import MeasuredMachine


@pytest.mark.parametrize("name", ["matmul64", "matmul_batch64x32x32x32", "loops_matmul512"])
def test_flops_are_those_of_the_workload(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    machine = MeasuredMachine("test", 1, {"f32": (1e9, 1e9)}, {}, 1e-6, 0.0)
    monkeypatch.setattr("mlirml.driver.profiling.run.current_machine", lambda: machine)
    profile = measured(WORKLOADS[name], quick=False)
    assert sum(found.flops or 0 for found in profile.rows) == WORKLOADS[name].amount(False)
    cells = row(WORKLOADS[name], profile, quick=False)
    assert cells[0] == name and cells[5] == "1.000"
