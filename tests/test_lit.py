"""All tests under lit_tests: what each pass does, as MLIR text."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
LIT = "from lit.main import main; main()"


def _groups() -> dict[str, list[Path]]:
    """The files by their folder, those of deeper ones with the second."""
    groups: dict[str, list[Path]] = {}
    for path in sorted((ROOT / "lit_tests").rglob("*")):
        folders = path.relative_to(ROOT / "lit_tests").parts[:-1]
        if path.suffix in (".mlir", ".test") and not {"Inputs", "Output"} & set(folders):
            groups.setdefault("-".join(folders[:2]), []).append(path)
    return groups


GROUPS = _groups()


@pytest.mark.parametrize("group", GROUPS)
def test_lit(group: str) -> None:
    """In one process for each group, so that workers share them out; lit keeps its notes in a folder of each."""
    files = [str(path) for path in GROUPS[group]]
    command = [sys.executable, "-c", LIT, "-j1", "--verbose", "--no-progress-bar", f"--param=group={group}", *files]
    result = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    passed = re.search(r"Passed *: *(\d+)", result.stdout)
    assert result.returncode == 0 and passed, result.stdout + result.stderr
    assert int(passed.group(1)) == len(files), "lit skipped some files"
