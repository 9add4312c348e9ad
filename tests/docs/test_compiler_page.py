"""The page of the compiler is what the compiler does, and its examples work in a copy of the package."""

from __future__ import annotations

import importlib.util
import re
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parent.parent.parent
DOCS = ROOT / "docs"


def generator() -> ModuleType:
    spec = importlib.util.spec_from_file_location("docs_compiler", DOCS / "compiler.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_is_up_to_date() -> None:
    assert (DOCS / "compiler.md").read_text() == generator().page(), "run `python docs/compiler.py`"


def examples() -> dict[str, list[tuple[str, str]]]:
    """The blocks of each worked example: language and text, by its heading."""
    parts = re.split(r"(?m)^### ", (DOCS / "compiler.md").read_text().partition("## Adding to it")[2])[1:]
    return {part.partition("\n")[0]: re.findall(r"(?ms)^```(\w+)\n(.*?)^```", part) for part in parts}


def apply(language: str, text: str, copy: Path) -> str:
    """Carry out a block in a copy; returns the program of a check."""
    first, _, rest = text.partition("\n")
    words = first.split()
    if words[1:] == ["check"]:
        return rest
    assert words[1] == "file:", first
    file = copy / words[2]
    if language == "diff":
        old, new = ("".join(line[1:] + "\n" for line in rest.splitlines() if line[0] == sign) for sign in "-+")
        assert file.read_text().count(old.rstrip()) == 1, f"{words[2]} does not have these lines"
        file.write_text(file.read_text().replace(old.rstrip(), new.rstrip()))
    elif file.exists():
        file.write_text(f"{file.read_text()}\n\n{rest}")
    else:
        file.parent.mkdir(exist_ok=True)
        file.write_text(rest)
    return ""


def test_a_target_is_made_of_new_files_only() -> None:
    heads = [text.partition("\n")[0].split()[1:] for language, text in examples()["A target"]]
    files = [words[1] for words in heads if words != ["check"]]
    assert files == ["mlirml/targets/c.py", "mlirml/codegen/c.py", "lit_tests/targets/c.mlir"]
    assert [file for file in files if (ROOT / file).exists()] == []


@pytest.mark.parametrize("name", examples())
def test_the_worked_example(name: str, tmp_path: Path) -> None:
    shutil.copytree(ROOT / "mlirml", tmp_path / "mlirml", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(ROOT / "lit_tests", tmp_path / "lit_tests", ignore=shutil.ignore_patterns("*.mlir", "Output"))
    checks = "".join(apply(language, text, tmp_path) for language, text in examples()[name])
    assert checks
    here = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); sys.meta_path = [f for f in sys.meta_path if not "
    here += "type(f).__name__.startswith('ScikitBuild')]\n"
    program = (
        f"{here}import mlirml\nassert mlirml.__file__.startswith({str(tmp_path)!r})\nmlirml.config.cache = False\n"
    )
    (tmp_path / "check.py").write_text(program + checks)
    done = subprocess.run([sys.executable, tmp_path / "check.py"], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    for lit in (tmp_path / "lit_tests").rglob("*.mlir"):
        opt = f"{here}from mlirml.cli.opt.main import main\nsys.exit(main(sys.argv[1:]))\n"
        flags = re.findall(r"(?m)^// RUN: mlirml-opt %s (.*) \| filecheck %s$", lit.read_text())
        command = [sys.executable, "-c", opt, str(lit), *flags[0].split()]
        output = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=True).stdout
        check = [sys.executable, "-m", "filecheck", str(lit)]
        checked = subprocess.run(check, input=output, capture_output=True, text=True)
        assert checked.returncode == 0, checked.stderr
