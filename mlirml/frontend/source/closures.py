"""Variables that nested functions assign as `nonlocal`: they become the items of lists.

    count = 0                                   count = 0
                                                count = [count]
    def swap(i, j):                             def swap(i, j):
        nonlocal count
        count += 1                                  count[0] += 1

    for i in range(n):                          for i in range(n):
        swap(i, i + 1)                              swap(i, i + 1)
    return count                                return count[0]

A list is carried by loops that call the function, as any other one that is stored into.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TypeVar

Names = frozenset[str]
_Node = TypeVar("_Node", bound=ast.AST)
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)


def shared_names(function: ast.AST) -> Names:
    """The variables of a function that nested ones assign, and that can be items of lists."""
    if not isinstance(function, ast.FunctionDef):
        return frozenset()
    declared = {
        name
        for nested in _nested(function.body)
        for part in nested.body
        if isinstance(part, ast.Nonlocal)
        for name in part.names
    }
    return frozenset(name for name in declared if _is_shared(function, name))


def with_shared_lists(function: ast.FunctionDef) -> ast.FunctionDef:
    """The function with such variables as the items of lists."""
    names = shared_names(function)
    if names:
        firsts = {name: _first(function, name) for name in sorted(names)}
        body: list[ast.stmt] = []
        for statement in function.body:
            made = [name for name, first in firsts.items() if first is statement]
            body.append(Items(names.difference(made)).visit(statement))
            body += [_new_list(name, statement) for name in made]
        function.body = body
    return function


def _nested(body: list[ast.stmt]) -> Iterator[ast.FunctionDef]:
    """The functions that a body defines, in branches and loops too."""
    for statement in body:
        for part in ast.walk(statement):
            if isinstance(part, ast.FunctionDef):
                yield part


def _is_shared(function: ast.FunctionDef, name: str) -> bool:
    """True if a name is that of a variable of this function alone, which is assigned before all else."""
    if name in {a.arg for part in ast.walk(function) for a in _arguments(part)} or _first(function, name) is None:
        return False
    for part in ast.walk(function):
        names = [part.target] if isinstance(part, (ast.NamedExpr, ast.comprehension)) else []
        if any(isinstance(n, ast.Name) and n.id == name for target in names for n in ast.walk(target)):
            return False
        if isinstance(part, ast.Name) and part.id == name and isinstance(part.ctx, ast.Del):
            return False
        if isinstance(part, (ast.Global, ast.ClassDef)):
            return False
        if isinstance(part, ast.FunctionDef) and part is not function and _has_own(part, name):
            return False
    return True


def _has_own(function: ast.FunctionDef, name: str) -> bool:
    """True if a nested function has another variable of a name."""
    declared = any(isinstance(part, ast.Nonlocal) and name in part.names for part in function.body)
    return not declared and _assigns(function, name)


def _arguments(node: ast.AST) -> list[ast.arg]:
    return [a for a in ast.walk(node.args) if isinstance(a, ast.arg)] if isinstance(node, _SCOPES[:3]) else []


def _assigns(function: ast.FunctionDef, name: str) -> bool:
    """True if a function assigns a name, by statements of its own."""
    todo: list[ast.AST] = [*function.body]
    while todo:
        part = todo.pop()
        if isinstance(part, ast.Name) and part.id == name and not isinstance(part.ctx, ast.Load):
            return True
        if isinstance(part, _SCOPES):
            if getattr(part, "name", None) == name:
                return True
            continue
        todo += ast.iter_child_nodes(part)
    return False


def _first(function: ast.FunctionDef, name: str) -> ast.Assign | ast.AnnAssign | None:
    """The assignment that makes a variable, if no other statement but definitions is before it and names it."""
    for statement in function.body:
        if isinstance(statement, ast.FunctionDef):
            if statement.name == name:
                return None
            continue
        if not any(isinstance(part, ast.Name) and part.id == name for part in ast.walk(statement)):
            continue
        if not isinstance(statement, (ast.Assign, ast.AnnAssign)) or statement.value is None:
            return None
        named = [part for part in ast.walk(statement) if isinstance(part, ast.Name) and part.id == name]
        return statement if all(isinstance(part.ctx, ast.Store) for part in named) else None
    return None


def _new_list(name: str, origin: ast.stmt) -> ast.stmt:
    """`name = [name]`."""
    items = _at(ast.List([_at(ast.Name(name, ast.Load()), origin)], ast.Load()), origin)
    return _at(ast.Assign([_at(ast.Name(name, ast.Store()), origin)], items), origin)


class Items(ast.NodeTransformer):
    """Variables of some names become the first items of lists of these names."""

    def __init__(self, names: Names) -> None:
        self.names = names

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if node.id not in self.names:
            return node
        return _at(ast.Subscript(_at(ast.Name(node.id, ast.Load()), node), _at(ast.Constant(0), node), node.ctx), node)

    def visit_Nonlocal(self, node: ast.Nonlocal) -> ast.stmt:
        names = [name for name in node.names if name not in self.names]
        return _at(ast.Nonlocal(names) if names else ast.Pass(), node)


def _at(node: _Node, origin: ast.AST) -> _Node:
    return ast.copy_location(node, origin)
