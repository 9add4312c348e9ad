"""The page of settings has all of them, with what the docstring of the settings says."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

from mlirml.core.config import _SETTINGS

DOCS = Path(__file__).parent.parent.parent / "docs"


@pytest.fixture(scope="module")
def generator() -> ModuleType:
    spec = importlib.util.spec_from_file_location("docs_settings", DOCS / "settings.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_is_up_to_date(generator: ModuleType) -> None:
    assert (DOCS / "settings.md").read_text() == generator.page(), "run `python docs/settings.py`"


def test_no_setting_is_left_out(generator: ModuleType) -> None:
    assert list(generator.meanings()) == list(_SETTINGS), "the docstring has a line for each, in their order"
    lines = (DOCS / "settings.md").read_text().splitlines()
    for name, setting in _SETTINGS.items():
        line = next(line for line in lines if line.startswith(f"| `{name}` |"))
        assert f"`{setting.default!r}`" in line
        assert setting.variable is None or f"`{setting.variable}`" in line
        assert len(generator.meanings()[name]) > 15
