"""The page of public names says what the docstrings say, and their examples run."""

from __future__ import annotations

import doctest
import importlib.util
import inspect
import operator
from pathlib import Path
from types import ModuleType

import pytest

import mlirml as ml
from mlirml.targets.registry import target_names

DOCS = Path(__file__).parent.parent.parent / "docs"


@pytest.fixture(scope="module")
def generator() -> ModuleType:
    spec = importlib.util.spec_from_file_location("docs_api", DOCS / "api.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_is_up_to_date(generator: ModuleType) -> None:
    assert (DOCS / "api.md").read_text() == generator.page(), "run `python docs/api.py`"


def test_every_public_name_is_there(generator: ModuleType) -> None:
    page = generator.page()
    names = {*ml.__all__, *(f"debug.{name}" for name in ml.debug.__all__)} - {"errors", "debug"}
    assert [name for name in sorted(names) if f"### {name}\n" not in page and f"- `{name}`" not in page] == []


def test_public_names_have_docstrings() -> None:
    assert [name for name in ml.__all__ if not inspect.getdoc(getattr(ml, name))] == []


def test_compile_names_all_targets() -> None:
    text = inspect.getdoc(ml.compile) or ""
    assert [name for name in target_names() if f'"{name}"' not in text] == []


NAMES = [*ml.__all__, *(f"debug.{name}" for name in ml.debug.__all__)]


@pytest.mark.parametrize("name", [n for n in NAMES if ">>>" in (inspect.getdoc(operator.attrgetter(n)(ml)) or "")])
def test_examples_run(name: str) -> None:
    value = operator.attrgetter(name)(ml)
    module = inspect.getmodule(value if callable(value) else type(value))
    assert module is not None
    for test in doctest.DocTestFinder(recurse=False).find(value, name, module, vars(module) | {"ml": ml}):
        assert doctest.DocTestRunner().run(test).failed == 0
