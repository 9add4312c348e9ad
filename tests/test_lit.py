"""All tests under lit_tests: what each pass does, as MLIR text."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
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


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a process that runs the commands of lit."""
    address = str(tmp_path_factory.mktemp("lit") / "server")
    command = [sys.executable, "-m", "tests.lit_server", address]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT) as process:
        assert process.stdout is not None and process.stdout.readline() == "ready\n"
        yield address
        process.communicate(timeout=60)
    assert process.returncode == 0


@pytest.mark.parametrize("group", GROUPS)
def test_lit(group: str, server: str) -> None:
    """In one process for each group, so that workers share them out; lit keeps its notes in a folder of each.

    The tests of the command itself start it as a user does.
    """
    files = [str(path) for path in GROUPS[group]]
    command = [sys.executable, "-c", LIT, "-j1", "--verbose", "--no-progress-bar", f"--param=group={group}"]
    command += [*([] if group.startswith("cli") else [f"--param=server={server}"]), *files]
    result = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    passed = re.search(r"Passed *: *(\d+)", result.stdout)
    assert result.returncode == 0 and passed, result.stdout + result.stderr
    assert int(passed.group(1)) == len(files), "lit skipped some files"
