"""Every module of the lit tests of raising gives the same numbers before and after its passes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.raising.before_and_after import assert_same

LIT = Path(__file__).parent.parent.parent / "lit_tests" / "raising"
RUN = re.compile(r"^// RUN: mlirml-opt %s (?P<flags>(?:--\S+ ?)*)", re.MULTILINE)


@pytest.mark.parametrize("path", sorted(LIT.rglob("*.mlir")), ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_modules_compute_what_they_did(path: Path) -> None:
    text = path.read_text()
    run = RUN.search(text)
    assert run is not None, f"{path} has no RUN line"
    flags = (flag.removeprefix("--").partition("=") for flag in run["flags"].split() if flag not in TOOL_FLAGS)
    pipeline = ",".join(name + (f"{{{options}}}" if options else "") for name, _, options in flags)
    for part in text.split("// -----\n"):
        if "func.func @main" in part and "func.func private" not in part:  # what is only declared cannot run
            assert_same(part, pipeline)


TOOL_FLAGS = ("--split-input-file", "--verify-diagnostics", "--remarks")
