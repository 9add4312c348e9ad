"""The benchmark of memory measures what it says."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.memory import measure


def test_a_checkpoint_keeps_less_and_gives_the_same(tmp_path: Path) -> None:
    kept, again = (measure(kind, 400, str(tmp_path)) for kind in ("kept", "checkpoint"))
    row = 4096 * 8
    assert kept.workspace > 400 * row and kept.peak > 300 * row
    assert again.workspace < 60 * row and again.peak < 80 * row
    assert again.checksum == pytest.approx(kept.checksum, rel=1e-12)
