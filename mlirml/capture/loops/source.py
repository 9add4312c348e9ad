"""The source of a function as a syntax tree, with the file's own lines and columns."""

from __future__ import annotations

import ast
import inspect
import linecache
import types

from mlirml.dataclass import dataclass

Definition = ast.FunctionDef | ast.Lambda


@dataclass(frozen=True)
class Source:
    """A function's definition; `file` is what errors show."""

    file: str
    node: Definition


def source_of(function: types.FunctionType) -> Source | None:
    """The definition of a function, or None where there is no source to read: of `exec`, or at a prompt."""
    code = function.__code__
    try:
        lines = _lines(function)
    except (OSError, TypeError, IndexError, SyntaxError):
        return None
    first = code.co_firstlineno
    indented = lines[:1] and lines[0][:1] in " \t"
    text = ("if 1:\n" if indented else "") + "".join(lines)
    tree = _parsed(text)
    if tree is None:
        return None
    ast.increment_lineno(tree, first - 1 - int(bool(indented)))
    nodes = [node for node in ast.walk(tree) if isinstance(node, (ast.FunctionDef, ast.Lambda))]
    found = [node for node in nodes if _defines(node, code)]
    return Source(code.co_filename, found[0]) if len(found) == 1 else None


def _lines(function: types.FunctionType) -> list[str]:
    """`inspect.getsourcelines`, which looks for the module in all that are imported: a twentieth of a compilation."""
    code = function.__code__
    linecache.checkcache(code.co_filename)
    lines = linecache.getlines(code.co_filename, function.__globals__)
    if not lines:
        raise OSError(f"{code.co_filename} has no lines")
    return inspect.getblock(lines[code.co_firstlineno - 1 :])


def _parsed(text: str) -> ast.Module | None:
    try:
        return ast.parse(text)
    except SyntaxError:
        return None


def _defines(node: Definition, code: types.CodeType) -> bool:
    if isinstance(node, ast.FunctionDef):
        first = min([node.lineno, *(d.lineno for d in node.decorator_list)])
        return node.name == code.co_name and code.co_firstlineno in (first, node.lineno)
    if code.co_name != "<lambda>":
        return False
    return node.lineno == code.co_firstlineno and _arguments(node) == code.co_varnames[: code.co_argcount]


def _arguments(node: ast.Lambda) -> tuple[str, ...]:
    return tuple(a.arg for a in [*node.args.posonlyargs, *node.args.args])
