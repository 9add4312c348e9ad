"""The syntax tree of a function, read without a look at what stands behind it in its file."""

from __future__ import annotations

import ast
import sys
import types
from pathlib import Path
from typing import Any

import pytest

from mlirml.frontend.source.functions import source_of

DEFINITIONS = {
    "plain": "def f(x):\n    y = x + 1\n    return y\n",
    "one line": "def f(x): return x\n",
    "dead code": "def f(x):\n    x[0] = 1\n    if False:\n        x[\n0] = 2\n",
    "string at the end": 'def f(x):\n    x[0] = 1\n    """Of several\nlines."""\n',
    "comments": 'def f(x):\n# here\n    x[0] = """\na string\n"""\n# and here\n\n    pass\n\n    # after all\n',
    "bracket at the end": "def f(x):\n    return [\n    x\n]\n",
    "function inside": "def f(x):\n    def g(y):\n        return y\n    return 1 if x else (\n        lambda z: z)\n",
    "decorators": "@keep\n@keep\ndef f(x):\n    return x\n",
    "tabs": "def f(x):\n\treturn x\n",
}


def defined(text: str, file: Path) -> types.FunctionType:
    file.write_text(text, encoding="utf-8")
    scope: dict[str, Any] = {"keep": lambda function: function}
    exec(compile(text, str(file), "exec"), scope)
    function = scope["f"] if "f" in scope else scope["C"].f
    assert isinstance(function, types.FunctionType)
    return function


@pytest.mark.parametrize("place", ["first", "between", "method"])
@pytest.mark.parametrize("text", DEFINITIONS.values(), ids=DEFINITIONS)
def test_a_definition_is_read_whole_and_on_its_own_lines(text: str, place: str, tmp_path: Path) -> None:
    if place == "between":
        text = f"a = 1\n\n\n{text}\n# more\nb = 2\ndef g(x):\n    return x\n"
    elif place == "method":
        text = "class C:\n" + "".join(f"    {line}\n" for line in text.splitlines()) + "    b = 2\n"
    source = source_of(defined(text, tmp_path / "definition.py"))
    (expected,) = (n for n in ast.walk(ast.parse(text)) if isinstance(n, ast.FunctionDef) and n.name == "f")
    assert source is not None
    assert ast.dump(source.node, include_attributes=True) == ast.dump(expected, include_attributes=True)


def test_lambdas_are_looked_for_in_their_statement(tmp_path: Path) -> None:
    source = source_of(defined("g, f = (\n    lambda x: x,\n    lambda y: y,\n)\n", tmp_path / "lambdas.py"))
    assert source is not None and isinstance(source.node, ast.Lambda) and source.node.args.args[0].arg == "y"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("g, f = lambda *a: a, lambda *b: b\n", "lambda *b: b"),
        ("g, f = lambda: 0, lambda *a, **k: a\n", "lambda *a, **k: a"),
        ("f = (lambda: lambda *a, b: a)()\n", "lambda *a, b: a"),
        ("f = keep(\n    lambda x: x)\n", "lambda x: x"),
        ("for f in (1, lambda x: x):\n    pass\n", "lambda x: x"),
    ],
)
def test_lambdas_of_a_line_are_known_by_all_their_arguments(text: str, expected: str, tmp_path: Path) -> None:
    source = source_of(defined(text, tmp_path / "lambdas.py"))
    assert source is not None and ast.unparse(source.node) == expected


@pytest.mark.skipif(sys.version_info < (3, 11), reason="code has no columns")
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("g, f = lambda x: x, lambda x: x + 1\n", "lambda x: x + 1"),
        ("g, f = (lambda x: (x,\n x)), lambda x: 2\n", "lambda x: 2"),
        ("f = (lambda x: lambda x: x)(0)\n", "lambda x: x"),
        ("f = lambda x: keep(lambda x: x)\n", "lambda x: keep(lambda x: x)"),
        ("g, f = lambda x: 1, lambda x: (lambda x: 2)(1)\n", "lambda x: (lambda x: 2)(1)"),
    ],
)
def test_lambdas_of_a_line_with_the_same_arguments_are_known_by_their_columns(
    text: str, expected: str, tmp_path: Path
) -> None:
    source = source_of(defined(text, tmp_path / "lambdas.py"))
    assert source is not None and ast.unparse(source.node) == expected
