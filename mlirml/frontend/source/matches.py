"""`match` statements as `if` statements.

    match state, k:                     state, then k are evaluated once
        case "up" | "high", 0:          if (state == "up" or state == "high") and k == 0:
            x = x + 1                       x = x + 1
        case _, n if n > 3:             else:
            x = x * n                       n = k
        case _:                             if n > 3:
            x = x - 1                           x = x * n
                                            else:
                                                x = x - 1

Patterns are literals, dotted names, classes with patterns of attributes, which are calls of `isinstance`, alternatives
of these, names, and sequences of them for a tuple that is written out. Statements with others (mappings, sequences of
any length) are unchanged.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Mapping, Sequence
from typing import TypeVar

_Node = TypeVar("_Node", bound=ast.AST)
_OF_THEMSELVES = {"bool", "bytearray", "bytes", "dict", "float", "frozenset", "int", "list", "set", "str", "tuple"}
"""Classes whose pattern with one position, `int(n)`, is for the value."""


class _OtherPattern(Exception):
    pass


def without_matches(node: _Node) -> _Node:
    """A definition without those `match` statements that are written as `if` statements."""
    found: _Node = _Matches().visit(node)
    return found


class _Matches(ast.NodeTransformer):
    def visit_Match(self, node: ast.Match) -> list[ast.stmt] | ast.Match:
        self.generic_visit(node)
        if any(isinstance(part, ast.Starred) for part in ast.walk(node.subject)):
            return node
        parts = node.subject.elts if isinstance(node.subject, ast.Tuple) else [node.subject]
        bound = {part.name for case in node.cases for part in ast.walk(case.pattern) if isinstance(part, ast.MatchAs)}
        names = [
            part.id
            if isinstance(part, ast.Name) and part.id not in bound
            else f"__subject{number}_{node.lineno}_{node.col_offset}"
            for number, part in enumerate(parts)
        ]
        made = [_assigned(name, part) for name, part in zip(names, parts) if name != getattr(part, "id", None)]
        try:
            return [*made, *_branches(node.cases, names, is_tuple=isinstance(node.subject, ast.Tuple))]
        except _OtherPattern:
            return node


def _branches(cases: Sequence[ast.match_case], names: Sequence[str], *, is_tuple: bool) -> list[ast.stmt]:
    """The statements of the first case that fits."""
    if not cases:
        return []
    case, *others = cases
    pattern = case.pattern
    tests: list[ast.expr] = []
    bound: list[ast.stmt] = []
    is_any = isinstance(pattern, ast.MatchAs) and pattern.name is None
    if not is_tuple or not is_any:
        for name, inner in zip(names, _inner(pattern, len(names)) if is_tuple else [pattern], strict=True):
            new, binds = _test(inner, ast.Name(name, ast.Load()))
            tests += new
            bound += binds
    rest = _branches(others, names, is_tuple=is_tuple)
    if case.guard is None:
        body = [*bound, *case.body]
        return [_at(ast.If(_joined(ast.And(), tests, pattern), body, rest), pattern)] if tests else body
    if not tests:
        return [*bound, _at(ast.If(case.guard, case.body, rest), pattern)]
    if bound:  # the guard reads what the names are bound to; where only the guard is false, they are bound nevertheless
        rest = [
            _at(ast.If(_joined(ast.And(), copy.deepcopy(tests), pattern), copy.deepcopy(bound), []), pattern),
            *rest,
        ]
    guard = _Bound({one.targets[0].id: one.value for one in bound}).visit(copy.deepcopy(case.guard))  # type: ignore[attr-defined]
    return [_at(ast.If(_joined(ast.And(), [*tests, guard], pattern), [*bound, *case.body], rest), pattern)]


class _Bound(ast.NodeTransformer):
    """Names replaced by the values that they are bound to."""

    def __init__(self, values: Mapping[str, ast.expr]) -> None:
        self._values = values

    def visit_Name(self, node: ast.Name) -> ast.expr:
        found = self._values.get(node.id)
        return node if found is None else copy.deepcopy(found)


def _inner(pattern: ast.pattern, count: int) -> Sequence[ast.pattern]:
    """The patterns for the items of a tuple."""
    if not isinstance(pattern, ast.MatchSequence) or len(pattern.patterns) != count:
        raise _OtherPattern
    return pattern.patterns


def _test(pattern: ast.pattern, value: ast.expr) -> tuple[list[ast.expr], list[ast.stmt]]:
    """The conditions for a pattern to fit a value, which is evaluated any number of times; names that it assigns."""
    if isinstance(pattern, ast.MatchValue):
        return [_at(ast.Compare(value, [ast.Eq()], [pattern.value]), pattern)], []
    if isinstance(pattern, ast.MatchSingleton):
        return [_at(ast.Compare(value, [ast.Is()], [ast.Constant(pattern.value)]), pattern)], []
    if isinstance(pattern, ast.MatchOr):
        tests = [_test(each, value) for each in pattern.patterns]
        if any(binds or not conditions for conditions, binds in tests):
            raise _OtherPattern
        return [_joined(ast.Or(), [_joined(ast.And(), one, pattern) for one, _ in tests], pattern)], []
    if isinstance(pattern, ast.MatchAs):
        conditions, binds = ([], []) if pattern.pattern is None else _test(pattern.pattern, value)
        return conditions, binds if pattern.name is None else [*binds, _assigned(pattern.name, _at(value, pattern))]
    if isinstance(pattern, ast.MatchClass):
        return _of_class(pattern, value)
    raise _OtherPattern


def _of_class(pattern: ast.MatchClass, value: ast.expr) -> tuple[list[ast.expr], list[ast.stmt]]:
    """`isinstance`, and the conditions of attributes; Python's classes have one position, for the value itself."""
    is_own = isinstance(pattern.cls, ast.Name) and pattern.cls.id in _OF_THEMSELVES
    if pattern.patterns and not (is_own and len(pattern.patterns) == 1):
        raise _OtherPattern
    tests: list[ast.expr] = [_at(ast.Call(ast.Name("isinstance", ast.Load()), [value, pattern.cls], []), pattern)]
    parts = [(value, inner) for inner in pattern.patterns]
    parts += [(ast.Attribute(value, name, ast.Load()), p) for name, p in zip(pattern.kwd_attrs, pattern.kwd_patterns)]
    bound: list[ast.stmt] = []
    for part, inner in parts:
        conditions, binds = _test(inner, _at(part, pattern))
        tests += conditions
        bound += binds
    return tests, bound


def _joined(operator: ast.boolop, tests: list[ast.expr], origin: ast.AST) -> ast.expr:
    return tests[0] if len(tests) == 1 else _at(ast.BoolOp(operator, tests), origin)


def _assigned(name: str, value: ast.expr) -> ast.stmt:
    return _at(ast.Assign([ast.Name(name, ast.Store())], value), value)


def _at(new: _Node, origin: ast.AST) -> _Node:
    return ast.fix_missing_locations(ast.copy_location(new, origin))
