"""The page of rules says what the tables of rules say."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

from mlirml.autodiff.no_rule import NO_RULE
from mlirml.autodiff.rules.scalars import INACTIVE, RULES

DOCS = Path(__file__).parent.parent.parent / "docs"


@pytest.fixture(scope="module")
def generator() -> ModuleType:
    spec = importlib.util.spec_from_file_location("docs_derivatives", DOCS / "derivatives.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_is_up_to_date(generator: ModuleType) -> None:
    assert (DOCS / "derivatives.md").read_text() == generator.page(), "run `python docs/derivatives.py`"


def test_every_operation_of_the_tables_is_there(generator: ModuleType) -> None:
    page = generator.page()
    names = {*RULES, *INACTIVE, *NO_RULE, *(name for table in generator.TABLES.values() for name in table.all())}
    missing = [n for n in names if f"`{n}*`" not in page and f"`{n}`" not in page]
    assert not missing


def test_every_rule_says_what_it_does(generator: ModuleType) -> None:
    rules = {rule for table in generator.TABLES.values() for rule in table.all().values()}
    assert rules and all(generator.sentence(rule).endswith(".") for rule in rules)
