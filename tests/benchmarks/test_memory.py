"""The benchmark of memory measures what it says."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.gradients.problems import PROBLEMS
from benchmarks.memory import held, measure


def test_a_checkpoint_keeps_less_and_gives_the_same(tmp_path: Path) -> None:
    kept, again = (measure(kind, 400, str(tmp_path)) for kind in ("kept", "checkpoint"))
    row = 4096 * 8
    assert kept.workspace > 400 * row and kept.peak > 300 * row
    assert again.workspace < 60 * row and again.peak < 80 * row
    assert again.checksum == pytest.approx(kept.checksum, rel=1e-12)


def test_the_gradient_of_a_mixture_keeps_little() -> None:
    width, clusters = 10, 25
    (mixture,) = (workload for workload in PROBLEMS if workload.name == "gradients_gmm10x25")
    found = held(mixture, quick=False)
    parameters = clusters * (1 + width + width * (width + 1) // 2)
    assert found.limit is not None
    assert found.outside == 8 * (2 * parameters + 1000 * width)
    assert found.outside + found.workspace < found.limit <= 2 * found.outside + 8000 * clusters
