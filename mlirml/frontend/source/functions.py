"""The source of a function as a syntax tree, with the file's own lines and columns."""

from __future__ import annotations

import ast
import inspect
import linecache
import types
from collections.abc import Iterable, Iterator
from typing import Any

from mlirml.core.dataclass import dataclass
from mlirml.frontend.source.matches import without_matches
from mlirml.frontend.syntax_trees import parsed

Definition = ast.FunctionDef | ast.Lambda


@dataclass(frozen=True)
class Source:
    """A function's definition; `file` is what errors show."""

    file: str
    node: Definition


def source_of(function: types.FunctionType) -> Source | None:
    """The definition of a function, or None if its source cannot be read: of `exec`, or at a prompt."""
    code = function.__code__
    linecache.checkcache(code.co_filename)
    lines = linecache.getlines(code.co_filename, function.__globals__)[code.co_firstlineno - 1 :]
    if not lines:
        return None
    tree = None if code.co_name == "<lambda>" else _parsed(lines[: _length(lines, code)], code)
    if tree is not None and tree.body:
        first = tree.body[0]
        definition = first.body[0] if isinstance(first, ast.If) else first
        if isinstance(definition, ast.FunctionDef) and _defines(definition, code):
            return Source(code.co_filename, without_matches(definition))
    found = _searched(lines, code)
    if found is None and code.co_name == "<lambda>":  # it may begin in the middle of a statement
        tree = _tree("".join(linecache.getlines(code.co_filename, function.__globals__)))
        return _only(tree, code)
    return found


def _length(lines: list[str], code: types.CodeType) -> int:
    """The number of lines of a `def`: up to its last one with code, and those after it that are indented more.

    The tokenizer, which `inspect` uses, takes longer than parsing the function. If the last line is inside of a string
    or bracket, the lines cannot be parsed.
    """
    length = max(_numbers(code)) - code.co_firstlineno + 1
    indent = _indent(lines[0])
    while length < len(lines) and (not lines[length].strip() or _indent(lines[length]) > indent):
        length += 1
    return length


def _numbers(code: types.CodeType) -> Iterator[int]:
    yield from (number for _, _, number in code.co_lines() if number is not None)
    for const in code.co_consts:
        if isinstance(const, types.CodeType):
            yield from _numbers(const)


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _searched(lines: list[str], code: types.CodeType) -> Source | None:
    """The one definition in the block that begins with the function's first line which can be it."""
    try:
        return _only(_parsed(inspect.getblock(lines), code), code)
    except (IndexError, SyntaxError):
        return None


def _only(tree: ast.Module | None, code: types.CodeType) -> Source | None:
    """The one definition in a tree which can be that of the code."""
    nodes = [node for node in ast.walk(tree) if isinstance(node, (ast.FunctionDef, ast.Lambda))] if tree else []
    found = [node for node in nodes if _defines(node, code)]
    if len(found) > 1:
        found = _around(found, code)
    return Source(code.co_filename, without_matches(found[0])) if len(found) == 1 else None


def _around(nodes: list[Definition], code: types.CodeType) -> list[Definition]:
    """The innermost of several lambdas that all positions of the code are in; none where these are not known."""
    positions: Iterable[Any] = getattr(code, "co_positions", tuple)()  # of Python 3.11 and later
    found = [((line, begin), (last, end)) for line, last, begin, end in positions if end]
    if not found:
        return []
    first, final = min(begin for begin, _ in found), max(end for _, end in found)
    bodies = [(node.body, node) for node in nodes if isinstance(node, ast.Lambda)]
    spans = [((b.lineno, b.col_offset), (b.end_lineno, b.end_col_offset), node) for b, node in bodies]
    around = [(begin, end, node) for begin, end, node in spans if begin <= first and final <= end]
    return [node for begin, _, node in around if begin == max(other for other, _, _ in around)]


def _parsed(lines: list[str], code: types.CodeType) -> ast.Module | None:
    """The lines of a function as a tree, each on its own line of the file."""
    above = "\n" * (code.co_firstlineno - 1)
    if lines[:1] and lines[0][:1] in " \t":
        above = above.removesuffix("\n") + "if 1:\n"  # a function in the first line has no indentation
    return _tree(above + "".join(lines))


def _tree(text: str) -> ast.Module | None:
    try:
        return parsed(text)
    except SyntaxError:
        return None


def _defines(node: Definition, code: types.CodeType) -> bool:
    if isinstance(node, ast.FunctionDef):
        first = min([node.lineno, *(d.lineno for d in node.decorator_list)])
        return node.name == code.co_name and code.co_firstlineno in (first, node.lineno)
    if code.co_name != "<lambda>":
        return False
    count = code.co_argcount + code.co_kwonlyargcount
    count += bool(code.co_flags & inspect.CO_VARARGS) + bool(code.co_flags & inspect.CO_VARKEYWORDS)
    return node.lineno == code.co_firstlineno and _arguments(node) == code.co_varnames[:count]


def _arguments(node: ast.Lambda) -> tuple[str, ...]:
    rest = [a for a in (node.args.vararg, node.args.kwarg) if a is not None]
    return tuple(a.arg for a in [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs, *rest])
