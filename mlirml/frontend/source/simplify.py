"""Desugaring of statements, before jumps become flags.

    with np.errstate(all="ignore"):             y = np.log(x)
        y = np.log(x)

    if (t := f(x)) > 0:                         t = f(x)
        s += t                                  if t > 0:
                                                    s += t

    while (t := f(t)) > 0:                      t = f(t)
        s += t                                  while t > 0:
                                                    s += t
                                                    t = f(t)

    while q and q.pop() > 0:                    while True:
        s += 1                                      if not (q and q.pop() > 0):
                                                        break
                                                    s += 1

    for i in range(n):                          k = 0
        if x[i] > 0:                            for i in range(n):
            k = i                                   if x[i] > 0:
            break                                       k = i
    else:                                               break
        k = -1                                  else:
                                                    k = -1

A condition of a loop that changes a list is one of its statements, as only these carry changes from one iteration to
the next. The last one initialises a variable that is assigned on every path through the loop, so that it can be
carried.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from copy import deepcopy

CHANGING = (
    "add", "append", "appendleft", "clear", "discard", "extend", "extendleft", "heapify", "heappop", "heappush",
    "heappushpop", "heapreplace", "insert", "insort", "insort_left", "insort_right", "next", "pop", "popitem",
    "popleft", "remove", "reverse", "setdefault", "sort", "update",
)  # fmt: skip
"""Methods and functions that change a container: a condition with one is not evaluated twice."""
_QUIET = ("np.errstate", "numpy.errstate", "errstate")
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def simplified(function: ast.FunctionDef) -> ast.FunctionDef:
    """The function with desugared statements; those of nested functions are unchanged."""
    names = {a.arg for a in ast.walk(function.args) if isinstance(a, ast.arg)}
    function.body = list(_statements(function.body, _Names(function, names)))
    return function


def is_quiet(node: ast.AST) -> bool:
    """True for a `with` of NumPy's error state without effect on jumps."""
    return (
        isinstance(node, ast.With)
        and not (_raises(node) and _jumps(node))
        and all(
            isinstance(item.context_expr, ast.Call)
            and ast.unparse(item.context_expr.func) in _QUIET
            and item.optional_vars is None
            for item in node.items
        )
    )


def _raises(node: ast.With) -> bool:
    """True if floating-point errors may be raised in it; compiled code emits no warnings."""
    modes = [keyword.value for item in node.items for keyword in getattr(item.context_expr, "keywords", ())]
    return any(not isinstance(mode, ast.Constant) or mode.value == "raise" for mode in modes)


def _jumps(node: ast.With) -> bool:
    return any(isinstance(inner, (ast.Return, ast.Break, ast.Continue)) for inner in ast.walk(node))


def _with_error_state(node: ast.With) -> list[ast.stmt]:
    """The statements of a `with np.errstate`, between those that set and reset the state while they are traced."""
    if not _raises(node):
        return node.body
    name = f"__errors_{node.lineno}_{node.col_offset}"
    states = ast.List([item.context_expr for item in node.items], ast.Load())
    begin = [ast.Assign([ast.Name(name, ast.Store())], states), *ast.parse(f"[x.__enter__() for x in {name}]").body]
    end = ast.parse(f"[x.__exit__(None, None, None) for x in {name}]").body
    for statement in (*begin, *end):
        for part in ast.walk(statement):
            if isinstance(part, (ast.stmt, ast.expr)) and not any(part is x for x in ast.walk(states)):
                ast.copy_location(part, node)
    ast.copy_location(states, node)
    return [*begin, *node.body, *end]


def is_first(statement: ast.stmt, named: ast.NamedExpr) -> bool:
    """True if `name := value` is evaluated whenever its statement is executed, before the name is read there."""
    root = _expression(statement)
    if root is None or not any(node is named for node in _unconditional(root)):
        return False
    place = named.lineno, named.col_offset
    reads = [n for n in ast.walk(root) if isinstance(n, ast.Name) and n.id == named.target.id]
    others = [n for n in ast.walk(root) if isinstance(n, ast.NamedExpr) and n.target.id == named.target.id]
    return len(others) == 1 and all((n.lineno, n.col_offset) >= place for n in reads)


class _Names:
    """The number of assignments of a function to each of its names."""

    def __init__(self, function: ast.FunctionDef, parameters: set[str]) -> None:
        self.parameters, self._all = parameters, Counter(_stores(function.body))

    def only_in(self, loop: ast.stmt, name: str) -> bool:
        """True if nothing but this loop assigns to a name."""
        return name not in self.parameters and self._all[name] == _stores([loop]).count(name)


def _stores(nodes: list[ast.stmt]) -> list[str]:
    found = [n for node in nodes for n in ast.walk(node)]
    return [n.id for n in found if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Load)]


def _statements(statements: list[ast.stmt], names: _Names) -> Iterator[ast.stmt]:
    for statement in statements:
        if is_quiet(statement):
            assert isinstance(statement, ast.With)
            yield from _statements(_with_error_state(statement), names)
            continue
        if isinstance(statement, ast.While) and _changes(statement.test):
            statement = _tested_in_body(statement)
        yield from _named(statement)
        if isinstance(statement, (ast.For, ast.While)):
            for name in sorted(_assigned_on_all_ways(statement)):
                if names.only_in(statement, name):
                    target = ast.copy_location(ast.Name(name, ast.Store()), statement)
                    yield ast.copy_location(ast.Assign([target], ast.Constant(0)), statement)
        if not isinstance(statement, _SCOPES):
            for part in ("body", "orelse"):
                if getattr(statement, part, None):
                    setattr(statement, part, list(_statements(getattr(statement, part), names)))
        yield statement


def _changes(test: ast.expr) -> bool:
    """True if an expression, judging by names, changes a container or advances an iterator."""
    calls = [node.func for node in ast.walk(test) if isinstance(node, ast.Call)]
    return any(getattr(func, "attr", getattr(func, "id", None)) in CHANGING for func in calls)


def _tested_in_body(loop: ast.While) -> ast.While:
    """A loop whose condition is the first statement of its body; itself if its `else` has jumps of an outer loop."""
    if any(isinstance(node, (ast.Break, ast.Continue)) for statement in loop.orelse for node in ast.walk(statement)):
        return loop
    end = ast.If(ast.UnaryOp(ast.Not(), loop.test), [*loop.orelse, ast.Break()], [])
    for node in (end, end.test, end.body[-1]):
        ast.copy_location(node, loop.test)
    return ast.copy_location(ast.While(ast.copy_location(ast.Constant(True), loop.test), [end, *loop.body], []), loop)


def _expression(statement: ast.stmt) -> ast.expr | None:
    if isinstance(statement, ast.If) or (isinstance(statement, ast.While) and not _continues(statement.body)):
        return statement.test
    if isinstance(statement, (ast.Assign, ast.AugAssign, ast.Expr, ast.Return)):
        return statement.value
    return None


def _continues(body: list[ast.stmt]) -> bool:
    """True if statements of a loop jump to its next iteration."""
    inner: list[list[ast.stmt]] = []
    for statement in body:
        if isinstance(statement, ast.Continue):
            return True
        if not isinstance(statement, _SCOPES):
            of_loop = isinstance(statement, (ast.For, ast.While))
            inner += [getattr(statement, part, []) for part in ("body", "orelse", "finalbody")[of_loop:]]
            inner += [handler.body for handler in getattr(statement, "handlers", [])]
    return any(map(_continues, inner))


def _unconditional(node: ast.AST) -> Iterator[ast.AST]:
    """The subexpressions that are evaluated whenever the expression is."""
    yield node
    if isinstance(node, (*_SCOPES, *_COMPREHENSIONS)):
        return
    children: list[ast.AST] = list(ast.iter_child_nodes(node))
    if isinstance(node, ast.BoolOp):
        children = [node.values[0]]
    elif isinstance(node, ast.IfExp):
        children = [node.test]
    elif isinstance(node, ast.Compare):
        children = [node.left, node.comparators[0]]
    for child in children:
        yield from _unconditional(child)


def _named(statement: ast.stmt) -> Iterator[ast.stmt]:
    """Assignments of the names that a statement assigns in expressions, and the statement, which reads the names
    instead.
    """
    root = _expression(statement)
    found = [] if root is None else [n for n in ast.walk(root) if isinstance(n, ast.NamedExpr)]
    found = [node for node in found if is_first(statement, node)]
    found.sort(key=lambda n: (n.end_lineno, n.end_col_offset))
    for node in found:
        yield ast.copy_location(ast.Assign([node.target], node.value), node)
        if isinstance(statement, ast.While):  # and once more before the next test
            statement.body.append(ast.copy_location(ast.Assign([deepcopy(node.target)], deepcopy(node.value)), node))
    if found:
        _Read(found).visit(statement)


class _Read(ast.NodeTransformer):
    def __init__(self, found: list[ast.NamedExpr]) -> None:
        self._found = found

    def visit_NamedExpr(self, node: ast.NamedExpr) -> ast.expr:
        if node not in self._found:
            return node
        return ast.copy_location(ast.Name(node.target.id, ast.Load()), node)


def _assigned_on_all_ways(loop: ast.For | ast.While) -> set[str]:
    """The names that are assigned after a loop with `else`, whether a `break` has ended it or not."""
    if not loop.orelse:
        return set()
    ends = [_targets(loop.orelse), *_at_breaks(loop.body, _stored(loop))]
    return set.intersection(*ends) if len(ends) > 1 else set()


def _stored(loop: ast.For | ast.While) -> set[str]:
    return {loop.target.id} if isinstance(loop, ast.For) and isinstance(loop.target, ast.Name) else set()


def _targets(statements: list[ast.stmt]) -> set[str]:
    assigned = [s for s in statements if isinstance(s, ast.Assign)]
    return {n for s in assigned for t in s.targets for n in _stores([ast.Expr(t)])}


def _at_breaks(statements: list[ast.stmt], known: set[str]) -> Iterator[set[str]]:
    """The names that are assigned at each `break` of a loop."""
    here = set(known)
    for statement in statements:
        if isinstance(statement, ast.Break):
            yield set(here)
        elif isinstance(statement, (ast.For, ast.While)):
            yield from _at_breaks(statement.orelse, here)
        elif not isinstance(statement, _SCOPES):
            for part in ("body", "orelse"):
                yield from _at_breaks(getattr(statement, part, []), here)
        here |= _targets([statement])
