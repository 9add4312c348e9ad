"""What the README shows: its programs and commands run, and what it names is there."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
README = (ROOT / "README.md").read_text()
PROGRAMS = re.findall(r"^```python\n(.*?)^```\n```text\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)
COMMANDS = [
    re.findall(r"^\$ (.*)$", block, re.MULTILINE) for block in re.findall(r"```console\n(.*?)```", README, re.S)
]
MODULES = {"mlirml": "mlirml.cli", "mlirml-opt": "mlirml.cli.opt", "python": ""}


def test_every_program_has_its_output() -> None:
    assert len(PROGRAMS) == README.count("```python") == 6
    assert sum(map(len, COMMANDS)) >= 5


@pytest.mark.parametrize(("program", "output"), PROGRAMS)
def test_a_program_prints_what_the_readme_says(program: str, output: str, tmp_path: Path) -> None:
    (tmp_path / "example.py").write_text(program)
    done = subprocess.run([sys.executable, "example.py"], cwd=tmp_path, capture_output=True, text=True)
    # Tracebacks show the full path.
    shown = (done.stdout + done.stderr).replace(f"{tmp_path}/", "")
    assert output in shown
    assert done.returncode == ("Error" in output)


@pytest.mark.parametrize("commands", COMMANDS, ids=lambda commands: commands[0][:30])
def test_commands_run(commands: list[str], tmp_path: Path) -> None:
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    for command in commands:
        tool, *arguments = shlex.split(command)
        python = [sys.executable, "-m", MODULES[tool]] if MODULES[tool] else [sys.executable]
        done = subprocess.run([*python, *arguments], cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0, f"{command}\n{done.stderr}"
        assert done.stdout or "-o" in arguments


def test_links_lead_somewhere() -> None:
    links = re.findall(r"\]\(([^)#:]+)\)", README)
    assert len(links) >= 2
    assert [link for link in links if not (ROOT / link).exists()] == []


def test_paths_are_there() -> None:
    paths = re.findall(r"`((?:mlirml|tests|lit_tests|benchmarks|examples|docs)/[\w./]*)`", README)
    assert len(paths) >= 10
    assert [path for path in paths if not (ROOT / path).exists()] == []


def test_make_targets_are_there() -> None:
    makefile = (ROOT / "Makefile").read_text()
    named = {*re.findall(r"`make (\w+)`", README), *re.findall(r"^    make ([\w ]+?)(?: +#.*)?$", README, re.MULTILINE)}
    targets = {word for name in named for word in name.split()}
    assert {"demo", "test", "bench"} <= targets
    assert [target for target in sorted(targets) if not re.search(rf"^{target}:", makefile, re.MULTILINE)] == []


def test_the_picture_is_readable_on_any_background() -> None:
    svg = (ROOT / "docs" / "pipeline.svg").read_text()
    assert '<rect width="980" height="430"' in svg, "a panel of its own lies behind the text"
    assert "<title" in svg
