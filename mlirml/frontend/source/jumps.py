"""`break`, `continue` and `return` in loops and branches lowered to flags, so that every block runs to its end.

    for i in range(n):                   stop = False
        if a[i] < 0:                     for i in range(n):      # while not stop
            break                            if a[i] < 0:
        s += a[i]                                stop = True
                                             else:
                                                 s += a[i]

A branch that always jumps takes no flag for what follows it: that goes into the other branch. The names of flags begin
with a dot, so that no user's name is one of them.

What an `if` assigns wherever it does not jump has a value in what follows it, though not after each of its branches:
such an `if` gets `fills`, those of these names that nothing else reads.
"""

from __future__ import annotations

import ast
from dataclasses import field
from typing import TypeVar

from mlirml.core.dataclass import dataclass
from mlirml.frontend.source.definite_assignment import Live, always_assigned

_Node = TypeVar("_Node", bound=ast.AST)

RESULT = ".result"
RETURNED = ".returned"


@dataclass
class _Loop:
    """A loop around a statement: its index, and the flags that its body needs."""

    number: int
    stops: bool = False
    skips: bool = False

    @property
    def stop(self) -> str:
        return f".stop{self.number}"

    @property
    def skip(self) -> str:
        return f".skip{self.number}"


@dataclass
class _Block:
    """Lowered statements, and whether they jump: never, on some paths, or on all."""

    body: list[ast.stmt] = field(default_factory=list)
    jumps: str = "never"


def without_jumps(function: ast.FunctionDef) -> list[ast.stmt]:
    """The body of a function with flags instead of jumps, and one `return` at its end."""
    return _Jumps(function).lowered()


class _Jumps:
    def __init__(self, function: ast.FunctionDef) -> None:
        self.function = function
        self.live = Live(function)
        self.loops = 0
        own = list(_own_statements(function.body))
        self.returns = [s for s in own if isinstance(s, ast.Return)]
        self.gives = any(r.value is not None and not _is_none(r.value) for r in self.returns)
        last = function.body[-1]
        nested = [r for r in self.returns if r is not last]
        self.trivial = not nested
        self.flagged = False

    def lowered(self) -> list[ast.stmt]:
        body = list(self.function.body)
        if self.trivial:
            return self.block(body, None).body
        last = body[-1]
        if self.gives and not _always_ends(last):
            body.append(_at(ast.Return(_at(ast.Constant(None), last)), last))
        found = self.block(body, None).body
        if self.flagged:
            found.insert(0, _set(RETURNED, False, self.function.body[0]))
        if self.gives:
            found.append(_at(ast.Return(_at(ast.Name(RESULT, ast.Load()), self.returns[-1])), self.returns[-1]))
        return found

    def block(self, statements: list[ast.stmt], loop: _Loop | None) -> _Block:
        """Lower statements in a loop, or in none."""
        found = _Block()
        for number, statement in enumerate(statements):
            rest = statements[number + 1 :]
            if isinstance(statement, (ast.Break, ast.Continue, ast.Return)):
                found.body += self.jump(statement, loop)
                found.jumps = "always"
                return found
            if isinstance(statement, ast.If):
                done = self.branch(found, statement, rest, loop)
            elif isinstance(statement, (ast.For, ast.While)):
                done = self.loop(found, statement, rest, loop)
            else:
                found.body.append(statement)
                done = False
            if done:
                return found
        return found

    def jump(self, statement: ast.stmt, loop: _Loop | None) -> list[ast.stmt]:
        """The assignments of flags that lower a jump."""
        if isinstance(statement, ast.Return):
            if self.trivial:
                return [statement]
            body: list[ast.stmt] = []
            if self.gives:
                value = statement.value or _at(ast.Constant(None), statement)
                body.append(_at(ast.Assign([_at(ast.Name(RESULT, ast.Store()), statement)], value), statement))
            if loop is not None:
                self.flagged = True
                body += [_set(RETURNED, True, statement), *self.set_stop(loop, statement)]
            else:
                body.append(_set(RETURNED, True, statement))
            return body
        assert loop is not None
        if isinstance(statement, ast.Break):
            return self.set_stop(loop, statement)
        loop.skips = True
        return [_set(loop.skip, True, statement)]

    def set_stop(self, loop: _Loop, statement: ast.stmt) -> list[ast.stmt]:
        loop.stops = loop.skips = True
        return [_set(loop.stop, True, statement), _set(loop.skip, True, statement)]

    def branch(self, found: _Block, node: ast.If, rest: list[ast.stmt], loop: _Loop | None) -> bool:
        """Lower an `if`, and the statements after it as far as they must move into it; True if those are all."""
        then, other = self.block(node.body, loop), self.block(node.orelse, loop)
        if then.jumps == other.jumps == "never":
            lowered = self.assigning(_at(ast.If(node.test, then.body, other.body), node), [node])
            if any(isinstance(s, ast.Raise) for s in _own_statements([node])):  # after which nothing is read
                lowered.fills = always_assigned([node])  # type: ignore[attr-defined]
            found.body.append(lowered)
            return False
        if then.jumps == "always" and other.jumps == "always":
            found.body.append(_at(ast.If(node.test, then.body, other.body), node))
            found.jumps = "always"
            return True
        if then.jumps == "always" and other.jumps == "never":
            more = self.block(rest, loop)
            other = _Block([*other.body, *more.body], more.jumps)
            found.jumps = "always" if more.jumps == "always" else "sometimes"
        elif other.jumps == "always" and then.jumps == "never":
            more = self.block(rest, loop)
            then = _Block([*then.body, *more.body], more.jumps)
            found.jumps = "always" if more.jumps == "always" else "sometimes"
        else:
            lowered = self.assigning(_at(ast.If(node.test, then.body, other.body), node), [node])
            found.body.append(lowered)
            self.guard(found, rest, loop, node)
            for inner in _branches(found.body[found.body.index(lowered) :]):
                inner.fills = getattr(inner, "assigns", frozenset()) - self.live.after[node]  # type: ignore[attr-defined]
            return True
        lowered = _at(ast.If(node.test, then.body, other.body or [_at(ast.Pass(), node)]), node)
        found.body.append(self.assigning(lowered, [node, *rest]))
        return True

    def guard(self, found: _Block, rest: list[ast.stmt], loop: _Loop | None, node: ast.stmt) -> None:
        """Guard the statements after one that may have jumped."""
        more = self.block(rest, loop)
        found.jumps = "always" if more.jumps == "always" else "sometimes"
        if not more.body:
            return
        if loop is None:
            self.flagged = True
            flag = RETURNED
        else:
            loop.skips = True
            flag = loop.skip
        found.body.append(self.assigning(_at(ast.If(_not(flag, node), more.body, []), node), rest))

    def assigning(self, lowered: ast.If, statements: list[ast.stmt]) -> ast.If:
        """The lowered `if`, annotated with the names that the statements assign, and those live before them."""
        lowered.assigns, lowered.before = always_assigned(statements), self.live.before.get(statements[0], frozenset())  # type: ignore[attr-defined]
        return lowered

    def loop(self, found: _Block, node: ast.For | ast.While, rest: list[ast.stmt], outer: _Loop | None) -> bool:
        """Lower a loop with its flags, and the statements after it as far as they must be guarded; True if those are
        all.
        """
        self.loops += 1
        inner = _Loop(self.loops)
        returns = any(isinstance(s, ast.Return) for s in _own_statements(node.body))
        body = self.block(node.body, inner).body
        if inner.skips:
            body.insert(0, _set(inner.skip, False, node))
        if inner.stops:
            found.body.append(_set(inner.stop, False, node))
        loop: ast.stmt
        if isinstance(node, ast.While):
            test = node.test
            if inner.stops:
                test = _at(ast.BoolOp(ast.And(), [_not(inner.stop, node.test), test]), node.test)
            loop = _at(ast.While(test, body, []), node)
        else:
            loop = _at(ast.For(node.target, node.iter, body, []), node)
            loop.stop = inner.stop if inner.stops else ""  # type: ignore[attr-defined]
        found.body.append(loop)
        followed = [*node.orelse]
        if followed and inner.stops:
            orelse = self.block(followed, outer)
            found.body.append(_at(ast.If(_not(inner.stop, node), orelse.body, []), node))
            if orelse.jumps != "never":
                self.guard(found, rest, outer, node)
                return True
        elif followed:
            more = self.block([*followed, *rest], outer)
            found.body += more.body
            found.jumps = more.jumps
            return True
        if not returns:
            return False
        if outer is not None:
            # A `return` in the inner loop ends this one too.
            self.flagged = True
            stop = [_set(outer.stop, True, node), _set(outer.skip, True, node)]
            outer.stops = outer.skips = True
            found.body.append(_at(ast.If(_at(ast.Name(RETURNED, ast.Load()), node), stop, []), node))
        if is_endless(node):  # the statements after it are unreachable
            found.jumps = "always"
        else:
            self.guard(found, rest, outer, node)
        return True


def is_endless(node: ast.stmt) -> bool:
    """True if a statement is a `while True` that only a `return` ends."""
    if not isinstance(node, ast.While) or not isinstance(node.test, ast.Constant) or not node.test.value:
        return False
    return not _breaks(node)


def _breaks(node: ast.For | ast.While) -> bool:
    """True if a `break` may end a loop."""
    return any(isinstance(s, ast.Break) for s in _of_loop(node.body))


def _always_ends(node: ast.stmt) -> bool:
    """True if nothing after a statement is reached: it returns or raises in the end."""
    if isinstance(node, ast.If):
        return bool(node.orelse) and _always_ends(node.body[-1]) and _always_ends(node.orelse[-1])
    if isinstance(node, (ast.For, ast.While)) and node.orelse and not _breaks(node):
        return _always_ends(node.orelse[-1])
    return isinstance(node, (ast.Return, ast.Raise)) or is_endless(node)


def _of_loop(statements: list[ast.stmt]) -> list[ast.stmt]:
    """The statements of a loop's body whose `break` ends this loop."""
    inner = {id(s) for loop in _own_statements(statements) if _is_loop(loop) for s in _own_statements(loop.body)}  # type: ignore[attr-defined]
    return [s for s in _own_statements(statements) if id(s) not in inner]


def _is_loop(node: ast.stmt) -> bool:
    return isinstance(node, (ast.For, ast.While))


def _own_statements(statements: list[ast.stmt]) -> list[ast.stmt]:
    """The statements and their nested ones, without those of nested functions."""
    found = []
    for statement in statements:
        found.append(statement)
        if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            continue
        for name in ("body", "orelse"):
            found += _own_statements(getattr(statement, name, []))
    return found


def _branches(statements: list[ast.stmt]) -> list[ast.If]:
    """The branches in statements, and in branches of them."""
    found = [s for s in statements if isinstance(s, ast.If)]
    return found + [inner for s in found for inner in _branches([*s.body, *s.orelse])]


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _at(node: _Node, origin: ast.AST) -> _Node:
    return ast.copy_location(node, origin)


def _set(flag: str, value: bool, origin: ast.AST) -> ast.stmt:
    target = _at(ast.Name(flag, ast.Store()), origin)
    return _at(ast.Assign([target], _at(ast.Constant(value), origin)), origin)


def _not(flag: str, origin: ast.AST) -> ast.expr:
    return _at(ast.UnaryOp(ast.Not(), _at(ast.Name(flag, ast.Load()), origin)), origin)
