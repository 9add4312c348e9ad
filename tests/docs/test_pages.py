"""The programs in the pages run, and print what the pages say; links lead somewhere."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).parent.parent.parent / "docs"
PAGES = sorted(DOCS.glob("*.md"))
WITH_PROGRAMS = ("coming-from.md", "questions.md", "settings.md")
"""Pages of which each program has its output behind it."""
PROGRAM = re.compile(r"^```python\n(.*?)^```\n(?:```text\n(.*?)^```$)?", re.MULTILINE | re.DOTALL)
PEERS = ("jax", "numba", "torch")
CASES = [
    pytest.param(program, output, id=f"{name}:{number}")
    for name in WITH_PROGRAMS
    for number, (program, output) in enumerate(PROGRAM.findall((DOCS / name).read_text()))
]


@pytest.mark.parametrize(("program", "output"), CASES)
def test_a_program_prints_what_the_page_says(program: str, output: str, tmp_path: Path) -> None:
    for peer in PEERS:
        if f"import {peer}" in program and importlib.util.find_spec(peer) is None:
            pytest.skip(f"{peer} is not installed")
    (tmp_path / "example.py").write_text(program)
    done = subprocess.run([sys.executable, "example.py"], cwd=tmp_path, capture_output=True, text=True)
    shown = (done.stdout + done.stderr).replace(f"{tmp_path}/", "")
    assert output, "each program has its output behind it"
    assert output in shown
    assert done.returncode == ("Error: " in output.splitlines()[0]), done.stderr


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    for link in re.findall(r"\]\(([^):]+)\)", re.sub(r"`[^`]*`", "", page.read_text())):
        file, _, anchor = link.partition("#")
        target = DOCS / file if file else page
        assert target.exists(), link
        if anchor:
            headings = re.findall(r"^#+ (.*)$", target.read_text(), re.MULTILINE)
            assert anchor in {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}, link
