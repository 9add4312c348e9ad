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

Patterns are literals, dotted names, alternatives of these, names, and sequences of them for a tuple that is written
out. Statements with others (classes, mappings, sequences of any length) are unchanged.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import TypeVar

_Node = TypeVar("_Node", bound=ast.AST)


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
            new, binds = _test(inner, name)
            tests += new
            bound += binds
    if case.guard is not None:
        if tests and bound:  # names are bound before the guard is evaluated, and only if the pattern fits
            raise _OtherPattern
        tests.append(case.guard)
        first, body = bound, case.body
    else:
        first, body = [], [*bound, *case.body]
    if not tests:
        return body
    rest = _branches(others, names, is_tuple=is_tuple)
    return [*first, _at(ast.If(_joined(ast.And(), tests, pattern), body, rest), pattern)]


def _inner(pattern: ast.pattern, count: int) -> Sequence[ast.pattern]:
    """The patterns for the items of a tuple."""
    if not isinstance(pattern, ast.MatchSequence) or len(pattern.patterns) != count:
        raise _OtherPattern
    return pattern.patterns


def _test(pattern: ast.pattern, name: str) -> tuple[list[ast.expr], list[ast.stmt]]:
    """The conditions for a pattern to fit the value of a name, and the names that it assigns."""
    value = ast.Name(name, ast.Load())
    if isinstance(pattern, ast.MatchValue):
        return [_at(ast.Compare(value, [ast.Eq()], [pattern.value]), pattern)], []
    if isinstance(pattern, ast.MatchSingleton):
        return [_at(ast.Compare(value, [ast.Is()], [ast.Constant(pattern.value)]), pattern)], []
    if isinstance(pattern, ast.MatchOr):
        tests = [_test(each, name) for each in pattern.patterns]
        if any(binds or not conditions for conditions, binds in tests):
            raise _OtherPattern
        return [_joined(ast.Or(), [_joined(ast.And(), one, pattern) for one, _ in tests], pattern)], []
    if isinstance(pattern, ast.MatchAs):
        conditions, binds = ([], []) if pattern.pattern is None else _test(pattern.pattern, name)
        return conditions, binds if pattern.name is None else [*binds, _assigned(pattern.name, _at(value, pattern))]
    raise _OtherPattern


def _joined(operator: ast.boolop, tests: list[ast.expr], origin: ast.AST) -> ast.expr:
    return tests[0] if len(tests) == 1 else _at(ast.BoolOp(operator, tests), origin)


def _assigned(name: str, value: ast.expr) -> ast.stmt:
    return _at(ast.Assign([ast.Name(name, ast.Store())], value), value)


def _at(new: _Node, origin: ast.AST) -> _Node:
    return ast.fix_missing_locations(ast.copy_location(new, origin))
