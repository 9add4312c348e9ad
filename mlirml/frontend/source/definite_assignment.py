"""Definite assignment in statements with jumps, before flags take the place of these.

    for i in range(n):
        if x[i] > 0.7:
            s = 1.0
        elif x[i] > 0.3:
            s = 2.0
        else:
            continue
        total += s * x[i]

After the `if`, `s` has a value wherever the statement is reached, and nothing reads it after this iteration.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

from mlirml.core.dataclass import dataclass
from mlirml.frontend.source.liveness import Names, assigned, loaded, read_by_functions

_NONE: Names = frozenset()


def always_assigned(statements: Sequence[ast.stmt]) -> Names:
    """The names that statements assign on every path to their end; none if no path leads there."""
    return _always_assigned(statements) or _NONE


def _always_assigned(statements: Sequence[ast.stmt]) -> Names | None:
    found = _NONE
    for statement in statements:
        if isinstance(statement, (ast.Break, ast.Continue, ast.Return, ast.Raise)):
            return None
        if isinstance(statement, ast.If):
            ways = [way for part in (statement.body, statement.orelse) if (way := _always_assigned(part)) is not None]
            if not ways:
                return None
            found |= frozenset.intersection(*ways)
        elif not isinstance(statement, (ast.For, ast.While)):
            found |= assigned([statement])
    return found


@dataclass(frozen=True)
class _Targets:
    """The live names at the targets of jumps."""

    stop: Names = _NONE
    skip: Names = _NONE


class Live:
    """For each statement of a function, the names that may be read before they are assigned.

    `before` has those live before the statement, `after` those live after the block that contains it.
    """

    def __init__(self, function: ast.FunctionDef) -> None:
        self.before: dict[ast.stmt, Names] = {}
        self.after: dict[ast.stmt, Names] = {}
        self._held = read_by_functions(function.body)
        self._block(function.body, self._held, _Targets())

    def _block(self, statements: Sequence[ast.stmt], after: Names, targets: _Targets) -> Names:
        live = after
        for statement in reversed(statements):
            live = self._statement(statement, live, targets) | self._held
            self.before[statement], self.after[statement] = live, after
        return live

    def _statement(self, node: ast.stmt, after: Names, targets: _Targets) -> Names:
        if isinstance(node, ast.Break):
            return targets.stop
        if isinstance(node, ast.Continue):
            return targets.skip
        if isinstance(node, (ast.Return, ast.Raise)):
            return loaded(node)
        if isinstance(node, ast.If):
            ways = [self._block(part, after, targets) for part in (node.body, node.orelse)]
            return ways[0] | ways[1] | loaded(node.test)
        if isinstance(node, (ast.For, ast.While)):
            return self._loop(node, after, targets)
        read = loaded(node)
        if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
            read |= {node.target.id}
        return (after - assigned([node])) | read

    def _loop(self, node: ast.For | ast.While, after: Names, targets: _Targets) -> Names:
        ended = self._block(node.orelse, after, targets)
        given = assigned([node.target]) if isinstance(node, ast.For) else _NONE
        asked = _NONE if isinstance(node, ast.For) else loaded(node.test)
        head = ended | asked
        while True:
            body = self._block(node.body, head, _Targets(after, head))
            if body - given <= head:
                return head | (loaded(node.iter) if isinstance(node, ast.For) else _NONE)
            head |= body - given
