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
COMPLETE = (
    "coming-from.md",
    "models.md",
    "ndimage.md",
    "profiling.md",
    "questions.md",
    "random.md",
    "settings.md",
    "signal-and-stats.md",
    "sizes.md",
    "special.md",
    "threads.md",
    "tuning.md",
)
"""Pages of which each program has its output behind it; in others there are fragments too, which import nothing."""
PEERS = ("jax", "numba", "torch")
PROGRAM = re.compile(r"^```python\n(.*?)^```\n(?:```text\n(.*?)^```$)?", re.MULTILINE | re.DOTALL)
CASES = [
    pytest.param(program, output, id=f"{page.name}:{number}")
    for page in PAGES
    for number, (program, output) in enumerate(PROGRAM.findall(page.read_text()))
    if page.name in COMPLETE or program.startswith("import ")
]


@pytest.mark.parametrize("name", COMPLETE)
def test_each_program_has_its_output(name: str) -> None:
    found = PROGRAM.findall((DOCS / name).read_text())
    assert found and all(output for _, output in found)


@pytest.mark.parametrize(("program", "output"), CASES)
def test_a_program_prints_what_the_page_says(program: str, output: str, tmp_path: Path) -> None:
    for peer in PEERS:
        if re.search(rf"^(import|from) {peer}\b", program, re.MULTILINE) and importlib.util.find_spec(peer) is None:
            pytest.skip(f"{peer} is not installed")
    (tmp_path / "example.py").write_text(program)
    done = subprocess.run([sys.executable, "example.py"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert output in done.stdout.replace(f"{tmp_path}/", "")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    for link in re.findall(r"\]\(([^):]+)\)", re.sub(r"`[^`]*`", "", page.read_text())):
        file, _, anchor = link.partition("#")
        target = DOCS / file if file else page
        assert target.exists(), link
        if anchor:
            headings = re.findall(r"^#+ (.*)$", target.read_text(), re.MULTILINE)
            assert anchor in {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}, link
