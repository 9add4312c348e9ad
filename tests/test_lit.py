"""All tests under lit_tests: what each pass does, as MLIR text."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
LIT = "from lit.main import main; main()"


def test_lit(capsys: pytest.CaptureFixture[str]) -> None:
    command = [sys.executable, "-c", LIT, "-j2", "--verbose", "--no-progress-bar", str(ROOT / "lit_tests")]
    result = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    passed = re.search(r"Passed *: *(\d+)", result.stdout)
    assert result.returncode == 0 and passed, result.stdout + result.stderr
    assert int(passed.group(1)) == len(_lit_files()), "lit skipped some files"
    with capsys.disabled():
        print(f"\nlit: {passed.group(1)} tests passed")


def _lit_files() -> list[Path]:
    files = [path for path in (ROOT / "lit_tests").rglob("*") if path.suffix in (".mlir", ".test")]
    return [path for path in files if not {"Inputs", "Output"} & set(path.parts)]
