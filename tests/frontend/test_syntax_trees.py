"""Syntax trees of the user's source."""

from __future__ import annotations

import ast
from typing import Any

import pytest

from mlirml.frontend.syntax_trees import parsed


def test_a_mismatch_of_depths_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    failures = [SystemError("AST constructor recursion depth mismatch (before=198, after=219)")] * 3
    parse = ast.parse

    def failing(source: str) -> Any:
        if failures:
            raise failures.pop()
        return parse(source)

    monkeypatch.setattr(ast, "parse", failing)
    assert ast.dump(parsed("x + 1")) == ast.dump(parse("x + 1"))
    assert not failures


def test_what_is_no_python_is_a_syntax_error() -> None:
    with pytest.raises(SyntaxError):
        parsed("x +")
