"""Functions that call themselves last, as loops: how often depends on data then.

    def gcd(a, b):                  def gcd(a, b):
        if b == 0:                      while True:
            return a                        if b == 0:
        return gcd(b, a % b)                    return a
                                            a, b = b, a % b

One is a loop where it is nested in branches on data several times. Where it cannot be one, as its parameters change
their shapes, it is unfolded.
"""

from __future__ import annotations

import ast
import inspect
import types
import weakref
from collections.abc import Callable
from contextvars import ContextVar
from copy import deepcopy
from typing import TypeVar

from mlirml.errors import CaptureError
from mlirml.frontend.source.definite_assignment import Live
from mlirml.frontend.source.generators import global_value
from mlirml.frontend.source.liveness import assigned

UNFOLDED = 4
"""How often a branch of such a function may be nested in itself before it is to be a loop."""

_LOOPED: ContextVar[frozenset[types.CodeType] | None] = ContextVar("looped", default=frozenset())
_PARTS: weakref.WeakKeyDictionary[types.CodeType, types.CodeType] = weakref.WeakKeyDictionary()
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
_Result = TypeVar("_Result")
_Node = TypeVar("_Node", bound=ast.AST)


class TailRecursion(BaseException):
    """A function is unfolded often enough to be a loop."""

    def __init__(self, code: types.CodeType) -> None:
        self.code = code


def with_tail_loops(captured: Callable[[], _Result]) -> _Result:
    """The result of a capture, in which tail calls are loops where that is possible."""
    looped: frozenset[types.CodeType] | None = frozenset()
    while True:
        token = _LOOPED.set(looped)
        try:
            return captured()
        except TailRecursion as reason:
            assert looped is not None
            looped |= {reason.code}
        except CaptureError:
            if not looped:
                raise
            looped = None
        finally:
            _LOOPED.reset(token)


def is_looped(code: types.CodeType) -> bool:
    """True if the tail calls of a function are to be a loop."""
    return code in (_LOOPED.get() or ())


def note_parts(made: types.CodeType, code: types.CodeType) -> None:
    """Note the functions of which the rewritten code of a function consists, which may be a loop."""
    for const in made.co_consts:
        if isinstance(const, types.CodeType):
            _PARTS[const] = code
            note_parts(const, code)


def check_depth(part: types.CodeType, depth: int) -> None:
    """Raise `TailRecursion` for a branch that is nested in itself, of a function that may be a loop."""
    code = _PARTS.get(part) if depth >= UNFOLDED else None
    looped = _LOOPED.get()
    if code is not None and looped is not None and code not in looped:
        raise TailRecursion(code)


def calls_itself(function: types.FunctionType, name: str) -> bool:
    """True if a name in a function is that of itself, compiled or not, and it is no generator."""
    if inspect.isgeneratorfunction(function):
        return False
    named = global_value(function, name)
    return getattr(getattr(named, "__wrapped__", named), "__code__", None) is function.__code__


def with_branches(function: ast.FunctionDef) -> ast.FunctionDef:
    """A copy of a function whose conditional tail calls, `return a if b else f(x)`, are in branches."""
    found: ast.FunctionDef = _Choices(function.name).visit(deepcopy(function))
    return found


class _Choices(ast.NodeTransformer):
    def __init__(self, name: str) -> None:
        self.name = name

    def visit_Return(self, node: ast.Return) -> ast.stmt:
        value = node.value
        if not isinstance(value, ast.IfExp) or not _count(value, self.name):
            return node
        parts = [[self.visit(_at(ast.Return(part), node))] for part in (value.body, value.orelse)]
        return _at(ast.If(value.test, *parts), node)


def with_loop(function: ast.FunctionDef) -> ast.FunctionDef | None:
    """A copy of a function with a loop for its tail calls; None if it calls itself elsewhere, or in no such way."""
    function = with_branches(function)
    arguments = function.args
    plain = [*arguments.posonlyargs, *arguments.args]
    if arguments.vararg or arguments.kwarg or arguments.kwonlyargs or _count(function, function.name) == 0:
        return None
    if any(isinstance(n, _SCOPES) and n is not function for n in ast.walk(function)):
        return None
    stale = Live(function).before[function.body[0]] & assigned(function.body)
    if not stale <= {a.arg for a in plain}:  # another call's variable would be read in place of an error
        return None
    new = deepcopy(function)
    calls = _TailCalls(function.name, [a.arg for a in plain], arguments.defaults)
    body = calls.block([*new.body], True)
    if body is None or any(_count(s, function.name) > 0 for s in body):
        return None
    loop = ast.While(ast.Constant(True), body, [])
    new.body = [ast.fix_missing_locations(_at(loop, function.body[0]))]
    return new


def _count(node: ast.AST, name: str) -> int:
    return sum(isinstance(n, ast.Name) and n.id == name for n in ast.walk(node))


class _TailCalls:
    def __init__(self, name: str, parameters: list[str], defaults: list[ast.expr]) -> None:
        self.name, self.parameters = name, parameters
        self.defaults = dict(zip(parameters[len(parameters) - len(defaults) :], defaults))

    def block(self, statements: list[ast.stmt], last: bool) -> list[ast.stmt] | None:
        """The statements of a block; `last` if nothing follows it, so that it always ends or goes around."""
        found: list[ast.stmt] = []
        for number, statement in enumerate(statements):
            is_end = last and number == len(statements) - 1
            value = statement.value if isinstance(statement, ast.Return) else None
            if value is not None and (again := self.again(value, statement)) is not None:
                found += again
                continue
            call = statement.value if isinstance(statement, ast.Expr) and is_end else None
            if call is not None and (again := self.again(call, statement)) is not None:
                return [*found, *again]
            if isinstance(statement, ast.If):
                statement.body = self.block(statement.body, is_end) or []
                if statement.orelse or is_end:
                    statement.orelse = self.block(statement.orelse, is_end) or []
            found.append(statement)
        if last and (not statements or not _ends(found[-1])):
            end = ast.Return(ast.Constant(None)) if not found else _at(ast.Return(None), found[-1])
            found.append(end)
        return found

    def again(self, call: ast.expr, origin: ast.stmt) -> list[ast.stmt] | None:
        """The statements for a call of the function: its parameters get new values; None for anything else."""
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name) or call.func.id != self.name:
            return None
        given: dict[str, ast.expr] = dict(zip(self.parameters, call.args))
        given |= {keyword.arg: keyword.value for keyword in call.keywords if keyword.arg is not None}
        missing = {name: deepcopy(value) for name, value in self.defaults.items() if name not in given}
        if not all(isinstance(value, ast.Constant) for value in missing.values()):
            return None
        given |= missing
        if any(isinstance(a, ast.Starred) for a in call.args) or {*given} != {*self.parameters}:
            return None
        new = {n: v for n, v in given.items() if not (isinstance(v, ast.Name) and v.id == n)}
        around = [_at(ast.Continue(), origin)]
        if not new:
            return [*around]
        targets: list[ast.expr] = [ast.Name(name, ast.Store()) for name in new]
        if len(new) == 1:
            return [_at(ast.Assign(targets, next(iter(new.values()))), origin), *around]
        value = _at(ast.Tuple([*new.values()], ast.Load()), origin)
        return [_at(ast.Assign([_at(ast.Tuple(targets, ast.Store()), origin)], value), origin), *around]


def _ends(node: ast.stmt) -> bool:
    """True if nothing after a statement is reached."""
    if isinstance(node, ast.If):
        return bool(node.body and node.orelse) and _ends(node.body[-1]) and _ends(node.orelse[-1])
    return isinstance(node, (ast.Return, ast.Raise, ast.Continue))


def _at(node: _Node, origin: ast.AST) -> _Node:
    return ast.copy_location(node, origin)
