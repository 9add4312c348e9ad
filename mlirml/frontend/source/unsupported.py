"""Statements and expressions that a function with loops cannot have, and what to write instead."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from mlirml.errors import SourceLocation, UnsupportedSyntaxError
from mlirml.frontend.source.closures import shared_names
from mlirml.frontend.source.functions import Source
from mlirml.frontend.source.generators import plain_yields
from mlirml.frontend.source.simplify import CHANGING, is_first, is_quiet

_OUTSIDE = "call what needs it outside, and pass its result as an argument"
_REFUSED: dict[str, tuple[str, str]] = {
    "Try": ("`try`", "tell the cases apart with `if`, before something fails"),
    "TryStar": ("`try`", "tell the cases apart with `if`, before something fails"),
    "With": ("`with`", _OUTSIDE),
    "AsyncWith": ("`with`", _OUTSIDE),
    "Yield": ("`yield`", "store into an array, and return that"),
    "YieldFrom": ("`yield`", "store into an array, and return that"),
    "Await": ("`await`", _OUTSIDE),
    "AsyncFor": ("`async for`", _OUTSIDE),
    "AsyncFunctionDef": ("`async def`", "write a plain function"),
    "ClassDef": ("`class`", "define the class outside of the function"),
    "Global": ("`global`", "return the new value"),
    "Nonlocal": ("`nonlocal`", "assign it before all else in the function around, outside of branches and loops"),
    "Match": ("`match` with patterns of mappings, sequences, or parts of classes by position", "write `if` and `elif`"),
    "NamedExpr": ("`:=`", "assign in a statement of its own"),
}

_BOUND = (ast.Lambda, ast.NamedExpr, ast.Yield, ast.YieldFrom, ast.Await)
"""Expressions that depend on or change the scope of a comprehension."""


def check_syntax(source: Source, name: str) -> None:
    """Raise `UnsupportedSyntaxError` for the first construct that is not compiled."""
    found = refused(source.node)
    if found is not None:
        what, help_ = _REFUSED[type(found).__name__]
        message = f"{what} in a function whose loops are compiled"
        raise UnsupportedSyntaxError(message, location=_location(source, found, name), help=help_)


def refused(node: ast.AST) -> ast.AST | None:
    """The first construct that is not compiled, in the order of the source."""
    plain = plain_yields(node)
    found = [n for n in ast.walk(node) if type(n).__name__ in _REFUSED and not is_quiet(n) and n not in plain]
    if any(isinstance(n, ast.Nonlocal) for n in found):
        shared = shared_names(node)
        found = [n for n in found if not isinstance(n, ast.Nonlocal) or not shared.issuperset(n.names)]
    if any(isinstance(n, ast.NamedExpr) for n in found):
        simple = {n for s in ast.walk(node) if isinstance(s, ast.stmt) for n in _named_first(s)}
        found = [n for n in found if n not in simple]
    return min(found, key=lambda n: (n.lineno, n.col_offset), default=None)  # type: ignore[attr-defined]


def _named_first(statement: ast.stmt) -> list[ast.AST]:
    """The names that a statement assigns in expressions, which may as well be assigned before it."""
    return [n for n in ast.walk(statement) if isinstance(n, ast.NamedExpr) and is_first(statement, n)]


def has_loops(node: ast.AST) -> bool:
    """True if there is a loop in a definition: expressions have none, and are most of it."""
    return any(isinstance(n, (ast.For, ast.While, ast.AsyncFor)) for n in _statements(node))


def _statements(node: ast.AST) -> Iterator[ast.AST]:
    """The statements of a definition, those of nested definitions included."""
    for name in ("body", "orelse", "finalbody", "handlers", "cases"):
        inner = getattr(node, name, None)
        for statement in inner if isinstance(inner, list) else ():
            yield statement
            yield from _statements(statement)


_ELEMENTS = (
    ast.BinOp, ast.UnaryOp, ast.Call, ast.Name, ast.Subscript, ast.IfExp, ast.Tuple, ast.List, ast.Compare, ast.BoolOp,
)  # fmt: skip


def may_be_loop(node: ast.ListComp) -> bool:
    """True if a list comprehension can be a loop that appends to a list: `Hooks.listed` checks that items are new."""
    generator = node.generators[0]
    return (
        len(node.generators) == 1
        and _is_plain(generator.target)
        and not generator.ifs
        and not generator.is_async
        and isinstance(node.elt, _ELEMENTS)
        and not any(isinstance(inner, _BOUND) for inner in ast.walk(node.elt))
    )


_FOLDS = {"sum": 2, "max": 1, "min": 1, "any": 1, "all": 1}


def is_folded(node: ast.Call) -> bool:
    """True if a call of `sum` or its like, by name, takes a generator that can be a loop which carries the total."""
    if not isinstance(node.func, ast.Name) or node.keywords or not node.args:
        return False
    generator = node.args[0]
    if not isinstance(generator, ast.GeneratorExp) or len(node.args) > _FOLDS.get(node.func.id, 0):
        return False
    return all(_is_plain(part.target) and not part.is_async for part in generator.generators) and not any(
        isinstance(inner, _BOUND) for inner in ast.walk(generator)
    )


def has_selections(node: ast.AST) -> bool:
    """True if there is a comprehension in a definition that can be such loops."""
    return any(isinstance(n, (ast.ListComp, ast.GeneratorExp)) and is_selection(n) for n in ast.walk(node))


READERS = ("sum", "max", "min", "any", "all", "sorted", "list", "tuple")
"""The functions that read all items of an iterable."""


def reads_items(node: ast.Call) -> bool:
    """True if a call, judging by its name, reads all items of a generator that is its first argument."""
    named = isinstance(node.func, ast.Name) and node.func.id in READERS
    return named and bool(node.args) and isinstance(node.args[0], ast.GeneratorExp)


def takes_first(node: ast.Call) -> bool:
    """True if a call, judging by its name, takes the first item of a generator, with a default that costs nothing."""
    if not is_call_of(node, "next") or len(node.args) != 2 or not isinstance(node.args[0], ast.GeneratorExp):
        return False
    plain = (ast.Constant, ast.Name, ast.Tuple, ast.UnaryOp, ast.unaryop, ast.expr_context)
    return all(isinstance(part, plain) for part in ast.walk(node.args[1]))


def is_filter(node: ast.AST) -> bool:
    """True for a call of `filter`, judging by its name."""
    return isinstance(node, ast.Call) and is_call_of(node, "filter") and len(node.args) == 2


def reads_filter(node: ast.Call) -> bool:
    """True if a call, judging by its name, reads all items of a `filter` that is its first argument."""
    return any(is_call_of(node, name) for name in READERS) and bool(node.args) and is_filter(node.args[0])


def is_call_of(node: ast.Call, name: str) -> bool:
    """True for a call of a function without keywords, judging by its name."""
    return isinstance(node.func, ast.Name) and node.func.id == name and not node.keywords


def is_selection(node: ast.ListComp | ast.GeneratorExp) -> bool:
    """True if a comprehension, or one in it, has conditions, or it has loops in its loops, and may be loops that append
    to a list.
    """
    parts = list(ast.walk(node))
    generators = [part for part in parts if isinstance(part, ast.comprehension)]
    tests = [part for g in generators for test in g.ifs for part in ast.walk(test)]
    return (
        (bool(tests) or len(node.generators) > 1)
        and not any(isinstance(part, _BOUND) for part in parts)
        and not any(g.is_async for g in generators)
        and not any(isinstance(part, ast.Attribute) and part.attr in CHANGING for part in tests)
    )


def _is_plain(target: ast.expr) -> bool:
    """True for a name, and a tuple of names."""
    names = target.elts if isinstance(target, ast.Tuple) else [target]
    return all(isinstance(name, ast.Name) for name in names)


def has_long_lists(node: ast.AST) -> bool:
    """True if there is a comprehension in a definition that can be a loop."""
    return any(
        may_be_loop(n) if isinstance(n, ast.ListComp) else isinstance(n, ast.Call) and is_folded(n)
        for n in ast.walk(node)
    )


def _location(source: Source, node: ast.AST, name: str) -> SourceLocation:
    line, column = node.lineno, node.col_offset + 1  # type: ignore[attr-defined]
    end_line, end = node.end_lineno or line, (node.end_col_offset or 0) + 1  # type: ignore[attr-defined]
    return SourceLocation(source.file, line, column, end_line, end, name)


def text_of(error: ast.Call) -> str:
    """The text of an exception whose message is made of dynamic values: the string that they are put into."""
    found = [n.value for arg in error.args for n in ast.walk(arg) if isinstance(n, ast.Constant)]
    texts = [value for value in found if isinstance(value, str)]
    return max(texts, key=len, default=", ".join(map(ast.unparse, error.args)))
