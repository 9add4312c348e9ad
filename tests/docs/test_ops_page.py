"""The page of operations says what the records say."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

from mlirml.ops import OPS

DOCS = Path(__file__).parent.parent.parent / "docs"


@pytest.fixture(scope="module")
def generator() -> ModuleType:
    spec = importlib.util.spec_from_file_location("docs_ops", DOCS / "ops.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_is_up_to_date(generator: ModuleType) -> None:
    assert (DOCS / "ops.md").read_text() == generator.page(), "run `python docs/ops.py`"


def test_every_record_has_a_line(generator: ModuleType) -> None:
    lines = generator.page().splitlines()
    for record in OPS.values():
        assert any(line.startswith(f"| {generator.names(record)} |") for line in lines), record.name


def test_dtypes_that_are_not_supported_are_left_blank(generator: ModuleType) -> None:
    line = generator.row(OPS["bitwise_and"])
    assert line.startswith("| `np.bitwise_and` | yes | yes | yes |  |  | ")
