"""Help texts for errors where Python needs the value of a traced array, derived from the syntax at that location."""

from __future__ import annotations

import ast
import builtins
import linecache
import math
import re
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from mlirml.core.dataclass import dataclass
from mlirml.errors import SourceLocation
from mlirml.frontend.syntax_trees import parsed

STATIC = "make the argument static (`static_argnums`)"
PRINT = "`print(x)` shows the value when the program runs; the text itself is made before"
MASK = "indexing with a mask: the shape of the result would depend on the data"
MASK_HELP = (
    "keep the shape with `np.where(mask, x, 0)`; what a mask picks can be summed up, `x[mask].sum()`, or stored under "
    "the same mask, `x[mask] = np.sqrt(x[mask])`"
)
DATA_SIZE = "an array whose length depends on the data"
DATA_SIZE_HELP = (
    'this needs the source of the function and `frontend="auto"` or "loops"; or keep the shape: '
    "`np.where(condition, a, b)`"
)
STORE = "a store into a real array"
DRAW = "a draw of `random`"  # in a method, whose calls are not seen when it is traced
SLICE = "a slice"  # with a dynamic bound
INDEX = "an index"  # of a list or tuple, dynamic
REAL_ARRAY = "make the array inside the function with `np.zeros` or its like, or pass it as an argument"
KEY = "count in an array that the key indexes, `counts = np.zeros(n)`, `counts[key] += 1`, or `np.bincount`"
_TRACED_INDEX = "index an array of the program, `np.asarray(table)[i]`, or `np.stack(items)[i]` for a list"
_CALLS = {
    **dict.fromkeys(("str", "repr", "format"), PRINT),
    "max": "use `np.maximum(a, b)`, or `np.max(x)` for all elements",
    "min": "use `np.minimum(a, b)`, or `np.min(x)` for all elements",
    "any": "use `np.any(x)`",
    "all": "use `np.all(x)`",
    "round": "use `np.rint(x)`",
    "bool": "compute with the array itself, or convert it with `x.astype(bool)`",
    "float": "compute with the array itself, or convert it with `x.astype(float)`",
    "int": "compute with the array itself, or convert it with `x.astype(int)`",
    "complex": "compute with the array itself, or convert it with `x.astype(complex)`",
    "range": f"loop with `ml.fori_loop`, or {STATIC}",
}


@dataclass(frozen=True)
class Advice:
    """The operation that needs the value, its source location, and the code to write instead."""

    subject: str
    location: SourceLocation
    help: str


def on_truth_test(location: SourceLocation | None, what: str) -> Advice | None:
    """Advice for a location where Python tests the truth of an array."""
    if location is None:
        return None
    nodes = list(_around(location))
    found = [(i, f) for i, f in enumerate(_truth_test(node, location) for node in nodes) if f is not None]
    if not found or (not location.column and len(found) > 1 and not isinstance(found[0][1][1], ast.BoolOp)):
        return None
    position, finding = found[0]
    return _made(location, _with_control(finding, nodes[position + 1 :], location))


def on_conversion(location: SourceLocation | None, what: str) -> Advice | None:
    """Advice for a location where an array is converted to a Python number or to a real NumPy array.

    `what` is how Python asks: "`float()`", say, for the function `float` and for `math.exp` too.
    """
    if location is None:
        return None
    found = [f for f in (_conversion(node) for node in _around(location)) if f is not None]
    if not location.column:  # only the line is known: a conversion in it must be unambiguous
        ranks = [0 if f[0] == what else 1 if f[0] == STORE else 2 for f in found]
        found = [f for f, rank in zip(found, ranks) if rank == min(ranks)]
        found = found if len(found) == 1 else []
    return _made(location, found[0]) if found else None


def on_key(location: SourceLocation | None, what: str) -> Advice | None:
    """Advice for a location where an array is the key of a dict or an item of a set: of a table, that for an index."""
    found = on_conversion(location, what)
    return found if found is not None and found.subject == INDEX else None


def in_user_words(help: str, location: SourceLocation | None) -> str:
    """The help with `x1` and `x2` replaced by the operands in the source."""
    nodes = list(_around(location)) if location is not None else []
    if location is not None and not location.column:  # only the line is known: the operator, not a call in it
        nodes = [n for n in nodes if _operands(n)]
        nodes = [n for n in nodes if not isinstance(n, ast.Call)] or nodes
        nodes = nodes if len(nodes) == 1 else []
    found = [f for f in map(_operands, nodes) if f]
    if not found:
        return help
    texts = [ast.unparse(n) if isinstance(n, _SIMPLE) else f"({ast.unparse(n)})" for n in found[0]]
    return re.sub(r"\bx([12])\b", lambda m: texts[int(m[1]) - 1] if int(m[1]) <= len(texts) else m[0], help)


def return_place(definition: SourceLocation | None) -> SourceLocation | None:
    """The location of the value of a function's only `return`, or else of its definition."""
    if definition is None:
        return None
    for node in _nodes_of_line(_parsed(definition.file), definition.line):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.lineno == definition.line:
            values = [n.value for n in _own_nodes(node) if isinstance(n, ast.Return) and n.value is not None]
            return _located(definition, values[0]) if len(values) == 1 else definition
    return definition


def _own_nodes(function: ast.AST) -> Iterator[ast.AST]:
    """The nodes in a function, without those of nested functions."""
    for node in ast.iter_child_nodes(function):
        yield node
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)):
            yield from _own_nodes(node)


_SIMPLE = (ast.Name, ast.Attribute, ast.Subscript, ast.Call)


def _operands(node: ast.AST) -> list[ast.expr]:
    if isinstance(node, ast.AugAssign):
        return [node.target, node.value]
    if isinstance(node, ast.BinOp):
        return [node.left, node.right]
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        return [node.left, *node.comparators]
    return node.args if isinstance(node, ast.Call) and not node.keywords else []


# The operation that needs the value, the expression to point at, and the help.
_Finding = tuple[str, ast.expr, str]


def _made(location: SourceLocation, finding: _Finding) -> Advice:
    subject, node, help_ = finding
    return Advice(subject, _located(location, node), help_)


def _located(location: SourceLocation, node: ast.expr) -> SourceLocation:
    end_line, end = node.end_lineno or node.lineno, (node.end_col_offset or node.col_offset) + 1
    return replace(location, line=node.lineno, column=node.col_offset + 1, end_line=end_line, end_column=end)


def _with_control(finding: _Finding, outer: list[ast.AST], location: SourceLocation) -> _Finding:
    """For `a and b` in the test of an `if`, the finding is about the branch, with both helps."""
    subject, target, help_ = finding
    for node in outer:
        if isinstance(node, ast.Call):
            break
        around = _truth_test(node, location)
        if around is not None:
            subject, target, help_ = around[0], around[1], f"{around[2]}; {help_}"
    return subject, target, help_


def _around(location: SourceLocation) -> Iterator[ast.AST]:
    """The expressions around a location, the innermost first, and their statement."""
    found = [node for node in _nodes_of_line(_parsed(location.file), location.line) if _contains(node, location)]
    for node in sorted(found, key=_extent):
        yield node
        if isinstance(node, ast.stmt):
            return


def _nodes_of_line(parent: ast.AST, line: int) -> Iterator[ast.expr | ast.stmt]:
    """The statements and expressions that include a line."""
    for node in ast.iter_child_nodes(parent):
        if isinstance(node, (ast.expr, ast.stmt)):
            first = min([node.lineno, *(x.lineno for x in getattr(node, "decorator_list", ()))])
            if not first <= line <= (node.end_lineno or node.lineno):
                continue
            yield node
        yield from _nodes_of_line(node, line)


_PARSED: dict[str, tuple[list[str], ast.Module]] = {}
_PARSED_LIMIT = 16


def _parsed(file: str) -> ast.Module:
    """The syntax tree of a file, cached as each attempt to trace a loop may need it."""
    lines = linecache.getlines(file)
    known = _PARSED.get(file)
    if known is not None and known[0] is lines:
        return known[1]
    try:
        tree = parsed("".join(lines))
    except (SyntaxError, ValueError):  # a notebook cell with magic in it
        tree = ast.Module([], [])
    if len(_PARSED) >= _PARSED_LIMIT:
        _PARSED.clear()
    _PARSED[file] = lines, tree
    return tree


def _extent(node: ast.expr | ast.stmt) -> tuple[int, int]:
    return (node.end_lineno or node.lineno) - node.lineno, (node.end_col_offset or 0) - node.col_offset


def _contains(node: ast.expr | ast.stmt, location: SourceLocation) -> bool:
    end_line = node.end_lineno or node.lineno
    if not location.column:
        return node.lineno <= location.line <= end_line
    starts = (node.lineno, node.col_offset + 1) <= (location.line, location.column)
    return starts and (end_line, (node.end_col_offset or 0) + 1) >= (location.end_line, location.end_column)


def _truth_test(node: ast.AST, location: SourceLocation) -> _Finding | None:
    if isinstance(node, (ast.If, ast.IfExp)) and _asks(node, node.test, location):
        return "a branch", node.test, "select with `np.where(condition, a, b)` or `ml.cond`"
    if isinstance(node, ast.While) and _asks(node, node.test, location):
        return "a loop", node.test, "loop with `ml.while_loop`"
    if isinstance(node, ast.Assert) and _asks(node, node.test, location):
        return "an assertion", node.test, "return the condition, and check it outside"
    if isinstance(node, (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)):
        tests = [test for part in node.generators for test in part.ifs if _contains(test, location)]
        return ("a branch", tests[0], "select with `np.where(condition, a, b)`") if tests else None
    if isinstance(node, ast.BoolOp):
        word = "and" if isinstance(node.op, ast.And) else "or"
        return f"`{word}`", node, f"combine conditions with `np.logical_{word}(a, b)`"
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        return "`not`", node, "negate with `np.logical_not(a)`"
    if isinstance(node, ast.Compare) and isinstance(node.ops[0], (ast.In, ast.NotIn)):
        return "`in`", node, "look for a value with `np.any(x == value)`"
    if isinstance(node, ast.Compare) and len(node.ops) > 1:
        return "a chained comparison", node, "write it as `np.logical_and(a < b, b < c)`"
    if isinstance(node, ast.Call) and ast.unparse(node.func) in _CALLS:
        return _call(node)
    return None


def _asks(node: ast.AST, test: ast.expr, location: SourceLocation) -> bool:
    """True if the location is the test, or (Python 3.11) the whole statement because of its test."""
    if _contains(test, location):
        return True
    return isinstance(node, ast.stmt) and (node.lineno, node.col_offset + 1) == (location.line, location.column)


def _conversion(node: ast.AST) -> _Finding | None:
    if isinstance(node, ast.Call):
        return _call(node)
    if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store):
        return STORE, node, REAL_ARRAY
    if isinstance(node, ast.JoinedStr) or (isinstance(node, ast.BinOp) and _is_text(node)):
        return "formatting", node, PRINT
    if isinstance(node, ast.Subscript):
        return INDEX, node, f"{_TRACED_INDEX}; or {STATIC}"
    return None


def _is_text(node: ast.BinOp) -> bool:
    """True for the formatting of a text by `%`."""
    return isinstance(node.op, ast.Mod) and isinstance(node.left, ast.Constant) and isinstance(node.left.value, str)


def _call(node: ast.Call) -> _Finding:
    callee = ast.unparse(node.func)
    name = callee.rpartition(".")[2]
    listed = node.args[0] if node.args and isinstance(node.args[0], (ast.List, ast.ListComp)) else None
    if listed is not None and callee.startswith(("np.", "numpy.")):
        text = ast.unparse(listed)
        if name in ("array", "asarray"):
            # The function was not known to be called by traced code: it came out of a container, for example.
            rows = isinstance(listed, ast.List) and any(isinstance(item, (ast.List, ast.Tuple)) for item in listed.elts)
            return f"`{callee}()`", node, f"join the numbers by `np.stack([...])`{', row by row' if rows else ''}"
        return (
            f"`{callee}()`",
            node,
            f"make an array of the list: `{callee}(np.array({text if len(text) < 60 else '[...]'}))`",
        )
    if callee in _CALLS and hasattr(builtins, callee):
        return f"`{callee}()`", node, _CALLS[callee]
    if callee in (f"math.{name}", name) and hasattr(math, name) and hasattr(np, name):
        return f"`{callee}()`", node, f"use `np.{name}`"
    kind = getattr(np, name, None)
    if isinstance(kind, type) and issubclass(kind, np.generic):
        return f"`{callee}()`", node, f"convert with `x.astype({callee})`"
    if name == "reshape" or (callee in (f"np.{name}", f"numpy.{name}") and name.isidentifier()):
        return f"`{callee}()`", node, f"use Python numbers for sizes and limits, or {STATIC}"
    return f"`{callee}()`", node, "write it with `np.` functions, or call it outside and pass its result as an argument"
